"""localmed: offline, on-premise medical question answering in which every sentence opens its page."""

__version__ = "0.1.0"

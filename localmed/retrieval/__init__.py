"""Hybrid search over one open generation; never calls an agent."""

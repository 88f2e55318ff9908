"""The sites that these tests share with those of ``site``."""

from tests.site.conftest import filled, ours, session

__all__ = ["filled", "ours", "session"]

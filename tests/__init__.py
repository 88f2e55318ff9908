"""Tests, laid out as the package is."""

from hypothesis import settings

settings.register_profile("localmed", deadline=None)  # a shared machine is slow at times; pytest-timeout bounds a test
settings.load_profile("localmed")

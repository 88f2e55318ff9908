"""Optical character recognition: ``pages.py`` asks a child process (``child.py``) for one page after another."""

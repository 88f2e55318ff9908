"""Checks between an answer and its reader."""

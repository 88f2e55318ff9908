"""Recipes that make what the project trains itself, from its own writing and from openly licensed data."""

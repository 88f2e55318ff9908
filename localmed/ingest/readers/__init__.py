"""One reader a format or source; ``choose`` finds the one for a file."""

"""Corpus manifests, the starter corpus, and the demonstration that uses it."""

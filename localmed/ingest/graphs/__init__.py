"""Readers of terminologies: terms instead of documents, one bounded line at a time, a fault for each bad line."""

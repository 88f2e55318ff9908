"""Adapters that implement the ports, one heavy library each."""

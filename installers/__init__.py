"""The offline bundle: built on a connected machine, installed on one without a network."""

"""The roles: what each does with and without a language model."""

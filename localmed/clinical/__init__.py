"""Clinical knowledge as data that a pharmacist can review (TOML), and the one interface to it."""

"""What keeps a site running: audit now; refresh, backup and proofs later."""

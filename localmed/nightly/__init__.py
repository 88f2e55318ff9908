"""What runs at night: the refresh, the report of the morning."""

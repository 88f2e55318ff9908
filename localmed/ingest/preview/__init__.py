"""What an import would do, file by file, and the report page of it; nothing is stored."""

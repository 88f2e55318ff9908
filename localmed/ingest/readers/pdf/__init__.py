"""PDF files: text in reading order, tables and scans (``reader.py`` reads one). Imported in child processes only."""

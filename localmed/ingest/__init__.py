"""From files to passages: readers, chunking and the import pipeline."""

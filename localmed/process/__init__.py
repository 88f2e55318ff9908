"""What a process needs of its machine: children, limits, files, progress, Ctrl-C."""

"""The chat model in a GGUF file, through llama.cpp, in a child process that may crash without harm.

``adapter`` is the port's side, ``process`` holds the child, ``child`` is its program, ``engine`` and ``decisions`` are
what runs in it. Only the child imports llama.cpp.
"""

"""The chat model in a GGUF file, through llama.cpp, in a child process that may crash without harm.

``adapter`` is the parent's side, ``child`` the program; ``engine`` runs in it. Only the child imports
llama.cpp.
"""

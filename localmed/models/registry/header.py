"""What the header of a model file says: the one value that both header readers return and the registry keeps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Header:
    """Facts that a model file states of itself. Text from it is cut short and holds printable characters only.

    ``kv_numbers`` are the numbers that one token adds to the cache of keys and values, over all layers; 0 where the
    file does not say. Of a chat template only length and sha256 are kept: it is code, and is never run.
    """

    format: str  # "gguf" or "safetensors"
    architecture: str = ""
    name: str = ""
    licence: str = ""
    quantisation: str = ""  # the kind that most of the weights' bytes have
    parameters: int = 0
    tensors: int = 0
    context: int = 0  # tokens that it was trained to read
    layers: int = 0
    kv_numbers: int = 0
    vocabulary: int = 0
    template_characters: int = 0
    template_sha256: str = ""

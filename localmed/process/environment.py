"""What a process must have in its environment before a model library loads."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

OFFLINE = {
    # Set before any model library loads: a hospital machine has no hub, and a library that looks for one hangs.
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",  # the tokenizer pool deadlocks after a spawn and wins nothing on two cores
}

# Set before torch or llama.cpp loads, unless the site sets its own: how often a thread of theirs looks whether it may
# go on before it sleeps (some 50 us). By default (libgomp) it looks for milliseconds and keeps a core from whoever it
# waits for: on two cores that others wanted too, encoding twenty passages took 1.4 to 3.5 s, with this 0.4 to 1.0 s; a
# token of a 100M chat model 440 ms, with this 27 ms. With the cores to itself that token took 12 and 13 ms.
PATIENCE = {"GOMP_SPINCOUNT": "1000"}


# What a child process gets of this one's environment: where its libraries lie and how they run. Never a key or a token,
# such as a chat server's: what reads hostile files has no use for it.
PASSED = frozenset({"HOME", "LANG", "LANGUAGE", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "TZ", "VIRTUAL_ENV"})
PASSED_GROUPS = ("LC_", "LD_", "PYTHON", "OMP_", "GOMP_", "OPENBLAS_", "MKL_", "KMP_", "CUDA_", "NVIDIA_", "GGML_")


def scrubbed(**more: str) -> dict[str, str]:
    """The environment of a child process: what it needs of this one's, no network for its libraries, and ``more``."""
    kept = {name: value for name, value in os.environ.items() if name in PASSED or name.startswith(PASSED_GROUPS)}
    return {**PATIENCE, **kept, **OFFLINE, **more}


ARENAS = 2  # areas of memory that the threads of a process share
_M_ARENA_MAX = -8  # of glibc's mallopt


def few_arenas() -> None:
    """Have many threads share ``ARENAS`` areas of memory, where glibc keeps one for each of them, at its largest.

    After questions by 1, 2, 4, 8 and 16 threads at once a process of 632 MB had 41 MB more, with this 19 MB. Only glibc
    knows of it; before the first threads.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, ARENAS)


def before_models() -> None:
    """Prepare this process for model libraries: no network, and threads that wait without hogging their core."""
    os.environ.update({**PATIENCE, **os.environ, **OFFLINE})

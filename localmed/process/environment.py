"""The environment that a process needs before a model library loads."""

from __future__ import annotations

import ctypes
import os
from contextlib import suppress

OFFLINE = {  # a hospital machine has no hub, and a library that looks for one hangs
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "DO_NOT_TRACK": "1",
    "TOKENIZERS_PARALLELISM": "false",  # the tokenizer pool deadlocks after a spawn and wins nothing on two cores
}

# How often threads of torch and llama.cpp poll before they sleep (50 us); a site may set its own. libgomp's default
# polls for milliseconds and keeps the awaited thread off its core: on two busy cores encoding twenty passages took
# 1.4 to 3.5 s, with this 0.4 to 1.0 s; a token of a 100M chat model 440 ms, with this 27 ms (idle: 12 and 13 ms).
PATIENCE = {"GOMP_SPINCOUNT": "1000"}

# The variables that a child process inherits: where its libraries lie and how they run. Never a key or token, such as a
# chat server's: a process that reads hostile files must not have it.
PASSED = frozenset({"HOME", "LANG", "LANGUAGE", "PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "TZ", "VIRTUAL_ENV"})
PASSED_GROUPS = ("LC_", "LD_", "PYTHON", "OMP_", "GOMP_", "OPENBLAS_", "MKL_", "KMP_", "CUDA_", "NVIDIA_", "GGML_")


def scrubbed(**more: str) -> dict[str, str]:
    """The environment of a child process: the necessary part of this one's, no network for libraries, and ``more``."""
    kept = {name: value for name, value in os.environ.items() if name in PASSED or name.startswith(PASSED_GROUPS)}
    return {**PATIENCE, **kept, **OFFLINE, **more}


ARENAS = 2  # memory areas that the threads of a process share
_M_ARENA_MAX = -8  # of glibc's mallopt


def few_arenas() -> None:
    """Have all threads share ``ARENAS`` areas of memory; glibc otherwise keeps a maximum-size one per thread.

    After questions by 1, 2, 4, 8 and 16 threads at once a process of 632 MB had grown by 41 MB, with this by 19 MB.
    Call it before the first threads; only glibc supports it.
    """
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, ARENAS)


def before_models() -> None:
    """Prepare this process for model libraries: no network, and threads that wait without hogging their core."""
    os.environ.update({**PATIENCE, **os.environ, **OFFLINE})

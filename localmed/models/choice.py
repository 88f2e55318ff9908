"""The models that the settings choose. Each is imported when it is chosen, and loads its weights at its first text."""

from __future__ import annotations

from pathlib import Path

from localmed.config import ModelSettings
from localmed.ports import Embedder, Reranker


def encoder(models: ModelSettings) -> Embedder:
    """The encoder; ``models`` are those of ``config.chosen_models``."""
    if models.encoder == "bge-m3":
        from localmed.models.flag_embedding import BgeM3

        return BgeM3(_folder(models, "bge-m3"))
    from localmed.models.minilm import MiniLM

    return MiniLM()


def reranker(models: ModelSettings, shared: Embedder) -> Reranker | None:
    """The reranker, if there is to be one; it uses the encoder ``shared`` where that is the model it needs."""
    if models.reranker == "maxsim":
        from localmed.models.maxsim import MaxSim
        from localmed.models.minilm import MiniLM

        return MaxSim(shared if isinstance(shared, MiniLM) else MiniLM())
    if models.reranker == "bge-m3":
        from localmed.models.flag_embedding import BgeM3, MultiVector

        return MultiVector(shared if isinstance(shared, BgeM3) else BgeM3(_folder(models, "bge-m3")))
    if models.reranker == "bge-reranker-v2-m3":
        from localmed.models.flag_embedding import CrossEncoder

        return CrossEncoder(_folder(models, models.reranker))
    return None


def _folder(models: ModelSettings, name: str) -> Path:
    return Path(models.folder) / name

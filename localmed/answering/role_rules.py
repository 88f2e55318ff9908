"""What a site does for each role without a language model, imported when a role that it serves is performed.

A question is asked with a fifth of the rules there are; to import them all costs a command more than its search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from localmed.answering import guidance, orders, planning
from localmed.answering.roles import Role, Rules
from localmed.domain.ports import Embedder, EncoderIdentity, Weights, encode_both
from localmed.library.library import Library
from localmed.safety import safety

if TYPE_CHECKING:
    from localmed.domain.ports import Vectors

CACHED = 512  # texts: those of a question's few roles; a vector of 384 numbers has 1.5 kB


class Models(Protocol):
    """What the rules need of a site."""

    @property
    def encoder(self) -> Embedder: ...  # noqa: D102
    @property
    def emergency_encoder(self) -> Embedder: ...  # noqa: D102
    @property
    def safety_encoder(self) -> Embedder: ...  # noqa: D102


class RoleRules(Mapping[str, Callable[[Any], Any]]):
    """``Rules`` over one library: role name -> what is done without a model. Made anew for each run of a flow.

    ``encoder`` keeps what the run has encoded, for its searches as well.
    """

    def __init__(self, library: Library, site: Models) -> None:
        self._library, self._site = library, site
        self.encoder = CachingEncoder(site.encoder)
        self._made: dict[str, Callable[[Any], Any]] = {}

    def __getitem__(self, name: str) -> Callable[[Any], Any]:
        """The rules of the role called ``name``."""
        if name not in self._made:
            self._made |= _MAKERS[name](self)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in _MAKERS  # a Mapping's own would make them

    def __iter__(self) -> Iterator[str]:
        return iter(_MAKERS)

    def __len__(self) -> int:
        return len(_MAKERS)

    def _of_planning(self) -> Rules:
        from localmed.answering.orders_rules import OrderRules

        return planning.rules(OrderRules(self._library.graph, self._library.lexical).concepts)

    def _of_orders(self) -> Rules:
        from localmed.answering.orders_rules import OrderRules

        return OrderRules(self._library.graph, self._library.lexical).rules()

    def _of_guidance(self) -> Rules:
        from localmed.answering.guidance_rules import GuidanceRules
        from localmed.safety.emergency_likeness import EmergencyLikeness

        own = EmergencyLikeness(self._site.emergency_encoder)
        return {**GuidanceRules(self._library.lexical).rules(), **own.rules()}

    def _of_safety(self) -> Rules:
        from localmed.safety import safety_rules
        from localmed.safety.safety_likeness import SafetyLikeness

        return {**safety_rules.RULES, **SafetyLikeness(self._site.safety_encoder).rules()}


# A table of the class, not of its objects: bound methods in them would be a cycle, and the question's texts and the
# encoder's weights would stay in memory until the collector comes by.
_SERVED: tuple[tuple[Callable[[RoleRules], Rules], tuple[Role, ...]], ...] = (
    (RoleRules._of_planning, planning.ROLES),
    (RoleRules._of_orders, (orders.MEDICAL_TERMS, orders.RETRIEVAL_QUESTION)),
    (RoleRules._of_guidance, guidance.ROLES),
    (RoleRules._of_safety, safety.ROLES),
)
_MAKERS = {role.name: maker for maker, roles in _SERVED for role in roles}


class CachingEncoder:
    """``Embedder`` that encodes each text once: the badge compares what the answer was chosen from.

    Made for one run of a flow, so that no text outlives the question it belongs to.
    """

    def __init__(self, encoder: Embedder) -> None:
        self._encoder = encoder
        self._cache: dict[tuple[str, str], Vectors] = {}

    @property
    def identity(self) -> EncoderIdentity:
        """The encoder's."""
        return self._encoder.identity

    def encode(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> Vectors:
        """See ``Embedder.encode``."""
        missing = [text for text in dict.fromkeys(texts) if (kind, text) not in self._cache]
        if len(self._cache) + len(missing) > CACHED:
            self._cache.clear()
            missing = list(dict.fromkeys(texts))
        if missing:
            vectors = self._encoder.encode(missing, kind)
            self._cache |= {(kind, text): vector for text, vector in zip(missing, vectors, strict=True)}
        cached = [self._cache[kind, text] for text in texts]
        return np.stack(cached) if cached else self._encoder.encode((), kind)

    def encode_both(self, texts: Sequence[str], kind: Literal["passage", "query"]) -> tuple[Vectors, list[Weights]]:
        """See ``SparseEncoder.encode_both``; never kept: only a search asks, for its question."""
        return encode_both(self._encoder, texts, kind)

"""Cross-encoders: a network with a classifier that reads two texts as one, loaded by transformers.

``CrossEncoder`` reranks (Nogueira & Cho 2019; bge-reranker-v2-m3 and any other with one label); ``NliCrossEncoder`` and
the fact checkers judge entailment. Tests compare the scores with FlagEmbedding and sentence-transformers. Weights are
read from safetensors only, code in a checkpoint is never run, and a missing classifier is an error, where the library
would make a random one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any

from localmed.domain import message
from localmed.domain.ports import NOT_JUDGED, Stance
from localmed.models.checkpoint import CONFIG, WEIGHTS, Checkpoint
from localmed.models.network import PASSAGE_TOKENS, RESERVED_POSITIONS, Network, arithmetic, cpu_arithmetic
from localmed.text import language

NEEDED = (WEIGHTS, "tokenizer*")  # tokenizer.json, or tokenizer_config.json beside a vocabulary
QUESTION_TOKENS = 256  # limit for a reranker, so that a long question leaves room for the passage


class Classifier:
    """A checkpoint loaded by transformers. Not thread-safe: one owner at a time."""

    loaded_by = "AutoModelForSequenceClassification"

    def __init__(self, checkpoint: Checkpoint, exact: bool = False) -> None:
        """``exact`` forces float32. Nothing is loaded before the first text."""
        self._checkpoint, self._exact = checkpoint, exact

    @cached_property
    def name(self) -> str:
        """Name and fingerprint, without loading; raise ``ModelError`` if the checkpoint is of another kind."""
        self._checkpoint.complete(*NEEDED)
        self.check()
        return f"{self._checkpoint.name} {self._checkpoint.version}"

    @property
    def languages(self) -> tuple[str, ...]:
        """The manifest's languages."""
        return self._checkpoint.languages

    def check(self) -> None:
        """Raise ``ModelError`` if ``config.json`` describes another kind of network, which would load all the same."""
        raise NotImplementedError

    def config(self) -> dict[str, Any]:
        """``config.json``, empty if it is no table."""
        values = self._checkpoint.read()
        return values if isinstance(values, dict) else {}

    def numbers(self, torch: Any) -> Any:
        """The number type to compute with."""
        return arithmetic(torch, self._exact)

    @cached_property
    def network(self) -> Network:
        """The loaded model."""
        _ = self.name  # fail before loading takes seconds
        checkpoint, folder = self._checkpoint, self._checkpoint.complete(*NEEDED)
        with checkpoint.loading():
            import torch
            import transformers

            here = {"local_files_only": True, "trust_remote_code": False}
            tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **here)
            model, report = getattr(transformers, self.loaded_by).from_pretrained(
                str(folder), use_safetensors=True, dtype=torch.float32, output_loading_info=True, **here
            )
        checkpoint.refuse_missing([*report["missing_keys"], *(mismatch[0] for mismatch in report["mismatched_keys"])])
        positions = getattr(model.config, "max_position_embeddings", PASSAGE_TOKENS + RESERVED_POSITIONS)
        tokens = min(PASSAGE_TOKENS, int(positions) - RESERVED_POSITIONS)
        return Network.place(torch, tokenizer, model, model.config, tokens, self.numbers(torch))

    def logits(self, inputs: dict[str, Any]) -> Any:
        """The outputs of a batch: (B, labels)."""
        return self.network.model(**inputs).logits

    def labels(self) -> tuple[str, ...]:
        """The output names in order, from ``id2label`` of ``config.json``; () if it has none."""
        named = self.config().get("id2label")
        if not isinstance(named, dict) or set(named) != {str(number) for number in range(len(named))}:
            return ()
        return tuple(str(named[str(number)]).strip().lower() for number in range(len(named)))


class CrossEncoder(Classifier):
    """A ``Reranker`` that reads question and passage as one text; the sigmoid of its single label."""

    def check(self) -> None:
        """See ``Classifier``: one label."""
        if len(self.labels()) != 1:
            raise self._checkpoint.load_error(ValueError(), message("model.one_label", file=CONFIG))

    def score(self, question: str, passages: Sequence[str], keep: bool = False) -> list[float]:
        """See ``Reranker.score``: from 0 to 1."""
        del keep
        if not passages:
            return []
        network = self.network
        questions = [self._cut(network, question)] * len(passages)
        rows = network.tokenizer(questions, list(passages), truncation="only_second", max_length=network.tokens)
        return network.each(rows, self.logits, lambda logits: logits.view(-1).sigmoid())

    def _cut(self, network: Network, question: str) -> str:
        """``question``, cut to ``QUESTION_TOKENS`` or half of the model's input."""
        most = min(QUESTION_TOKENS, network.tokens // 2)
        encoded = network.tokenizer(question, add_special_tokens=False, truncation=True, max_length=most + 1)
        pieces = encoded["input_ids"]
        return question if len(pieces) <= most else str(network.tokenizer.decode(pieces[:most]))


# --- entailment -------------------------------------------------------------------------------------------------------


LABELS = ("entailment", "neutral", "contradiction")  # in the order of ``Stance``
UNREAD = Stance(0.0, 1.0, 0.0)


class NliCrossEncoder(Classifier):
    """An ``Entailment`` judge with three named labels."""

    def check(self) -> None:
        """See ``Classifier``: three labels, named."""
        _ = self.order

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The index of each of ``LABELS`` among the outputs; raise ``ModelError`` if they are not named."""
        named = self.labels()
        if sorted(named) != sorted(LABELS):
            problem = message("model.label_names", file=CONFIG, labels=tuple(LABELS))
            raise self._checkpoint.load_error(ValueError(), problem)
        return tuple(named.index(label) for label in LABELS)

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment.judge``."""
        stances = [UNREAD] * len(pairs)
        if not pairs:
            return stances
        network = self.network
        read = self._readable(network, pairs)
        if not read:
            return stances
        premises, hypotheses = zip(*(pairs[place] for place in read), strict=True)
        rows = network.tokenizer(list(premises), list(hypotheses), truncation="only_first", max_length=network.tokens)
        judged = network.each(rows, self.logits, lambda logits: logits.softmax(dim=-1)[:, self.order])  # (B, 3)
        for place, probabilities in zip(read, judged, strict=True):
            stances[place] = Stance(*probabilities)
        return stances

    def _readable(self, network: Network, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """The indexes of pairs whose hypothesis leaves at least half of the input to the premise."""
        most, hypotheses = network.tokens // 2, [hypothesis for _, hypothesis in pairs]
        encoded = network.tokenizer(hypotheses, add_special_tokens=False, truncation=True, max_length=most + 1)
        return [place for place, pieces in enumerate(encoded["input_ids"]) if len(pieces) <= most]


# --- fact checkers ----------------------------------------------------------------------------------------------------


MARGIN = 8  # tokens that joining texts may add
LEAST_ROOM = 32  # tokens of a document that must fit beside a claim
MARKED = 0.5  # a token is unsupported from this probability: the more probable of two labels
# The prompts of the networks' training, verbatim.
FACTCG = (
    '{document}\n\nChoose your answer: based on the paragraph above can we conclude that "{claim}"?\n\n'
    "OPTIONS:\n- Yes\n- No\nI think the answer is "
)
MINICHECK = "predict: {document}{end}{claim}"
LETTUCE = "Summarize the following text:\n{document}\noutput:"
ANSWERS = ("0", "1")  # MiniCheck's: not supported, supported

# The support (0 to 1) of each token of a claim by one piece of a document, as (start, end, support) with the token's
# characters; a claim judged as a whole is one token at 0:0.
Read = Sequence[tuple[int, int, float]]


class FactChecker(Classifier):
    """An ``Entailment`` judge with two labels: whether a document supports a claim.

    A document longer than the input is judged in pieces of whole sentences; the piece with the highest support counts.
    Contradicted is not distinguished from not mentioned: ``contradiction`` is always 0. A claim that leaves no room for
    a document is not judged.
    """

    kind = "ForSequenceClassification"
    template: str

    def check(self) -> None:
        """See ``Classifier``: a network of this kind with two labels."""
        values = self.config()
        if not any(str(name).endswith(self.kind) for name in values.get("architectures") or ()):
            raise self._checkpoint.load_error(ValueError(), message("model.other_kind", file=CONFIG, kind=self.kind))
        named = values.get("id2label")  # two labels are the default and may be omitted
        if named is not None and (not isinstance(named, dict) or len(named) != len(ANSWERS)):
            raise self._checkpoint.load_error(ValueError(), message("model.two_labels", file=CONFIG))

    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Stance]:
        """See ``Entailment.judge``."""
        if not pairs:
            return []
        pieces = [(place, piece) for place, pair in enumerate(pairs) for piece in self._pieces(*pair)]
        read: dict[int, list[Read]] = {}
        texts = [(piece, pairs[place][1]) for place, piece in pieces]
        for (place, _), result in zip(pieces, self.read(texts) if texts else [], strict=True):
            read.setdefault(place, []).append(result)
        return [_combine(read.get(place, [])) for place in range(len(pairs))]

    def _pieces(self, document: str, claim: str) -> list[str]:
        """``document`` in pieces that fit beside ``claim``; none if it has no room."""
        room = self.network.tokens - MARGIN - sum(self._count(self.other_texts(claim)))
        return list(_split_document(document, room, self._count)) if room >= LEAST_ROOM else []

    def _count(self, texts: Sequence[str]) -> list[int]:
        encoded = self.network.tokenizer(list(texts), add_special_tokens=False)
        return [len(row) for row in encoded["input_ids"]]

    def prompt(self, document: str, claim: str) -> str:
        """The text that the network reads."""
        return self.template.format(document=document, claim=claim, end=self.network.tokenizer.eos_token)

    def other_texts(self, claim: str) -> list[str]:
        """The texts that it reads beside the document."""
        return [self.prompt("", claim)]

    def read(self, texts: Sequence[tuple[str, str]]) -> list[Read]:
        """The support of each claim by its document, which must fit."""
        network = self.network
        rows = network.tokenizer([self.prompt(*text) for text in texts], truncation=True, max_length=network.tokens)
        return [
            [(0, 0, share)] for share in network.each(rows, self.logits, lambda logits: logits.softmax(dim=-1)[:, 1])
        ]


class FactCG(FactChecker):
    """FactCG (Lei et al. 2025): a DeBERTa that reads document and claim as one question."""

    template = FACTCG


class MiniCheck(FactChecker):
    """MiniCheck (Tang et al. 2024): a T5 that answers 0 or 1; only the first decoder step is computed."""

    kind, loaded_by, template = "ForConditionalGeneration", "AutoModelForSeq2SeqLM", MINICHECK

    def numbers(self, torch: Any) -> Any:
        """Never float16, in which T5's feed-forward layers overflow."""
        return cpu_arithmetic(torch, self._exact)

    @cached_property
    def answers(self) -> list[int]:
        """The first token of each of ``ANSWERS``; raise ``ModelError`` if they are equal."""
        encoded = self.network.tokenizer(list(ANSWERS), add_special_tokens=False)["input_ids"]
        first = [row[0] for row in encoded]
        if first[0] == first[1]:
            raise self._checkpoint.load_error(ValueError(), message("model.two_labels", file="tokenizer.json"))
        return first

    def logits(self, inputs: dict[str, Any]) -> Any:
        """See ``Classifier``: the two answers."""
        network = self.network
        first = network.model.config.decoder_start_token_id
        started = network.torch.full((len(inputs["input_ids"]), 1), first, device=network.device)
        return network.model(**inputs, decoder_input_ids=started).logits[:, 0, self.answers]


class LettuceDetect(FactChecker):
    """LettuceDetect (Kovacs & Recski 2025): a classifier of each token of the claim, the second text of the pair.

    A claim is as supported as its least supported token; unsupported ones are the marked characters of its ``Stance``.
    """

    kind, loaded_by, template = "ForTokenClassification", "AutoModelForTokenClassification", LETTUCE

    def other_texts(self, claim: str) -> list[str]:
        """See ``FactChecker``."""
        return [self.prompt("", claim), claim]

    def read(self, texts: Sequence[tuple[str, str]]) -> list[Read]:
        """See ``FactChecker``."""
        network = self.network
        prompts, claims = [self.prompt(*text) for text in texts], [claim for _, claim in texts]
        rows = network.tokenizer(
            prompts, claims, truncation="only_first", max_length=network.tokens, return_offsets_mapping=True
        )
        shares = network.each(rows, self.logits, lambda logits: logits.softmax(dim=-1)[..., 0])  # (B, T): supported
        return [_claim_tokens(rows, place, share) for place, share in enumerate(shares)]


def _claim_tokens(rows: Any, place: int, shares: Sequence[float]) -> Read:
    of_text, offsets = rows.sequence_ids(place), rows["offset_mapping"][place]
    tokens = zip(of_text, offsets, shares, strict=False)  # padding has a share too
    return [(start, end, share) for text, (start, end), share in tokens if text == 1 and end > start]


def _combine(read: Sequence[Read]) -> Stance:
    """Combine the pieces of a document: the highest support of each token counts."""
    if not read:
        return NOT_JUDGED
    together = [(*same[0][:2], max(share for *_, share in same)) for same in zip(*read, strict=True)]
    support = min((share for *_, share in together), default=0.0)
    runs = [list(run) for doubted, run in groupby(together, lambda token: 1.0 - token[2] >= MARKED) if doubted]
    marked = tuple((run[0][0], run[-1][1]) for run in runs if run[-1][1])  # no characters: the whole claim
    return Stance(support, 1.0 - support, 0.0, marked=marked)


# --- pieces of a document ---------------------------------------------------------------------------------------------


def _split_document(document: str, room: int, count: Callable[[Sequence[str]], list[int]]) -> Iterator[str]:
    """``document`` in pieces of whole sentences of at most ``room`` tokens; longer sentences are cut."""
    sentences = [document[start:end] for start, end in language.sentences(document)] or [document]
    whole = [piece for sentence in sentences for piece in _halve(sentence, room, count)]
    kept: list[str] = []
    used = 0
    for piece, tokens in zip(whole, count(whole), strict=True):
        if kept and used + tokens > room:
            yield " ".join(kept)
            kept, used = [], 0
        kept.append(piece)
        used += tokens + 1  # the blank between two
    yield " ".join(kept)


def _halve(text: str, room: int, count: Callable[[Sequence[str]], list[int]]) -> Iterator[str]:
    """Halve ``text`` until each part has at most ``room`` tokens."""
    if len(text) < 2 or count([text])[0] <= room:
        yield text
        return
    middle = len(text) // 2
    cut = text.find(" ", middle) + 1 or middle
    cut = cut if cut < len(text) else middle
    yield from _halve(text[:cut].rstrip(), room, count)
    yield from _halve(text[cut:], room, count)


BY_LIBRARY: dict[str, type[FactChecker]] = {"FactCG": FactCG, "MiniCheck": MiniCheck, "LettuceDetect": LettuceDetect}

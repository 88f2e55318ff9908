"""llama.cpp through its C interface: load, tokenise, read a prompt, generate, read logits. Runs in the child only.

``llama_cpp.Llama`` is not used: it compiles the template in the file, keeps the last request's tokens for the next one,
and supports one sequence only.

One model, one context, one thread. A prompt is read in micro-batches, and ``check`` is called before each of them and
before each token, so that the caller can cancel. The context is cleared after every request, by marking its cells as
unused, not by overwriting them.

The next token is the most probable, or sampled with a temperature, under a grammar if there is one. The grammar is
checked for the freely sampled token first, and for the whole vocabulary only if it forbids that token, because checking
every token costs more than a small model's step. The distribution is the same: the best allowed token, or x with p(x) +
(1 - a) p(x) / a = p(x) / a, where a is the total probability of the allowed tokens.
"""

from __future__ import annotations

import codecs
import ctypes
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from localmed.domain.errors import ModelError, TooLong

_TOKENS = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])  # llama_token_data


class Sampler:
    """Samples the tokens of a reply one by one."""

    def __init__(self, api: Any, size: int, draw: Any, grammar: Any) -> None:
        """``size`` is the vocabulary's, ``draw`` a sampler chain of llama.cpp; ``grammar`` may be None."""
        self._api, self._size, self._draw, self._grammar = api, size, draw, grammar

    def take(self, context: Any) -> int:
        """The next token after what ``context`` read last."""
        token: int = self._api.llama_sampler_sample(self._draw, context, -1)
        if self._grammar is None:
            return token
        if not self._is_allowed(token):
            token = self._take_allowed(context)
        self._api.llama_sampler_accept(self._grammar, token)
        return token

    def _is_allowed(self, token: int) -> bool:
        row = self._apply_grammar(np.array([(token, 1.0, 0.0)], _TOKENS))
        return bool(np.isfinite(row.data[0].logit))

    def _take_allowed(self, context: Any) -> int:
        tokens = np.zeros(self._size, _TOKENS)
        tokens["id"] = np.arange(self._size)
        logits = self._api.llama_get_logits_ith(context, -1)
        tokens["logit"] = np.ctypeslib.as_array(logits, shape=(self._size,))
        rows = self._apply_grammar(tokens)
        self._api.llama_sampler_apply(self._draw, ctypes.byref(rows))
        return int(rows.data[rows.selected].id)

    def _apply_grammar(self, tokens: np.ndarray[Any, Any]) -> Any:
        """``tokens`` in llama.cpp's structure, with a logit of minus infinity where the grammar forbids one."""
        kind = self._api.llama_token_data
        rows = self._api.llama_token_data_array(tokens.ctypes.data_as(ctypes.POINTER(kind)), len(tokens), -1, False)
        rows.kept = tokens  # keeps the memory that llama.cpp reads
        self._api.llama_sampler_apply(self._grammar, ctypes.byref(rows))
        return rows


Parts = Sequence[Sequence[Any]]  # (text, is markup)
Row = npt.NDArray[np.float32]  # logits of one position, shape (vocabulary,)

_PIECE_BYTES = 256  # the longest token of any vocabulary in use has 192 bytes


@dataclass(frozen=True, slots=True)
class Setup:
    """How to load a model: the fields of the first message to the child."""

    path: str
    context: int
    micro_batch: int
    sequences: int
    threads: int
    gpu_layers: int
    marks: tuple[str, ...]
    end: str


@dataclass(frozen=True, slots=True)
class Slot:
    """One token of a batch: its position, the sequences that it belongs to, and whether its logits are to be read."""

    token: int
    position: int
    sequences: tuple[int, ...] = (0,)
    with_logits: bool = False


class Engine:
    """A loaded model and its one context."""

    def __init__(self, setup: Setup) -> None:
        import llama_cpp

        self._api: Any = llama_cpp.llama_cpp
        self._api.llama_log_set(_mute(), ctypes.c_void_p(0))  # its log may quote the prompt
        self._api.llama_backend_init()
        self._model = self._load(setup)
        self._vocabulary = self._api.llama_model_get_vocab(self._model)
        self._context = self._open(setup)
        self._memory = self._api.llama_get_memory(self._context)
        self._batch = self._api.llama_batch_init(setup.micro_batch, 0, setup.sequences)
        self.size = self._api.llama_vocab_n_tokens(self._vocabulary)
        self.context = self._api.llama_n_ctx(self._context)
        self.micro_batch, self.sequences = setup.micro_batch, setup.sequences
        self._marks, self._mark = frozenset[int](), re.compile("")  # until they are known
        self._marks, self.end = self._find_marks(setup)
        self._mark = re.compile(f"(?={'|'.join(map(re.escape, setup.marks))})")

    def _load(self, setup: Setup) -> Any:
        params = self._api.llama_model_default_params()
        params.n_gpu_layers = 2**31 - 1 if setup.gpu_layers < 0 else setup.gpu_layers
        model = self._api.llama_model_load_from_file(setup.path.encode(), params)
        if model is None:
            raise ModelError("chat.unloadable")
        return model

    def _open(self, setup: Setup) -> Any:
        trained = self._api.llama_model_n_ctx_train(self._model)
        if setup.context > trained:
            raise ModelError("chat.trained", trained=trained, context=setup.context)
        params = self._api.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = setup.context, setup.micro_batch, setup.micro_batch
        params.n_seq_max, params.kv_unified = setup.sequences, True
        params.n_threads = params.n_threads_batch = setup.threads
        params.no_perf = True
        # Flash attention stays at llama.cpp's default (on): 13 % faster for prompts on a CPU, where it sums in half
        # precision: over 20 prompts a probability of random weights varied by up to 0.014, without it by 0.00002.
        context = self._api.llama_init_from_model(self._model, params)
        if context is None:
            raise ModelError("chat.context_memory", context=setup.context)
        return context

    def _find_marks(self, setup: Setup) -> tuple[frozenset[int], int]:
        """The template's control tokens and the one that ends a turn; ``ModelError`` if the model lacks them."""
        known: set[int] = set()
        for mark in setup.marks:
            tokens = self._tokens(mark, True)
            known.update(tokens)
            if len(tokens) != 1:
                raise ModelError("chat.mark", mark=mark)
        return frozenset(known), self._tokens(setup.end, True)[0]

    # --- tokens ---------------------------------------------------------------------------------------------

    def tokens(self, parts: Parts) -> list[int]:
        """The tokens of a prompt, after the beginning-of-sequence token if the vocabulary wants one."""
        begins = self._api.llama_vocab_get_add_bos(self._vocabulary)
        start = [self._api.llama_vocab_bos(self._vocabulary)] if begins else []
        return [*start, *(token for text, markup in parts for token in self._tokens(text, markup))]

    def _tokens(self, text: str, markup: bool) -> list[int]:
        """Tokenise ``text``; only markup becomes control tokens, even if the file lists them as ordinary words."""
        tokens = self._cut(text, markup)
        if markup or self._marks.isdisjoint(tokens):
            return tokens
        ends = [match.start() + 1 for match in self._mark.finditer(text)]  # after a mark's first character
        parts = (text[start:end] for start, end in zip([0, *ends], [*ends, len(text)], strict=True))
        return [token for part in parts for token in self._cut(part, False)]

    def _cut(self, text: str, markup: bool) -> list[int]:
        data = text.encode("utf-8", "replace")
        room = len(data) + 16
        tokens = (self._api.llama_token * room)()
        count = self._api.llama_tokenize(self._vocabulary, data, len(data), tokens, room, False, markup)
        if count < 0:
            raise ModelError("chat.tokenise")
        return list(tokens[:count])

    def continuation(self, parts: Parts, text: str) -> list[int]:
        """The tokens of ``text`` after ``parts``: within a line words are tokenised differently."""
        last, markup = parts[-1]
        if not markup:
            before, together = self._tokens(last, False), self._tokens(last + text, False)
            if together[: len(before)] == before:
                return together[len(before) :]
        return self._tokens(text, False)

    def count(self, text: str) -> int:
        """The number of tokens of ``text``."""
        return len(self._tokens(text, False))

    def piece(self, token: int) -> bytes:
        """The bytes of ``token``; none for a control token."""
        buffer = ctypes.create_string_buffer(_PIECE_BYTES)
        length = self._api.llama_token_to_piece(self._vocabulary, token, buffer, _PIECE_BYTES, 0, False)
        return buffer.raw[: max(0, length)]

    # --- reading --------------------------------------------------------------------------------------------

    @contextmanager
    def cleared(self) -> Iterator[None]:
        """Clear the context afterwards."""
        try:
            yield
        finally:
            self._api.llama_memory_clear(self._memory, False)

    def read(self, slots: Sequence[Slot]) -> list[Row]:
        """Read at most one micro-batch; return copies of the requested logits, in order."""
        batch = self._batch
        batch.n_tokens = len(slots)
        for index, slot in enumerate(slots):
            batch.token[index], batch.pos[index] = slot.token, slot.position
            batch.n_seq_id[index], batch.logits[index] = len(slot.sequences), slot.with_logits
            for place, sequence in enumerate(slot.sequences):
                batch.seq_id[index][place] = sequence
        outcome = self._api.llama_decode(self._context, batch)
        if outcome:
            raise ModelError("chat.read", outcome=outcome)
        return [self._logits(index) for index, slot in enumerate(slots) if slot.with_logits]

    def _logits(self, index: int) -> Row:
        row = self._api.llama_get_logits_ith(self._context, index)
        return np.ctypeslib.as_array(row, shape=(self.size,)).copy()

    def share(self, sequence: int) -> None:
        """Let ``sequence`` begin with what sequence 0 has read."""
        self._api.llama_memory_seq_cp(self._memory, 0, sequence, -1, -1)

    def forget(self, sequence: int, start: int) -> None:
        """Remove what ``sequence`` has read from position ``start`` on."""
        self._api.llama_memory_seq_rm(self._memory, sequence, start, -1)

    def read_all(self, tokens: Sequence[int], check: Callable[[], None], logits: bool) -> None:
        """Read ``tokens`` into sequence 0 from position 0, computing the last token's logits if ``logits``."""
        for start in range(0, len(tokens), self.micro_batch):
            check()
            last = len(tokens) - 1 if logits else -1
            part = tokens[start : start + self.micro_batch]
            self.read([Slot(token, at, (0,), at == last) for at, token in enumerate(part, start)])

    # --- generating -----------------------------------------------------------------------------------------

    def generate(
        self, prompt: Sequence[int], most: int, sampler: Sampler, check: Callable[[], None], emit: Callable[[str], None]
    ) -> tuple[str, int, str]:
        """Continue ``prompt`` by at most ``most`` tokens; return text, number of tokens and finish reason."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")  # a character may take several tokens
        text: list[str] = []
        finish = "length"
        with self.cleared():
            self.read_all(prompt, check, logits=True)
            for count in range(most):
                check()
                token = sampler.take(self._context)
                if token == self.end or self._api.llama_vocab_is_eog(self._vocabulary, token):
                    finish = "stop"
                    break
                text.append(decoder.decode(self.piece(token)))
                emit(text[-1])
                if count + 1 < most:
                    self._next(token, len(prompt) + count)
        made = len(text)
        if cut := decoder.decode(b"", True):  # an incomplete character
            text.append(cut)
            emit(cut)
        return "".join(text), made, finish

    def _next(self, token: int, position: int) -> None:
        """Read one generated token like ``read``, without copying its logits, which the sampler reads itself."""
        batch = self._batch
        batch.n_tokens, batch.token[0], batch.pos[0] = 1, token, position
        batch.n_seq_id[0], batch.seq_id[0][0], batch.logits[0] = 1, 0, 1
        outcome = self._api.llama_decode(self._context, batch)
        if outcome:
            raise ModelError("chat.read", outcome=outcome)

    @contextmanager
    def sampler(self, grammar: str, temperature: float, seed: int) -> Iterator[Sampler]:
        """The best token at temperature 0, else random with ``seed``; ``ModelError`` for an invalid grammar."""
        api, constraint = self._api, None
        draw = api.llama_sampler_chain_init(api.llama_sampler_chain_default_params())
        try:
            if grammar:
                constraint = api.llama_sampler_init_grammar(self._vocabulary, grammar.encode(), b"root")
                if not constraint:
                    raise ModelError("chat.grammar")
            if temperature > 0:
                api.llama_sampler_chain_add(draw, api.llama_sampler_init_temp(temperature))
                api.llama_sampler_chain_add(draw, api.llama_sampler_init_dist(seed))
            else:
                api.llama_sampler_chain_add(draw, api.llama_sampler_init_greedy())
            yield Sampler(api, self.size, draw, constraint)
        finally:
            api.llama_sampler_free(draw)
            if constraint:
                api.llama_sampler_free(constraint)


@cache
def _mute() -> Any:
    """A log callback that prints nothing; cached, since llama.cpp may call it at any time."""
    import llama_cpp

    return llama_cpp.llama_log_callback(lambda _level, _text, _data: None)


def grammar_of(schema: str) -> str:
    """The grammar of a JSON schema."""
    from llama_cpp.llama_grammar import json_schema_to_gbnf

    try:
        grammar: str = json_schema_to_gbnf(schema)
    except (AssertionError, ValueError, LookupError, TypeError):  # raised for schemas that it does not support
        raise ModelError("chat.grammar") from None
    return grammar


# --- label probabilities ----------------------------------------------------------------------------------------------

# Label probabilities for many prompts with a common beginning, which is read once; nothing is generated. A label's
# probability is the product of its tokens' probabilities, each given the prompt and the label's earlier tokens,
# normalised over the labels. Labels with a common beginning therefore differ by what follows. If one label is the
# beginning of another, each label ends with the end-of-turn token.
#
# The prompts form a trie of two levels: their common beginning, and the rest of each prompt, followed by the labels'
# beginnings in a sequence each. ``plan`` packs the rests into micro-batches, in order, splitting and combining them. A
# sequence that has been read is dropped at once, so that memory stays near one micro-batch. The result for a prompt
# does not depend on the others.


Path = tuple[int, ...]  # tokens of a label


def choose(
    engine: Engine,
    prompts: Sequence[Sequence[int]],
    labels: Sequence[Path],
    check: Callable[[], None],
    progress: Callable[[int, int], object] = lambda _done, _total: None,
) -> list[tuple[list[float], float]]:
    """For each prompt the normalised probabilities of ``labels`` as its continuation, and their sum before normalising.

    ``progress`` gets the number of finished prompts and of all.
    """
    closed = with_ends(labels, engine.end)
    tree = Tree.of(closed)
    shared = common_beginning(prompts)
    rests = [prompt[shared:] for prompt in prompts]
    room = engine.context - shared
    longest = max(map(len, rests)) + tree.size
    if longest > room:
        raise TooLong("chat.decision_too_long", context=engine.context, needed=shared + longest)
    by_prompt: dict[int, tuple[list[float], float]] = {}
    with engine.cleared():
        engine.read_all(prompts[0][:shared], check, logits=False)
        for batch in plan([len(rest) for rest in rests], tree, engine.micro_batch, engine.sequences - 1, room):
            check()
            by_prompt |= _read(engine, batch, rests, tree, closed, shared)
            progress(len(by_prompt), len(rests))
    return [by_prompt[branch] for branch in range(len(rests))]


def common_beginning(prompts: Sequence[Sequence[int]]) -> int:
    """The number of tokens that all ``prompts`` begin with; each keeps at least one of its own."""
    alike = takewhile(lambda tokens: len(set(tokens)) == 1, zip(*prompts, strict=False))
    return min(sum(1 for _ in alike), min(map(len, prompts)) - 1)


def with_ends(labels: Sequence[Path], end: int) -> list[Path]:
    """``labels``, each followed by ``end`` if one of them is the beginning of another."""
    ambiguous = any(one != other and other[: len(one)] == one for one in labels for other in labels)
    return [(*label, end) for label in labels] if ambiguous else list(labels)


@dataclass(frozen=True, slots=True)
class Tree:
    """The label tokens to read after a prompt: the labels without their last tokens, none a beginning of another."""

    paths: tuple[Path, ...]

    @classmethod
    def of(cls, labels: Sequence[Path]) -> Tree:
        """The paths of ``labels``; one empty path if every label is a single token."""
        heads = {label[:-1] for label in labels}
        inner = {head for head in heads if any(other != head and other[: len(head)] == head for other in heads)}
        return cls(tuple(sorted(heads - inner)))

    @property
    def size(self) -> int:
        """The number of tokens."""
        return sum(map(len, self.paths))


@dataclass(frozen=True, slots=True)
class Piece:
    """Tokens ``start:stop`` of the rest of prompt ``branch``, which uses ``sequences`` until the ``last`` piece."""

    branch: int
    start: int
    stop: int
    sequences: tuple[int, ...]
    last: bool


def plan(lengths: Sequence[int], tree: Tree, most: int, sequences: int, room: int) -> Iterator[list[Piece]]:
    """Pack rests of ``lengths`` tokens into batches of at most ``most`` tokens.

    At most ``sequences`` (numbered from 1) and ``room`` tokens of context are in use at once. The labels' paths are
    read together with the last token of a rest.
    """
    needed = len(tree.paths)
    if needed > sequences or tree.size >= most:
        raise ModelError("chat.labels", needed=needed, size=tree.size)
    batch: list[Piece] = []
    used = held = 0  # tokens of this batch; tokens of the current rest in memory from earlier batches
    free = list(range(1, sequences + 1))
    for branch, length in enumerate(lengths):
        start, lent = 0, cast(tuple[int, ...], ())
        while start < length:
            left = min(most, room - held) - used
            whole = length - start + tree.size <= left
            stop = length if whole else min(length - 1, start + left)
            if stop <= start or (not lent and len(free) < needed):
                yield batch
                free, held = [sequence for sequence in range(1, sequences + 1) if sequence not in lent], start
                batch, used = [], 0
                continue
            if not lent:
                lent, free = tuple(free[:needed]), free[needed:]
            batch.append(Piece(branch, start, stop, lent, stop == length))
            used += stop - start + (tree.size if stop == length else 0)
            start = stop
    if batch:
        yield batch


def _read(
    engine: Engine,
    batch: Sequence[Piece],
    rests: Sequence[Sequence[int]],
    tree: Tree,
    labels: Sequence[Path],
    shared: int,
) -> dict[int, tuple[list[float], float]]:
    """The result of each prompt that ends in ``batch``, by its number.

    Logits are not kept: those of 1000 prompts would take gigabytes.
    """
    slots: list[Slot] = []
    paths: list[tuple[int, Path]] = []
    for piece in batch:
        if piece.start == 0:
            for sequence in piece.sequences:
                engine.share(sequence)
        for at in range(piece.start, piece.stop):
            ends = piece.last and at == piece.stop - 1
            slots.append(Slot(rests[piece.branch][at], shared + at, piece.sequences, ends))
        if piece.last:
            paths.append((piece.branch, ()))
            for path, sequence in zip(tree.paths, piece.sequences, strict=True):
                for at, token in enumerate(path):
                    slots.append(Slot(token, shared + piece.stop + at, (sequence,), True))
                    paths.append((piece.branch, path[: at + 1]))
    rows: dict[int, dict[Path, Row]] = {branch: {} for branch, _ in paths}
    for (branch, path), row in zip(paths, engine.read(slots), strict=True):
        rows[branch][path] = row
    for piece in batch:
        if piece.last:
            for sequence in piece.sequences:
                engine.forget(sequence, -1)
    return {branch: probabilities(logits, labels) for branch, logits in rows.items()}


def probabilities(rows: dict[Path, Row], labels: Sequence[Path]) -> tuple[list[float], float]:
    """Normalised label probabilities from the logits after each label beginning, and their sum before normalising."""
    totals = {path: _log_sum(row) for path, row in rows.items()}
    scores = [
        sum(float(rows[label[:at]][token]) - totals[label[:at]] for at, token in enumerate(label)) for label in labels
    ]
    best = max(scores)
    weights = [math.exp(score - best) for score in scores]
    return [weight / sum(weights) for weight in weights], sum(weights) * math.exp(best)


def _log_sum(row: Row) -> float:
    highest = float(row.max())
    return highest + math.log(float(np.exp(row.astype(np.float64) - highest).sum()))

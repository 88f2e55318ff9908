"""A loaded checkpoint on its device, with batches sized to the available memory.

Texts of similar length are batched together, longest first. The batch size follows an upper estimate of the memory of a
transformer layer. If a GPU still runs out of memory (others use it too), the batch is halved until a single text does
not fit. The arithmetic is float16 on a GPU; on a CPU bfloat16 if the processor supports it in hardware, else float32.
Not thread-safe: one owner at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psutil

from localmed.domain.errors import ModelError
from localmed.process import hooks, interrupts
from localmed.process.environment import before_models

if TYPE_CHECKING:
    from torch import Tensor

PASSAGE_TOKENS = 1024  # 1,000 Chinese characters with title and headings are about 700 tokens; longer texts are cut
RESERVED_POSITIONS = 2  # XLM-RoBERTa counts positions from the padding id + 1; other models could read two more
GPU_BYTES = 4 * 2**30  # of one batch's activations; more does not make an encoder of 568M weights faster
CPU_BYTES = 1 * 2**30  # the same in RAM, which indexes and page cache need too
SHARE = 2  # use at most this fraction (1/2) of free memory: others may need some while the batch runs
MOST_TEXTS = 256  # in one batch, however short: one failing text fails them all
# Memory of a layer for each token: hidden states (input, norms, query, key, value, mixed, residual) and the two ends of
# the wide layer; for each pair of tokens and head: attention scores with softmax and mask.
# Measured in float32 on a CPU: 380 MiB for 8 x 1,024 tokens of BGE-M3's sizes (estimated 2.5 GiB: fused attention keeps
# no scores), 624 MiB for 8 x 512 of DeBERTa-v3 base's (576 MiB), each with some 200 MiB for the first batch only.
HIDDEN_COPIES, WIDE_COPIES, SCORE_COPIES = 8, 2, 4

Rows = Mapping[str, Sequence[Sequence[int]]]  # a tokenizer's outputs by name, a row a text
Batch = tuple[list[int], Any]  # the texts' indexes, and the network's output


def load_torch() -> None:
    """Import torch completely after preparing the process; raise ``ImportError`` if it is not installed."""
    before_models()
    with interrupts.delayed():
        import torch  # noqa: F401


def arithmetic(torch: Any, exact: bool) -> Any:
    """The number type to compute with; ``exact`` forces float32."""
    return torch.float16 if torch.cuda.is_available() and not exact else cpu_arithmetic(torch, exact)


def cpu_arithmetic(torch: Any, exact: bool) -> Any:
    """The number type on the CPU: float32 if ``exact`` or if the processor has no bfloat16."""
    fast = any(getattr(torch.cpu, name, bool)() for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return torch.bfloat16 if fast and not exact else torch.float32


def free_bytes(torch: Any) -> int:
    """Bytes that one batch may use now."""
    if torch.cuda.is_available():
        kept = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()  # torch's cache, free for the next batch
        return min(GPU_BYTES, int(torch.cuda.mem_get_info()[0] + kept) // SHARE)
    return min(CPU_BYTES, psutil.virtual_memory().available // SHARE)


@dataclass(frozen=True, slots=True)
class Cost:
    """The memory of one text in a network: sizes of the network, and bytes of a number."""

    hidden: int
    wide: int
    heads: int
    number: int

    @classmethod
    def of(cls, config: Any, dtype: Any) -> Cost:
        """From a loaded network's configuration (Hugging Face's names) and number type."""
        wide = getattr(config, "intermediate_size", 4 * config.hidden_size)  # DistilBERT names it otherwise
        return cls(config.hidden_size, wide, config.num_attention_heads, dtype.itemsize)

    def bytes(self, tokens: int) -> int:
        """An upper estimate for one text of ``tokens``."""
        states = HIDDEN_COPIES * self.hidden + WIDE_COPIES * self.wide
        return tokens * (states + SCORE_COPIES * self.heads * tokens) * self.number


def make_batches(lengths: Sequence[int], cost: Cost, room: int) -> Iterator[list[int]]:
    """The indexes of texts of ``lengths`` tokens in batches, longest first; each fits ``room`` bytes or is one text."""
    order = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    start = 0
    while start < len(order):
        size = min(MOST_TEXTS, max(1, room // cost.bytes(max(1, lengths[order[start]]))))
        yield order[start : start + size]
        start += size


@dataclass(frozen=True, slots=True)
class Network:
    """A loaded checkpoint: tokenizer and network on their device."""

    torch: Any
    tokenizer: Any
    model: Any
    device: str
    tokens: int  # the longest text
    cost: Cost

    @classmethod
    def place(cls, torch: Any, tokenizer: Any, model: Any, config: Any, tokens: int, dtype: Any) -> Network:
        """Move ``model`` to the first GPU, else the CPU; ``config`` is its transformer's."""
        device = "cuda" if torch.cuda.is_available() else "cpu"
        whole = model.to(device=device, dtype=dtype).eval()
        return cls(torch, tokenizer, whole, device, tokens, Cost.of(config, dtype))

    def each(
        self, rows: Rows, forward: Callable[[dict[str, Tensor]], Any], read: Callable[[Tensor], Tensor]
    ) -> list[Any]:
        """Apply ``read`` to the logits of each text of ``rows``, in order; see ``batches``."""
        by_place: dict[int, Any] = {}
        for places, logits in self.batches(rows, forward):
            by_place.update(zip(places, read(self.finite(logits)).tolist(), strict=True))
        return [by_place[place] for place in range(len(by_place))]

    def batches(self, rows: Rows, forward: Callable[[dict[str, Tensor]], Any]) -> Iterator[Batch]:
        """Run ``forward`` over the texts of ``rows`` (``input_ids`` and others); raise ``ModelError`` if it fails."""
        lengths = [len(row) for row in rows["input_ids"]]
        return self.in_batches(lengths, lambda chosen: forward(self._padded(rows, chosen)))

    def in_batches(self, lengths: Sequence[int], run: Callable[[list[int]], Any]) -> Iterator[Batch]:
        """Call ``run`` with the indexes of each batch; raise ``ModelError`` if it fails."""
        caller, done = hooks.active(), 0
        for places in make_batches(lengths, self.cost, free_bytes(self.torch)):
            caller.cancel.check()
            yield from self._run_halving(places, run)
            done += len(places)
            caller.progress(done, len(lengths), "")

    def _run_halving(self, places: list[int], run: Callable[[list[int]], Any]) -> Iterator[Batch]:
        """Call ``run``, halving the batch while it does not fit the GPU."""
        try:
            with self.torch.inference_mode():
                output = run(places)
        except self.torch.OutOfMemoryError as error:
            if len(places) == 1:
                raise _failed(1, error) from None
            output = None
        except (RuntimeError, IndexError) as error:  # out of memory on the CPU; another model's tokenizer
            raise _failed(len(places), error) from None
        if output is not None:
            yield places, output
            return
        self.torch.cuda.empty_cache()
        middle = len(places) // 2
        yield from self._run_halving(places[:middle], run)
        yield from self._run_halving(places[middle:], run)

    def finite(self, values: Tensor) -> Tensor:
        """``values`` in float32 on the CPU; raise ``ModelError`` if half precision overflowed."""
        plain = values.float().cpu()
        if not bool(self.torch.isfinite(plain).all()):
            raise ModelError("model.no_number")
        return plain

    def _padded(self, rows: Rows, places: Sequence[int]) -> dict[str, Tensor]:
        """The inputs of the texts at ``places``, (B, T) each, padded at the end, with their mask."""
        lengths = [len(rows["input_ids"][place]) for place in places]
        longest = max(lengths)
        filling = {"input_ids": self.tokenizer.pad_token_id, "token_type_ids": self.tokenizer.pad_token_type_id}
        padded = {
            name: [
                [*rows[name][place], *[fill] * (longest - length)]
                for place, length in zip(places, lengths, strict=True)
            ]
            for name, fill in filling.items()
            if name in rows
        }
        padded["attention_mask"] = [[1] * length + [0] * (longest - length) for length in lengths]
        return {name: self.torch.tensor(values, device=self.device) for name, values in padded.items()}


def _failed(texts: int, error: Exception) -> ModelError:
    return ModelError("model.failed", count=texts, kind=type(error).__name__)

"""The recipe of the starter entailment model (``localmed/verification/stance.py``), which takes half a minute.

1. Draw pairs from our own frames (``frames.py``), a third of each label.
2. Fit a multinomial logistic regression with a small L2 penalty, by gradient descent from zero: no chance in it.
3. Choose two class biases, for the score given (macro-F1), and one temperature, for the likelihood, on development
   pairs that the fit never sees. They make up for what frames do not know: how often texts are neutral in real life.

More of it did not help. On the development pairs (macro-F1 0.48 then) 1,000 to 6,000 pairs from PubMedQA's abstracts
(questions as claims, conclusions with a denial put in or taken out) gave 0.47 to 0.48, a hidden layer 0.48, the two
vectors' product and difference as features 0.40 to 0.44, learned axes of polarity (products of projected vectors) 0.45
to 0.48, similarities word by word nothing beyond that of the whole; a cross-encoder on MiniLM with low-rank adapters
had learned nothing after 130 steps, when it was given up.

Equal pairs and an equal encoder give equal weights, bit for bit on one machine. ``python -m
tests.benchmarks.train_entailment`` runs it and writes ``models/starter-entailment.npz`` with its manifest.
"""

from __future__ import annotations

import io
import itertools
import random
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from localmed.ports import Embedder
from localmed.training.frames import LABELS, Example, Frames
from localmed.verification.stance import Floats, Weights, features, similarities
from localmed.verification.stance_rules import signals

SEED = 1
PAIRS = 6000  # 1,500 to 12,000 gave macro-F1 0.48 to 0.50 on the development pairs
STEPS = 3000  # of gradient descent: the last hundred change no coefficient by more than 0.002
RATE = 0.5
PENALTY = 1e-3
BIASES = tuple(np.arange(-1.0, 4.01, 0.25))  # added to entailment and to contradiction
TEMPERATURES = tuple(np.arange(0.5, 5.01, 0.25))

Ints = npt.NDArray[np.int64]
Score = Callable[[Ints, Ints], float]  # (what is so, what was judged), as places in LABELS


def examples(pairs: int = PAIRS, seed: int = SEED) -> list[Example]:
    """The training pairs."""
    return Frames(random.Random(seed)).pairs(pairs)  # noqa: S311  # draws a sample, no secret


def train(encoder: Embedder, learned: Sequence[Example], development: Sequence[Example], score: Score) -> Weights:
    """Fit on ``learned``, choose biases and temperature on ``development``."""
    read, so = _read(encoder, learned)
    centre, spread = read.mean(axis=0), read.std(axis=0) + 1e-6
    slopes, biases = fitted((read - centre) / spread, so)
    slopes = slopes / spread[:, None]
    biases = biases - centre @ slopes
    tried, truth = _read(encoder, development)
    scores = tried @ slopes + biases
    shift = _shift(scores, truth, score)
    temperature = _temperature(scores + shift, truth)
    return Weights(slopes / temperature, (biases + shift) / temperature, encoder.identity.slug)


def stored(weights: Weights) -> bytes:
    """The weights as the bytes of an ``.npz``: equal weights give equal bytes."""
    stream = io.BytesIO()
    np.savez(stream, **weights.arrays())
    return stream.getvalue()


def _read(encoder: Embedder, given: Sequence[Example]) -> tuple[Floats, Ints]:
    pairs = [(each.premise, each.hypothesis) for each in given]
    read = [signals(premise, hypothesis) for premise, hypothesis in pairs]
    return features(read, similarities(encoder, pairs)), np.array([LABELS.index(each.label) for each in given])


def fitted(read: Floats, so: Ints) -> tuple[Floats, Floats]:
    """Coefficients (F, 3) and biases (3,) of standardised features (N, F) and labels (N,)."""
    wanted = np.eye(len(LABELS))[so]
    slopes, biases = np.zeros((read.shape[1], len(LABELS))), np.zeros(len(LABELS))
    for _ in range(STEPS):
        wrong = _softmax(read @ slopes + biases) - wanted
        slopes -= RATE * (read.T @ wrong / len(read) + PENALTY * slopes)
        biases -= RATE * wrong.mean(axis=0)
    return slopes, biases


def _shift(scores: Floats, so: Ints, score: Score) -> Floats:
    """What to add to the scores of the three labels; neutral's stays."""
    shifts = [np.array([first, 0.0, second]) for first, second in itertools.product(BIASES, BIASES)]
    return max(shifts, key=lambda shift: score(so, (scores + shift).argmax(axis=1)))


def _temperature(scores: Floats, so: Ints) -> float:
    rows = np.arange(len(so))
    return float(max(TEMPERATURES, key=lambda each: np.log(_softmax(scores / each)[rows, so]).mean()))


def _softmax(scores: Floats) -> Floats:
    found = np.exp(scores - scores.max(axis=1, keepdims=True))
    normal: Floats = found / found.sum(axis=1, keepdims=True)
    return normal

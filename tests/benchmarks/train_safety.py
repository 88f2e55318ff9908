"""Fit the safety screen's likeness on our sentences and the development cases, and write its weights.

    python -m tests.benchmarks.train_safety

Held-back cases are never read here.
"""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from localmed.agents.safety import SafetyInput
from localmed.agents.safety_likeness import WEIGHTS, stored
from localmed.agents.safety_rules import screen
from localmed.models.minilm import MiniLM
from localmed.training.safety import Example, fit

CASES = Path(__file__).parents[1] / "workflows" / "cases"
# Who complains says "I" as often as who wants to die: a complaint that names nobody stands there with it too.
SPEAKERS = ("我", "你", "他", "她", "孩子", "宝宝", "患者", "病人")
BANKS, COMPLAINTS = (
    tomllib.loads(files("localmed.training").joinpath(f"{name}.toml").read_text("utf-8"))
    for name in ("safety_sentences", "emergency_sentences")
)


def examples(language: str) -> list[Example]:
    """The sentences, the development cases of the safety screen, and ordinary complaints: departments' and our own.

    What staff may ask and a patient may not is left out: it is neither.
    """
    bank = BANKS[language]
    bank_examples = [Example(text, due=True, disclosed=True) for text in bank["disclosed"].splitlines()]
    bank_examples += [Example(text, due=True) for text in bank["means"].splitlines()]
    bank_examples += [Example(text, due=False) for text in bank["harmless"].splitlines()]
    cases = [case for case in _cases("safety", language) if case["split"] == "development"]
    for case in cases:
        if case["safety_message"] or case["audience"] == "patient":
            disclosed = screen(SafetyInput(case["text"], case["audience"])).concern == "disclosure"
            bank_examples.append(Example(case["text"], case["safety_message"], disclosed))
    complaints = _cases("departments_development", language)
    texts = [complaint["complaint"] for complaint in complaints] + COMPLAINTS[language]["ordinary"].splitlines()
    ordinary = tomllib.loads((CASES.parents[1] / "clinical" / "cases" / "ordinary_development.toml").read_text("utf-8"))
    texts += [case["text"] for case in ordinary["ordinary"] if case["language"] == language]
    if language == "zh":
        texts += [f"我{text}" for text in texts if not text.startswith(SPEAKERS)]
    return bank_examples + [Example(text, due=False) for text in texts]


def _cases(name: str, language: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = tomllib.loads((CASES / f"{name}.toml").read_text("utf-8"))["case"]
    return [case for case in cases if case["language"] == language]


def main() -> None:
    """Fit and write."""
    encoder, weights = MiniLM(exact=True), {}
    for name, used in (("en", encoder), ("en_words", None), ("zh", None)):
        trained_on = examples(name[:2])
        weights[name], alone = fit(trained_on, name[:2], used)
        due = np.array([example.due for example in trained_on])
        disclosed = np.array([example.disclosed for example in trained_on])
        print(
            f"{name}: {len(trained_on)} examples, {len(weights[name].terms)} terms; leave-one-out: due "
            f"{(alone[due, 0] > 0).mean():.3f}, not due {(alone[~due, 0] > 0).mean():.3f}; disclosed "
            f"{(alone[disclosed, 1] > 0).mean():.3f}, not {(alone[~disclosed, 1] > 0).mean():.3f}"
        )
    np.savez_compressed(WEIGHTS, **stored(weights))
    print(f"{WEIGHTS.name}: {WEIGHTS.stat().st_size} bytes")


if __name__ == "__main__":
    main()

"""Train the starter entailment model and write it with its manifest's size and hash.

    python -m tests.benchmarks.train_entailment --data DIR

DIR holds HealthVer's development pairs (``claims/healthver/healthver_dev.csv``), which choose settings only.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from pathlib import Path

from localmed.evaluation import stance
from localmed.models.minilm import MiniLM
from localmed.models.registry.manifests import FOLDER
from localmed.training import entailment
from localmed.training.frames import LABELS, Example
from tests.benchmarks.common import DEFAULT_DATA

NAME = "starter-entailment"


def main() -> None:
    """Train and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--pairs", type=int, default=entailment.PAIRS)
    parser.add_argument("--out", type=Path, default=FOLDER)
    given = parser.parse_args()
    held = stance.load(given.data / "claims" / "healthver" / "healthver_dev.csv").pairs
    development = [
        Example(each.premise, each.hypothesis, name) for each in held for name in LABELS if name == each.label
    ]
    weights = entailment.train(MiniLM(), entailment.examples(given.pairs), development, score)
    content = entailment.stored(weights)
    (given.out / f"{NAME}.npz").write_bytes(content)
    manifest = given.out / f"{NAME}.toml"
    text = re.sub(r"bytes = \d+", f"bytes = {len(content)}", manifest.read_text("utf-8"))
    text = re.sub(r'sha256 = "\w*"', f'sha256 = "{hashlib.sha256(content).hexdigest()}"', text)
    manifest.write_text(text, "utf-8")
    print(f"{NAME}.npz: {len(content)} bytes")


def score(so: entailment.Ints, judged: entailment.Ints) -> float:
    """Macro-F1."""
    return stance.macro_f1(stance.confusion(so, judged, len(LABELS)))


if __name__ == "__main__":
    main()

"""Run the benchmarks on the real data and write RESULTS.md.

    python -m tests.benchmarks.run --data DIR [--only NAME ...] [--work FOLDER]

Each part's rows are kept in ``results.json``, so one part can be measured again without the others. Nothing here is
timed in tests. ``--work`` keeps the libraries that were built; importing MedQuAD takes minutes.
"""

from __future__ import annotations

import argparse
import json
import tomllib
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from tests.benchmarks import (
    across,
    adversarial,
    alarms,
    bundle,
    chat,
    chinese,
    departments,
    desk,
    faults,
    first_screen,
    flips,
    fuzz,
    gate,
    host,
    known_item,
    ocr,
    orders,
    pdf_faults,
    pdf_peers,
    played,
    reading,
    reading_order,
    refresh,
    safety,
    scale,
    sections,
    threads,
    trial,
    window,
)
from tests.benchmarks.common import DEFAULT_DATA, Place, Row, machine, work_folder

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
HEADLINE = HERE / "headline.toml"
INTRODUCTION = """# Results

The figures that answer a reader's question, misses included. Each is from the newest day on which it was measured. All
{count} figures, with how each was taken, are in [results.json](results.json).

Measure again with `make bench DATA=DIR`, or one part with `python -m tests.benchmarks.run --data DIR --only PART`.
DIR holds the public data sets (MedQuAD, PubMedQA, PDFs), which are not part of the project; `small_model` takes the
file of a model, `newcomer` a person. *Held back* data was not used in development; *another author* has seen neither
the rules nor the questions on which they were made. The real language model had 1.5 billion parameters; no larger one
was tried.

Machine: {machine}.
"""


PARTS: dict[str, Callable[[Place], list[Row]]] = {
    "fuzz": fuzz.run,
    "flips": flips.run,
    "faults": faults.run,
    "refresh": refresh.run,
    "refresh_kills": refresh.kills,
    "refresh_cuts": refresh.cuts,
    "refresh_flips": refresh.flipped_bits,
    "adversarial": adversarial.run,
    "gate": gate.run,
    "reading": reading.run,
    "sections": sections.run,
    "alarms": alarms.run,
    "across": across.run,
    "orders": orders.run,
    "chinese": chinese.run,
    "departments": departments.run,
    "safety": safety.run,
    "played": played.run,
    "bundle": bundle.run,
    "chat": chat.run,
    "host": host.run,
    "pdf_faults": pdf_faults.run,
    "pdf_peers": pdf_peers.run,
    "ocr": ocr.run,
    "reading_order": reading_order.run,
    "threads": threads.run,
    "trial": trial.run,
    "window": window.run,
    "desk": desk.run,
    "first_screen": first_screen.run,
    "medquad": known_item.run,
    "scale": scale.run,
}


def write(results: dict[str, list[dict[str, str]]]) -> None:
    """RESULTS.md: the rows of ``headline.toml`` with their newest figures, as far as they were measured."""
    lines = [INTRODUCTION.format(count=sum(map(len, results.values())), machine=machine())]
    for section in tomllib.loads(HEADLINE.read_text("utf-8"))["section"]:
        lines += [f"## {section['title']}\n", "| what | measured | aim | day | part |", "|---|---|---|---|---|"]
        for part, beginning, words in section["rows"]:
            row = next((row for row in results.get(part, ()) if row["what"].startswith(beginning)), None)
            if row:
                day = row.get("day") or "2026-11"
                lines.append(f"| {words} | {row['measured']} | {row['target'] or '-'} | {day} | `{part}` |")
        lines.append("")
    (HERE / "RESULTS.md").write_text("\n".join(lines), "utf-8")


def main() -> None:
    """Run the chosen parts and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--work", type=Path)
    parser.add_argument("--every", type=int, default=1, help="import only each n-th file of MedQuAD")
    parser.add_argument("--only", nargs="*", default=[])
    options = parser.parse_args()
    if not (options.data or Path()).is_dir():
        parser.error(f"--data {options.data} is not a folder")
    work = options.work or work_folder()
    work.mkdir(exist_ok=True, parents=True)
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    for name, part in PARTS.items():
        if options.only and name not in options.only:
            continue
        rows = part(Place(options.data, work, options.every))
        for row in rows:
            print(f"{row.what}: {row.measured} (target {row.target or '-'})", flush=True)
        measured = {row.what: asdict(row) | {"day": f"{datetime.now(UTC):%Y-%m-%d}"} for row in rows}
        by_hand = [row for row in results.get(name, ()) if row["what"] not in measured]  # or by a test of the suite
        results[name] = [*measured.values(), *by_hand]
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", "utf-8")
        write(results)


if __name__ == "__main__":
    main()

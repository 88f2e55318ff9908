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

from localmed.config import Settings
from tests.benchmarks import (
    across,
    adversarial,
    alarms,
    bundle,
    by_ray,
    chat,
    chat_cost,
    chinese,
    commands,
    concepts,
    departments,
    desk,
    encoder,
    faults,
    first_screen,
    flips,
    fuzz,
    gate,
    groups,
    host,
    importing,
    known_item,
    m_eval,
    ocr,
    orders,
    parsing,
    pdf_faults,
    planted_faults,
    played,
    reading,
    reading_order,
    refresh,
    safety,
    scale,
    sections,
    stance,
    tables_pdf,
    threads,
    window,
)
from tests.benchmarks.common import DEFAULT_DATA, Place, Row, library, machine, work_folder
from tests.fakes import opened

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
HEADLINE = HERE / "headline.toml"
INTRODUCTION = """# Results

The figures that answer a reader's question, misses included. Each is from the newest day on which it was measured. All
{count} figures, with how each was taken, are in [results.json](results.json).

Measure again with `make bench DATA=DIR`, or one part with `python -m tests.benchmarks.run --data DIR --only PART`.
DIR holds the public data sets (MedQuAD, PubMedQA, PDFs), which are not part of the project. *Held back* data was not
used in development; *another author* has seen neither the rules nor the questions on which they were made. The real
language model had 1.5 billion parameters; no larger one was tried.

Machine: {machine}.
"""


class Benchmarks:
    """The parts, sharing one MedQuAD library."""

    def __init__(self, place: Place, every: int = 1) -> None:
        self.place, self.every = place, every
        self.library = place.work / "medquad-data"

    def parts(self) -> dict[str, Callable[[], list[Row]]]:
        """Name -> part, in the order they should run (``import`` builds what the others use)."""
        return {
            "import": lambda: importing.throughput(self.place, self.library, self.every),
            "medquad": self.medquad,
            "pubmedqa": lambda: known_item.pubmedqa(self.place),
            "encoder": self.encoder,
            "parsing": lambda: parsing.run(self.place),
            "fuzz": lambda: fuzz.run(self.place),
            "flips": lambda: flips.run(self.place),
            "faults": lambda: faults.run(self.place),
            "refresh": lambda: refresh.run(self.place),
            "refresh_large": lambda: refresh.large(self.place),
            "refresh_serving": lambda: refresh.serving(self.place),
            "refresh_kills": lambda: refresh.kills(self.place),
            "refresh_cuts": lambda: refresh.cuts(self.place),
            "refresh_flips": lambda: refresh.flipped_bits(self.place),
            "groups": lambda: groups.run(self.place),
            "adversarial": lambda: adversarial.run(self.place),
            "by_ray": lambda: by_ray.run(self.place),
            "adding": lambda: importing.adding_one(self.place, self.library),
            "scale": lambda: scale.run(self.place, self.library, self.questions()),
            "commands": lambda: commands.run(self.library, self.questions()),
            "gate": lambda: gate.run(self.place),
            "reading": lambda: reading.run(self.place),
            "sections": lambda: sections.run(self.place),
            "alarms": lambda: alarms.run(self.place),
            "across": lambda: across.run(self.place),
            "orders": lambda: orders.run(self.place),
            "chinese": lambda: chinese.run(self.place),
            "concepts": lambda: concepts.run(self.place),
            "departments": lambda: departments.run(self.place),
            "safety": lambda: safety.run(self.place),
            "stance": lambda: stance.run(self.place),
            "planted_faults": lambda: planted_faults.run(self.place),
            "played": lambda: played.run(self.place),
            "bundle": lambda: bundle.run(self.place),
            "chat": lambda: chat.run(self.place),
            "chat_cost": lambda: chat_cost.run(self.place),
            "host": lambda: host.run(self.place),
            "m_eval": lambda: m_eval.run(self.place),
            "pdf_faults": lambda: pdf_faults.run(self.place),
            "ocr": lambda: ocr.run(self.place),
            "reading_order": lambda: reading_order.run(self.place),
            "tables_pdf": lambda: tables_pdf.run(self.place),
            "threads": lambda: threads.run(self.place),
            "window": lambda: window.run(self.place),
            "desk": lambda: desk.run(self.place),
            "first_screen": first_screen.run,
        }

    def questions(self) -> list[str]:
        """The reported sample's questions."""
        reported, _ = known_item.samples(known_item.medquad_questions(self.place.medquad()))
        return [question for question, _ in reported]

    def medquad(self) -> list[Row]:
        """Known items over the shared library."""
        with opened(Settings(self.library), uses=known_item.FUSED) as session:
            return known_item.medquad(session, self.place.medquad())

    def encoder(self) -> list[Row]:
        """Speed of the encoder."""
        with opened(Settings(self.library)) as session:
            passages = sorted(library(session).lexical.all_passages(), key=lambda passage: passage.id)
        return encoder.run([passage.in_context for passage in passages])


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
    for name, part in Benchmarks(Place(options.data, work), options.every).parts().items():
        if options.only and name not in options.only:
            continue
        rows = part()
        for row in rows:
            print(f"{row.what}: {row.measured} (target {row.target or '-'})", flush=True)
        results[name] = [asdict(row) | {"day": f"{datetime.now(UTC):%Y-%m-%d}"} for row in rows]
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False), "utf-8")
        write(results)


if __name__ == "__main__":
    main()

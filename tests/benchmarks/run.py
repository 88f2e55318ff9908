"""Run the benchmarks on the real data and write RESULTS.md.

    python -m tests.benchmarks.run --data DIR [--only NAME ...] [--work FOLDER]

Each part's rows are kept in ``results.json``, so one part can be measured again without the others. Nothing here is
timed in tests. ``--work`` keeps the libraries that were built; importing MedQuAD takes minutes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from localmed.config import Settings
from tests.benchmarks import (
    abstention,
    across,
    adversarial,
    agents,
    alarms,
    altered,
    badges,
    bundle,
    by_ray,
    calibrate_relevance,
    chat,
    chat_cost,
    chinese,
    commands,
    concepts,
    core_lost,
    departments,
    encoder,
    flips,
    fuzz,
    gate,
    groups,
    guidelines,
    host,
    importing,
    known_item,
    links,
    m_eval,
    ocr,
    orders,
    parsing,
    pdf_faults,
    plain,
    planted_faults,
    reading_order,
    refresh,
    reranking,
    safety,
    scale,
    stance,
    starter,
    tables_pdf,
    threads,
    ward,
    window,
)
from tests.benchmarks.common import DEFAULT_DATA, Place, Row, library, machine, work_folder
from tests.fakes import opened

HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
LOSS_PASSAGES = 6000
SECTIONS = {
    "Retrieval": (
        "medquad",
        "pubmedqa",
        "ablation",
        "liveqa",
        "relevance",
        "reranking",
        "guidelines",
        "chinese",
        "scale",
    ),
    "Answers and refusals": ("starter", "plain", "ward", "across", "abstention", "agents", "commands"),
    "Verification": ("gate", "alarms", "core_lost", "altered", "planted_faults", "badges", "links", "m_eval", "stance"),
    "Patients, orders and departments": ("orders", "departments", "safety", "clinical"),
    "Import and reading": (
        "import",
        "by_ray",
        "adding",
        "parsing",
        "reading_order",
        "tables_pdf",
        "pdf_peers",
        "pdf_faults",
        "ocr",
        "fuzz",
    ),
    "What is stored": (
        "flips",
        "refresh",
        "refresh_large",
        "refresh_serving",
        "refresh_kills",
        "refresh_cuts",
        "refresh_flips",
        "groups",
        "adversarial",
    ),
    "Without a network": ("bundle",),
    "The window": ("window",),
    "Models and the host": ("encoder", "chat", "chat_cost", "real_chat", "host"),
    "Threads and concepts": ("threads", "concepts"),
}
INTRODUCTION = """# Benchmark results

Made by `make bench DATA=DIR` (`python -m tests.benchmarks.run --data DIR`), where DIR holds MedQuAD, PubMedQA and the
PDFs; each file under `tests/benchmarks/` says what its figure means. Ratios are taken in one run on one machine. Whole
MedQuAD imports are measured once, everything else is a median of five unless it says otherwise.
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
            "relevance": lambda: calibrate_relevance.run(self.place),
            "starter": lambda: starter.run(self.place),
            "gate": lambda: gate.run(self.place),
            "alarms": lambda: alarms.run(self.place),
            "core_lost": lambda: core_lost.run(self.place),
            "plain": lambda: plain.run(self.place),
            "ward": lambda: ward.run(self.place),
            "across": lambda: across.run(self.place),
            "abstention": lambda: abstention.run(self.place),
            "orders": lambda: orders.run(self.place),
            "reranking": lambda: reranking.run(self.place, self.library),
            "guidelines": lambda: guidelines.run(self.place),
            "chinese": lambda: chinese.run(self.place),
            "concepts": lambda: concepts.run(self.place),
            "departments": lambda: departments.run(self.place),
            "safety": lambda: safety.run(self.place),
            "stance": lambda: stance.run(self.place),
            "altered": lambda: altered.run(self.place),
            "planted_faults": lambda: planted_faults.run(self.place),
            "badges": lambda: badges.run(self.place),
            "bundle": lambda: bundle.run(self.place),
            "chat": lambda: chat.run(self.place),
            "chat_cost": lambda: chat_cost.run(self.place),
            "host": lambda: host.run(self.place),
            "agents": lambda: agents.run(self.place),
            "links": lambda: links.run(self.place),
            "m_eval": lambda: m_eval.run(self.place),
            "pdf_faults": lambda: pdf_faults.run(self.place),
            "ocr": lambda: ocr.run(self.place),
            "reading_order": lambda: reading_order.run(self.place),
            "tables_pdf": lambda: tables_pdf.run(self.place),
            "threads": lambda: threads.run(self.place),
            "window": lambda: window.run(self.place),
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
        """Speed, and what the fast arithmetic costs."""
        with opened(Settings(self.library)) as session:
            records, _ = known_item.medquad_records(session)
            passages = sorted(library(session).lexical.all_passages(), key=lambda passage: passage.id)
            reported, _ = known_item.samples(known_item.medquad_questions(self.place.medquad()))
        judged = {record for _, record in reported}
        theirs = [passage for passage in passages if records[passage.document_id] in judged]
        others = [passage for passage in passages if records[passage.document_id] not in judged]
        chosen = (theirs + others)[: max(LOSS_PASSAGES, len(theirs))]
        owners = [records[passage.document_id] for passage in chosen]
        speed = encoder.run([passage.in_context for passage in passages])
        return [*speed, encoder.loss([passage.in_context for passage in chosen], owners, reported)]


def write(results: dict[str, list[dict[str, str]]]) -> None:
    """RESULTS.md from the rows of all parts, in sections; a row without a day is older than the days were kept."""
    sections = [(title, [row for name in names for row in results.get(name, ())]) for title, names in SECTIONS.items()]
    listed = {name for names in SECTIONS.values() for name in names}
    sections.append(("Other", [row for name, rows in results.items() if name not in listed for row in rows]))
    filled = [(title, rows) for title, rows in sections if rows]
    lines = [INTRODUCTION, f"Machine: {machine()}. A row without a day was measured before 2026-11-22.\n"]
    lines += [f"- [{title}](#{title.lower().replace(',', '').replace(' ', '-')})" for title, _ in filled]
    for title, rows in filled:
        lines += [f"\n## {title}\n", "| what | target | measured | met | day | how |", "|---|---|---|---|---|---|"]
        lines += [
            f"| {row['what']} | {row['target'] or '-'} | {row['measured']} | {row['met']} | {row.get('day', '')} "
            f"| {row['how']} |"
            for row in rows
        ]
    notes = (HERE / "notes.md").read_text("utf-8")
    (HERE / "RESULTS.md").write_text("\n".join(lines) + "\n\n" + notes, "utf-8")


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

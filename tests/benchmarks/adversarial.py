"""Texts that a rule might read in more than linear time: 80,000 characters of each into every workflow.

    python -m tests.benchmarks.adversarial [--characters 80000] [--workflow NAME ...] [--text NAME ...]

The real commands, in this process, over the starter corpus with a small terminology. Seconds are of a whole command
with the encoder loaded (reading the text, the workflow, printing): processor seconds of all threads are held against
the limit, since other work on the machine lengthens the wall time beside them. The reranker is left out: it reads the
same few passages and 4,000 characters whatever is asked. A command may refuse a text (exit codes 2, 3), never fail (1).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.benchmarks.common import Place, Row, met, work_folder
from tests.cli.conftest import Localmed

CHARACTERS = 80_000
LIMIT = 5.0  # seconds
ROOT = Path(__file__).parents[2]
TERMS = ROOT / "tests" / "ingest" / "fixtures" / "graphs" / "small.obo"
COLLECTIONS = ("guidelines", "leaflets", "literature", "local", "reference")
QUESTION = "What is the blood pressure target for most adults with hypertension?"

UNITS = {
    "a term again and again": "hypertension ",
    "a Chinese term again and again": "高血压",
    "two Chinese terms": "糖尿病、高血压，",
    "digits": "1",
    "numbers in words": "1 2 30 400 ",
    "decimal points": "1.2.3.",
    "quotation marks": '"',
    "typographic quotation marks": "“a” ",
    "opening brackets": "(",
    "nested brackets": "([{",
    "new lines": "\n",
    "lines of one letter": "a\n",
    "one long word": "a",
    "Chinese without punctuation": "患者今日头痛发热咳嗽乏力",
    "combining marks": "e\u0301\u0302\u0323",
    "zero-width characters": "a\u200b\u200d",
    "amounts": "5 mg/kg 10 mL/h 2.5 mmol/L ",
    "Chinese amounts": "每日3次每次5毫克",
    "negations": "no not without denies ",
    "not not": "not ",
    "Chinese negations": "无不没有否认",
    "medicines": "metformin 500 mg twice daily, aspirin 75 mg stopped, ",
    "orders in lines": "Tab. Metformin 500 mg po bid pc\n",
    "table pipes": "| a | 5 mg |\n",
    "rules of a table": "|---",
    "Markdown": "# **a** _b_ [c](d) `e`\n",
    "nested JSON": '{"a":[',
    "XML entities": "&amp;&lt;&#x41;",
    "nested XML": "<a>",
    "addresses of e-mail": "a.b@c.example, ",
    "dates": "2024-05-31 31.5.2024 ",
    "citation marks": "[1][2, 3] (Smith et al., 2020) ",
    "links": "https://a.example/b?c=d ",
    "abbreviations": "BP HR RR q.d. b.i.d. SpO2 ",
    "ages": "a 3-month-old baby, 4 years old, ",
    "full stops": "a. ",
    "question marks": "? ",
    "questions": "What is a? ",
    "capital letters": "AbCdEf ",
    "hyphens": "a-b-",
    "comparisons": "<5 >3 <= 2 +- ",
    "ideographic blanks": "\u3000高",
    "emergencies": "chest pain and cannot breathe ",
    "subordinate clauses": "if a then b unless c because d, ",
    "PICO": "P: a I: b C: c O: d ",
    "tabs and returns": "\t\r",
}


@dataclass(frozen=True)
class Measured:
    """One command on one text."""

    workflow: str
    text: str
    wall: float  # seconds
    processor: float  # seconds of all threads
    code: int


Command = Callable[[str, Path], tuple[str, ...]]  # the arguments for a text, and for a file that holds it


def _wrapped(text: str) -> str:
    """As one argument that is no option and not standard input."""
    return f" {text}"


COMMANDS: Mapping[str, Command] = {
    "ask": lambda text, _: ("ask", _wrapped(text)),
    "ask --after": lambda text, _: ("ask", "What of adults?", "--after", _wrapped(text)),
    "ask, after a question": lambda text, _: ("ask", _wrapped(text), "--after", QUESTION),
    "ask --check": lambda text, _: ("ask", "--check", _wrapped(text)),
    "ebm": lambda text, _: ("ebm", _wrapped(text)),
    "ebm --pico": lambda text, _: ("ebm", "--pico", _wrapped(text)),
    "ebm --patient": lambda _, file: ("ebm", QUESTION, "--patient", str(file)),
    "explain": lambda _, file: ("explain", str(file)),
    "explain --question": lambda text, file: ("explain", str(file.with_name("order")), "--question", _wrapped(text)),
    "explain --patient": lambda _, file: ("explain", str(file.with_name("order")), "--patient", str(file)),
    "departments": lambda text, _: ("departments", _wrapped(text)),
    "verify": lambda _, file: ("verify", str(file)),
    "verify --question": lambda text, file: ("verify", str(file.with_name("order")), "--question", _wrapped(text)),
    "search": lambda text, _: ("search", _wrapped(text)),
    "concept": lambda text, _: ("concept", _wrapped(text)),
    "concept --query": lambda text, _: ("concept", "kidney disease", "--query", _wrapped(text)),
    "plan": lambda text, _: ("plan", _wrapped(text)),
}


def made(folder: Path) -> Localmed:
    """The starter corpus with a terminology, asked once so that the encoder is loaded."""
    localmed = Localmed(folder / "data")
    for name in COLLECTIONS:
        manifest = ROOT / "corpora" / f"starter-{name}.toml"
        documents = ROOT / "corpora" / "starter" / name
        localmed.ok("import", str(documents), "-c", f"starter-{name}", "--manifest", str(manifest))
    localmed.ok("import", str(TERMS), "-c", "doid", "--manifest", str(ROOT / "corpora" / "doid.toml"))
    (folder / "order").write_text("Tab. Metformin 500 mg po bid pc\n", "utf-8")
    localmed.ok("models", "use", "reranker", "none")
    for name in ("ask", "departments", "concept"):
        localmed.ok(name, "chronic kidney disease")
    return localmed


def measured(localmed: Localmed, folder: Path, workflow: str, name: str, characters: int = CHARACTERS) -> Measured:
    """Run one command on one text."""
    unit = UNITS[name]
    text = (unit * (characters // len(unit) + 1))[:characters]
    file = folder / "text"
    file.write_text(text, "utf-8", newline="")
    arguments = COMMANDS[workflow](text, file)
    began, worked = time.perf_counter(), time.process_time()
    code = localmed(*arguments).code
    return Measured(workflow, name, time.perf_counter() - began, time.process_time() - worked, code)


def rows(results: Sequence[Measured]) -> list[Row]:
    """One row a workflow, with its slowest text."""
    return [_row([result for result in results if result.workflow == name]) for name in COMMANDS]


def _row(results: Sequence[Measured]) -> Row:
    slowest = max(results, key=lambda result: result.processor)
    failed = [result.text for result in results if result.code == 1]
    return Row(
        f"{CHARACTERS:,} characters of each of {len(results)} texts into `{slowest.workflow}`, longest",
        f"<= {LIMIT:.0f} s",
        f"{slowest.processor:.1f} s",
        met(slowest.processor <= LIMIT and not failed),
        f"processor time, {slowest.text}; wall beside other work {max(result.wall for result in results):.0f} s at most"
        + (f"; failed on {', '.join(failed)}" if failed else ""),
    )


def run(place: Place) -> list[Row]:
    """Every workflow on every text."""
    with tempfile.TemporaryDirectory(dir=place.work) as name:
        folder = Path(name)
        localmed = made(folder)
        return rows([measured(localmed, folder, workflow, text) for workflow in COMMANDS for text in UNITS])


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--characters", type=int, default=CHARACTERS)
    parser.add_argument("--workflow", nargs="*", default=list(COMMANDS))
    parser.add_argument("--text", nargs="*", default=list(UNITS))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=work_folder()) as name:
        folder = Path(name)
        localmed = made(folder)
        for workflow in options.workflow:
            for text in options.text:
                print(measured(localmed, folder, workflow, text, options.characters), flush=True)


if __name__ == "__main__":
    main()

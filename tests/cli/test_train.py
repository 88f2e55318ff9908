"""``localmed train`` from questions to a planner that serves, on a tiny random model; each stage killed once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import COMMAND, Localmed, environment
from tests.models.tiny_gguf import Shape, write_gguf
from tests.words import phrase

SECONDS = 400.0  # for a stage to begin, on a busy machine
QUESTIONS = {
    "q1": ("What is the target of blood pressure?", "hypertension-2024"),
    "q2": ("How soon are antibiotics given in septic shock?", "sepsis"),
    "q3": ("When is lactate measured again?", "sepsis"),
    "q4": ("Is the blood pressure target below 130/80 mmHg?", "hypertension-2024"),
}
HELD = {
    "h1": ("Which target has blood pressure in adults?", "hypertension-2024"),
    "h2": ("What is given within one hour of septic shock?", "sepsis"),
    "q1": QUESTIONS["q1"],
}


def written(folder: Path, name: str, questions: dict[str, tuple[str, str]]) -> tuple[str, ...]:
    """The options for ``questions`` in files."""
    lines = {"tsv": [f"{key}\t{text}" for key, (text, _) in questions.items()],
             "qrels": [f"{key} 0 {document} 1" for key, (_, document) in questions.items()]}  # fmt: skip
    for ending, content in lines.items():
        (folder / f"{name}.{ending}").write_text("\n".join(content) + "\n")
    return "--queries", str(folder / f"{name}.tsv"), "--qrels", str(folder / f"{name}.qrels")


def killed(data: Path, begun: Callable[[], bool], *arguments: str) -> None:
    """Start a command and kill it, and what it started, with SIGKILL once it has ``begun``."""
    process = started(data, begun, *arguments)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(60)


def interrupted(data: Path, begun: Callable[[], bool], *arguments: str) -> int:
    """Start a command and end it, and what it started, as Ctrl-C does once it has ``begun``; its exit code."""
    process = started(data, begun, *arguments)
    os.killpg(process.pid, signal.SIGINT)
    return process.wait(SECONDS)


def started(data: Path, begun: Callable[[], bool], *arguments: str) -> subprocess.Popen[bytes]:
    """A command that has ``begun``; whoever looks for that comes before it where processors are few."""
    process = subprocess.Popen(
        ["nice", "-n", "15", *COMMAND, "--data", str(data), *arguments], env=environment(), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until = time.monotonic() + SECONDS
    while not begun() and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    assert begun()
    return process


def unloadable(checkpoint: Path) -> None:
    """Plant a checkpoint that is as it was written, of which torch can read nothing."""
    from localmed.lab import learning

    newest = learning.last_checkpoint(checkpoint.parent)
    assert newest, "the stage was killed after it sealed one"
    shutil.copytree(newest, checkpoint)
    (checkpoint / "optimizer.pt").write_bytes(b"PK\x03\x04 cut off")
    learning.seal(checkpoint)


def keys(file: Path) -> list[tuple[str, ...]]:
    """What each row of ``file`` is about; a line that was cut off is none."""
    about = []
    for line in file.read_text("utf-8").splitlines()[1:]:
        try:
            row: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        about.append(tuple(str(row.get(name, "")) for name in ("question", "source", "query", "arm")))
    return about


def lines_of(file: Path) -> int:
    return len(file.read_text("utf-8").splitlines()) if file.exists() else 0


@pytest.fixture
def site(copied: Localmed, tmp_path: Path) -> Localmed:
    """A library with two sources, and a tiny chat model that reads long prompts byte by byte."""
    for kind, names in {"guideline": ["hypertension-2024.md", "sepsis.txt"], "leaflet": ["faq.jsonl"]}.items():
        folder = tmp_path / kind
        folder.mkdir()
        for name in names:
            text = (copied.data.parent / name).read_text() if (copied.data.parent / name).exists() else ""
            (folder / name).write_text(text or TEXTS[name])
        manifest = f'name = "{kind}s"\ntitle = "{kind}"\nlicence = "test"\nkind = "{kind}"\npriority = 5\n{FIELDS}'
        (tmp_path / f"{kind}.toml").write_text(manifest)
        copied.ok("import", "-c", f"{kind}s", "--manifest", str(tmp_path / f"{kind}.toml"), str(folder))
    (copied.data / "localmed.toml").write_text("[chat]\nhang_seconds = 600.0\ncontext = 4096\nthreads = 1\n")
    model = write_gguf(tmp_path / "tiny.gguf", shape=Shape(context=4096))
    copied.ok("models", "add", str(model), "--role", "chat", "--as", "tiny", "--template", "chatml")
    copied.ok("models", "use", "reranker", "none")
    copied.ok("models", "use", "chat", "tiny", "--untested")
    return copied


FIELDS = '[fields]\nid = "id"\ntitle = "title"\ntext = "text"\n'
TEXTS = {
    "hypertension-2024.md": "# Blood pressure\n\nThe target of blood pressure in adults is below 130/80 mmHg now.\n",
    "sepsis.txt": "Septic shock\n\nAntibiotics are given within one hour. Lactate is measured again after two hours.\n",
    "faq.jsonl": '{"id": "1", "title": "Aspirin", "text": "Take aspirin with food and a glass of water."}\n',
}


@pytest.mark.extra("llama", "train", "eval")
@pytest.mark.timeout(900)
def test_from_questions_to_a_planner_that_serves(site: Localmed, tmp_path: Path) -> None:
    out = tmp_path / "run"
    limits = ("-c", "guidelines", "-c", "leaflets", "--out", str(out))
    explore = ("train", "explore", *written(tmp_path, "train", QUESTIONS), "--candidates", "1", *limits)
    cost = " ".join(site.ok(*explore, "--dry-run").out.split())
    assert "4 questions: 8 to 16 calls" in cost
    assert not out.exists(), "a dry run writes nothing"

    explored = out / "explored.jsonl"
    killed(site.data, lambda: lines_of(explored) > 2, *explore)  # the encoder is loaded now, for a second or more
    before = keys(explored)
    assert not (out / "pairs.jsonl").exists()
    further = lambda: len(keys(explored)) > len(before) and "q2" in {key[0] for key in keys(explored)}  # noqa: E731
    assert interrupted(site.data, further, *explore, "--resume") == 130
    assert 2 <= lines_of(out / "pairs.jsonl") < 6, "what is finished can be learnt from"
    assert keys(explored)[: len(before)] == before
    before = keys(explored)
    site.ok(*explore, "--resume")
    assert keys(explored)[: len(before)] == before, "nothing lost"
    assert len(keys(explored)) == len({*keys(explored)}), "nothing drawn or judged twice"
    pairs = [json.loads(line) for line in (out / "pairs.jsonl").read_text().splitlines()]
    assert len(pairs) == 5
    plans = [json.loads(pair["positive"]) for pair in pairs[1:]]
    assert all(plan["guideline"] and not plan["leaflet"] for plan in plans)

    learn = ("train", "learn", "--epochs", "8", "--save-steps", "1", "--out", str(out))
    assert "sft: 4 examples" in site.ok(*learn, "--dry-run").out
    for stage in ("sft", "dpo"):
        seal = out / stage / "checkpoint-1" / "seal.json"
        killed(site.data, seal.exists, *learn)
        assert not (out / stage / "manifest.json").exists()
    assert (out / "sft" / "manifest.json").exists(), "a finished stage is not done again"
    unloadable(out / "dpo" / "checkpoint-998")
    (out / "dpo" / "checkpoint-999").mkdir()  # one that was cut off while it was written
    (out / "dpo" / "checkpoint-999" / "trainer_state.json").write_text("{}")
    site.ok("--debug", *learn)
    for stage, steps in (("sft", 8), ("dpo", 4)):
        manifest = json.loads((out / stage / "manifest.json").read_text())
        assert manifest["steps"] == len(manifest["losses"]) == steps, "steps before the interruption count"
        assert len(manifest["base"]["sha256"]) == len(manifest["pairs"]) == 64
        assert manifest["recipe"]["seed"] == 1
        assert manifest["versions"]["trl"]
    assert not list((out / "dpo").glob("checkpoint-99*"))
    assert (out / "dpo" / "unloadable-checkpoint-998").is_dir(), "the one before it was taken"

    shutil.copytree(out / "sft", tmp_path / "less" / "sft")
    (tmp_path / "less" / "pairs.jsonl").write_text("".join((out / "pairs.jsonl").read_text().splitlines(True)[:-1]))
    refused = site("train", "learn", "--epochs", "8", "--out", str(tmp_path / "less")).failed(2)
    assert phrase("training.learnt_other.command") in " ".join(refused.split()), "learnt after Ctrl-C, explored further"

    export = ("train", "export", "--as", "tiny-planner", "--out", str(out))
    killed(site.data, lambda: any(out.glob("tiny-planner.*")), *export)
    (out / "tiny-planner.part").write_bytes(b"cut off")
    site.ok(*export)
    facts = (out / "export.json").read_bytes()
    (out / "export.json").unlink()  # an export that was killed after it had registered the planner
    site.ok(*export)
    assert (out / "export.json").read_bytes() == facts
    exported = json.loads(facts)
    described = {row["name"]: row for row in site.ok("models", "list", "--json").json}["tiny-planner"]
    assert described["role"] == "planner"
    assert described["sha256"] == exported["sha256"]

    compare = ("train", "compare", "--planner", "tiny-planner", *written(tmp_path, "held", HELD), *limits)
    compared = out / "compared.jsonl"
    killed(site.data, lambda: lines_of(compared) > 2, *compare)
    before = keys(compared)
    result = site.ok(*compare, "--resume", "--json").json
    assert keys(compared)[: len(before)] == before
    assert len(keys(compared)) == len({*keys(compared)}) == 6
    assert result["questions"] == 2
    assert result["trained_on"] == 1, "what was explored is not held out"
    assert {score["arm"]: score["right"] for score in result["scores"]}["rules"] == 1.0
    assert "blood" not in (out / "report.json").read_text()

    site.ok("models", "use", "planner", "tiny-planner")
    answer = site.ok("plan", QUESTIONS["q1"][0], "--json").json
    assert ["planner", "tiny-planner"] in [list(model) for model in answer["provenance"]["models"]]


@pytest.mark.extra("eval")
def test_what_is_refused(localmed: Localmed, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "run"))
    options = written(tmp_path, "train", QUESTIONS)
    assert "--set" in localmed("train", "explore", *out).failed(2)
    assert "--set" in localmed("train", "explore", *options[:2], *out).failed(2)
    assert "models use chat" in localmed("train", "explore", *options, *out).failed(6)
    assert localmed("train", "export", "--as", "x", *out).code == 3
    assert localmed("train", "compare", "--planner", "x", *options, *out).code == 3

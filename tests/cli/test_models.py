"""``localmed models`` on files of the test's own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from localmed import config
from localmed.answering.role_table import ROLES
from localmed.answering.self_test import questions
from localmed.site.audit import BEGUN, Audit
from localmed.site.site import Site
from tests.cli.conftest import COMMAND, Localmed, environment
from tests.models import model_files as files
from tests.models.host.house import House
from tests.models.model_files import make
from tests.models.tiny import make_sentence_encoder
from tests.words import phrase, said


@pytest.fixture
def empty(tmp_path: Path) -> Localmed:
    """No library, no models."""
    return Localmed(tmp_path / "data")


@pytest.fixture
def qwen(tmp_path: Path) -> Path:
    return make(tmp_path / "stick" / "Qwen3-8B-Q4_K_M.gguf", files.gguf())


def test_the_list_before_anything_is_added(empty: Localmed) -> None:
    assert "qwen3-8b" in empty.ok("models").out
    rows = {row["name"]: row for row in empty.ok("models", "list", "--json").json}
    assert rows["bge-m3"]["licence"] == "MIT"
    assert rows["medgemma-27b"]["terms"]
    assert not any(row["registered"] for row in rows.values())
    assert not empty.data.exists()


def test_from_a_stick_to_use(empty: Localmed, qwen: Path) -> None:
    added = empty.ok("models", "add", str(qwen), "--json").json
    assert (added["name"], added["registered"], added["template"]) == ("qwen3-8b", True, "qwen3")
    assert "qwen3-8b serves chat" in empty.ok("models", "use", "chat", "qwen3-8b").out
    assert empty.ok("models", "verify", "--json").json == {"qwen3-8b": []}
    rows = {row["name"]: row for row in empty.ok("models", "list", "--json").json}
    assert rows["qwen3-8b"]["serves"] == ["chat"]
    assert rows["qwen3-8b"]["sha256"] == added["sha256"] != ""
    assert added["sha256"][:12] in empty.ok("models", "list").out
    assert "none serves chat" in empty.ok("models", "remove", "qwen3-8b", "--yes").out
    log = Audit(empty.data)
    assert [(entry.action, entry.subject) for entry in log.entries() if entry.outcome != BEGUN] == [
        ("model add", "qwen3-8b"), ("model use", "qwen3-8b"), ("model remove", "qwen3-8b"),
    ]  # fmt: skip
    assert not log.verify()
    log.close()


@pytest.mark.slow
def test_what_serves_after_a_removal_is_the_profiles_own(empty: Localmed, tmp_path: Path) -> None:
    made = make_sentence_encoder(tmp_path / "ours")
    empty.ok("models", "add", str(made), "--role", "encoder")
    empty.ok("models", "use", "encoder", "ours")
    assert empty.ok("models", "remove", "ours", "--yes").out == "Removed ours\ne5 serves encoder\n"
    assert empty.ok("models", "verify").out == "No model is registered\n"
    assert empty.ok("models", "verify", "--json").json == {}


def test_a_host_that_owns_another_model_is_told_of(empty: Localmed) -> None:
    """Its choices are those of ``house.CHOICES``: none of this folder's."""
    house = House(empty.data).start()
    try:
        out = empty.ok("models", "use", "reranker", "none").out
        assert out.startswith(f"none serves reranker\n{said('models.restart')[:60]}")
        assert "host" not in empty.ok("models", "use", "terms", "none").out  # of no concern to a host
    finally:
        house.stop()
    assert empty.ok("models", "use", "reranker", "none").out == "none serves reranker\n"


def test_an_unlisted_model_says_so(empty: Localmed, tmp_path: Path) -> None:
    path = make(tmp_path / "other.gguf", files.gguf())
    assert "--role" in empty("models", "add", str(path)).failed(2)
    ran = empty.ok("models", "add", str(path), "--role", "chat", "--as", "ours", "--template", "llama3")
    assert phrase("models.no_licence") in ran.out
    assert "unlisted" in empty.ok("models", "list").out


def test_verify_names_the_file_that_changed(empty: Localmed, qwen: Path) -> None:
    empty.ok("models", "add", str(qwen))
    path = empty.data / "models" / "qwen3-8b" / qwen.name
    path.chmod(0o600)
    path.write_bytes(files.gguf()[:-1] + b"x")
    ran = empty("models", "verify")
    assert (ran.code, ran.out) == (6, f"qwen3-8b: {qwen.name} has changed (sha256 differs)\n")
    (problem,) = empty("models", "verify", "qwen3-8b", "--json").json["qwen3-8b"]
    assert (problem["code"], problem["parameters"]) == ("file.changed", {"file": qwen.name})
    assert "sha256 differs" in empty("models", "use", "chat", "qwen3-8b").failed(6)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("models", "add", "BAD"), 3),
        (("models", "add", "BAD", "--as", "../x", "--role", "chat"), 2),
        (("models", "verify", "nothing"), 2),
        (("models", "use", "poet", "nothing"), 2),
    ],
)
def test_one_line_and_the_code_of_its_kind(
    empty: Localmed, tmp_path: Path, arguments: tuple[str, ...], code: int
) -> None:
    bad = make(tmp_path / "Qwen3-8B-Q4.gguf", b"GGUF" + b"\xff" * 45)
    empty(*(str(bad) if argument == "BAD" else argument for argument in arguments)).failed(code)


def test_removing_asks(empty: Localmed, qwen: Path) -> None:
    empty.ok("models", "add", str(qwen))
    assert empty("models", "remove", "qwen3-8b", stdin="n\n").code == 130
    assert empty.ok("models", "verify").out == "qwen3-8b: ok\n"


@pytest.mark.slow
def test_ctrl_c_while_adding(empty: Localmed, tmp_path: Path) -> None:
    path = tmp_path / "Qwen3-8B-Q8.gguf"
    make(path, files.gguf(data=0))
    tensors = [("a", (2**30,), 8, 0)]
    head = files.gguf(tensors=tensors, data=0)
    make(path, head)
    os.truncate(path, len(head) + 2**30 // 32 * 34)  # a gigabyte of nothing, which takes a second to hash
    command = [*COMMAND, "--data", str(empty.data), "models", "add", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment()) as process:
        adding = empty.data / "models" / ".adding-qwen3-8b"
        deadline = time.monotonic() + 30
        while not list(adding.glob("*.part")) and time.monotonic() < deadline:
            time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert err.count(b"\n") == 1
    assert sorted(file.name for file in (empty.data / "models").iterdir()) == ["registry.lock"]


def test_the_plan(empty: Localmed, qwen: Path) -> None:
    empty.ok("models", "add", str(qwen))
    plan = empty.ok("models", "plan", "--json").json
    assert plan["machine"]["memory"] > 0
    models = {row["name"]: row for row in plan["models"]}
    assert models["qwen3-8b"]["exact"]
    assert not models["qwen3-32b"]["exact"]
    assert [need["context"] for need in models["qwen3-32b"]["needs"]] == [4096, 8192, 32768]
    assert "estimate" in empty.ok("models", "plan").out


def test_nothing_heavy_is_loaded(empty: Localmed) -> None:
    script = (
        "import sys; from localmed.cli.main import main;"
        f"main.main(['--data', {str(empty.data)!r}, 'models', 'plan', '--json'], standalone_mode=False);"
        "assert not set(sys.modules) & {'torch', 'transformers', 'llama_cpp', 'lancedb', 'onnxruntime'}"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, timeout=60)


def test_what_is_built_in_is_chosen_but_not_added(empty: Localmed, tmp_path: Path) -> None:
    assert empty.ok("models", "use", "chat", "none").out == f"none serves chat\n{said('models.chat_none')}\n"
    assert empty.ok("models", "use", "reranker", "none").out == "none serves reranker\n"
    assert "reranker: none" in empty.ok("models", "list").out
    assert empty.ok("models", "use", "reranker", "default").out == "none serves reranker\n"
    assert empty("models", "use", "encoder", "none").code == 2  # nothing works without
    for name in ("e5", "none", "default", "chat"):
        bad = make(tmp_path / f"{name}.gguf", files.gguf())
        assert "is reserved" in empty("models", "add", str(bad), "--role", "chat").failed(2)


def test_a_chat_model_serves_the_roles_with_one_command(empty: Localmed, qwen: Path) -> None:
    empty.ok("models", "add", str(qwen))
    (empty.data / "localmed.toml").write_text('[roles]\ncoherence = "off"\n')
    out = " ".join(empty.ok("models", "use", "chat", "qwen3-8b").out.split())
    assert phrase("models.not_tested") in out, "the file holds no model"
    with Site(config.load(empty.data)) as site:
        assert site.chat_chosen
        assert site.unfit_roles == frozenset(ROLES), "rules serve until the self-test has been run"
        assert not site.entailment.languages, "nor does it judge before"
    out = " ".join(empty.ok("models", "use", "chat", "qwen3-8b", "--untested").out.split())
    assert phrase("models.chat_roles") in out
    assert said("models.chat_otherwise", roles="coherence") in out
    with Site(config.load(empty.data)) as site:
        assert not site.unfit_roles
        assert "label choice" in site.entailment.name, "it judges where nobody else was chosen to"
        site.keep_unfit({"check"}, None)
        assert not site.entailment.languages, "one that cannot check does not judge"
        site.keep_unfit({"safety"}, {**questions(), "pico": "what an earlier version asked"})
        assert site.unfit_roles == {"safety", "pico"}
    out = " ".join(empty.ok("models", "use", "chat", "qwen3-8b").out.split())
    assert phrase("models.not_tested_again") in out, "the file holds no model"
    assert said("models.chat_unfit", roles="safety") in out
    assert said("models.test_outdated", roles="pico") in out
    empty.ok("models", "use", "entailment", "none")
    with Site(config.load(empty.data)) as site:
        assert not site.entailment.languages, "as was chosen"
    empty.ok("models", "use", "chat", "none")
    with Site(config.load(empty.data)) as site:
        assert not site.chat_chosen

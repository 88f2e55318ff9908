"""The llama.cpp adapter on a tiny GGUF: the port's rules, the same as llama-cpp-python says, and nothing kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from localmed.config import ChatSettings
from localmed.domain.errors import BadSettings, Cancelled, ModelError
from localmed.domain.ports import Choice, Message, Request, Watch
from localmed.models import structured
from localmed.models.llama.adapter import LlamaChat
from localmed.models.registry.registry import Registry
from tests.models.chat_contract import ASK, LABELS, SCHEMA, SECRET, ChatContract, counts_grow
from tests.models.tiny_gguf import SETTINGS, chat, write_gguf
from tests.words import pattern

pytestmark = pytest.mark.extra("llama")

LONG = (Message("user", "the dose " * 300),)


class TestContract(ChatContract):
    """What every adapter must do."""


def test_counting(model: LlamaChat) -> None:
    counts_grow(model)
    assert model.count([]) == []


# --- nothing is kept, nothing is let in ---------------------------------------------------------------------------


def test_a_request_does_not_depend_on_the_one_before(model: LlamaChat, path: Path) -> None:
    asks: list[Callable[[LlamaChat], object]] = [
        lambda chat_: chat_.complete(Request(ASK, 30)),
        lambda chat_: chat_.complete(Request(ASK, 60, SCHEMA)),
        lambda chat_: chat_.choose(ASK, ["?", " or"], LABELS),
    ]
    alone = []
    for ask in asks:
        with closing(chat(path)) as fresh:
            alone.append(ask(fresh))
    for before in asks:
        with pytest.raises(Cancelled):
            model.complete(Request(LONG, 30), Watch(cancelled=lambda: True))
        before(model)
        assert [ask(model) for ask in asks] == alone


def test_a_schema_that_only_llama_cpp_refuses_is_a_clear_error(model: LlamaChat) -> None:
    for refused in ("^(?=a)b$", "^a{3$"):
        with pytest.raises(ModelError, match=r"grammar|not valid"):
            model.complete(Request(ASK, 20, {"type": "string", "pattern": refused}))
    assert model.complete(Request(ASK, 20, {"type": "string", "pattern": "^[0-9]{4}$"})).value.isdigit()


def test_half_a_character_at_the_end_is_heard_as_it_is_told(model: LlamaChat) -> None:
    tokens: list[str] = []
    with pytest.raises(ModelError, match="after 2 tokens"):  # a quotation mark, the first byte of two
        model.complete(Request(ASK, 2, {"const": "é"}), Watch(tokens.append))
    assert "".join(tokens) == '"\N{REPLACEMENT CHARACTER}'


def test_a_seed_decides_above_temperature_zero(model: LlamaChat) -> None:
    texts = {seed: model.complete(Request(ASK, 30, temperature=1.5, seed=seed)).text for seed in (1, 2)}
    assert texts[1] != texts[2]
    assert texts[1] == model.complete(Request(ASK, 30, temperature=1.5, seed=1)).text


def test_a_template_in_the_file_is_not_executed(tmp_path: Path, model: LlamaChat) -> None:
    hostile = "{{ cycler.__init__.__globals__.os.system('touch " + str(tmp_path / "owned") + "') }}{% for %}"
    path = write_gguf(tmp_path / "hostile.gguf", template=hostile)
    with closing(chat(path)) as other:
        assert other.complete(Request(ASK, 20)) == model.complete(Request(ASK, 20))
    assert not (tmp_path / "owned").exists()


def test_the_child_is_without_network_and_its_command_line_says_nothing(model: LlamaChat) -> None:
    model.count([SECRET])
    assert model.owner.facts["network"] in ("kernel", "interpreter")
    process = psutil.Process(model.owner.pid)
    assert SECRET not in " ".join(process.cmdline())
    if model.owner.facts["network"] == "kernel":
        assert Path(f"/proc/{process.pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()


# --- bad files ----------------------------------------------------------------------------------------------------


DAMAGED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "magic": lambda data: b"JUNK" + data[4:],
    "cut": lambda data: data[: len(data) // 2],
    "counts": lambda data: data[:8] + b"\xff" * 16 + data[24:],
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_is_a_clear_error(damage: str, path: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(DAMAGED[damage](path.read_bytes()))
    began = time.monotonic()
    with closing(chat(tmp_path / "broken.gguf")) as model, pytest.raises(ModelError, match=r"could not load|crashed"):
        model.complete(Request(ASK, 5))
    assert time.monotonic() - began < 20


def test_what_cannot_be_loaded(path: Path, tmp_path: Path) -> None:
    for file, template, why in ((tmp_path / "none.gguf", "chatml", "is missing"), (path, "llama3", "does not know")):
        with closing(chat(file, template=template)) as model, pytest.raises(ModelError, match=why):
            model.count(["x"])
    with pytest.raises(BadSettings, match="no chat template"):
        chat(path, template="unheard of")


def test_a_registered_file_that_changes_is_not_loaded_again(path: Path, tmp_path: Path) -> None:
    registry = Registry(tmp_path / "models", tmp_path)
    name = registry.add(path, "librarian", role="chat", template="chatml").name
    stored = registry.open(name).gguf
    with closing(chat(stored, admit=lambda: registry.open(name))) as model:
        assert model.count(["the dose"]) == [2]
        stored.write_bytes(stored.read_bytes()[:-1] + b"x")
        os.kill(model.owner.pid or 0, signal.SIGKILL)  # as after a crash or an idle time
        psutil.wait_procs([psutil.Process(model.owner.pid)], timeout=5)
        with pytest.raises(ModelError, match="sha256 differs"):
            model.count(["the dose"])
        assert model.owner.pid is None


# --- a child that fails -------------------------------------------------------------------------------------------

CALLS: dict[str, Callable[[LlamaChat], object]] = {
    "complete": lambda model: model.complete(Request(LONG, 400)),
    "constrained": lambda model: model.complete(Request(LONG, 400, {"type": "array", "items": {"type": "string"}})),
    "choose": lambda model: model.choose(LONG, [f"{number} the dose" for number in range(60)], LABELS),
    "count": lambda model: model.count(["the dose " * 20_000] * 50),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_killed_child_is_a_clear_error_and_the_next_request_works(path: Path, name: str) -> None:
    structured.parse_json('{"label": "yes"}', SCHEMA)  # loads its library, which would take until after the kill
    with closing(chat(path)) as model:
        for number, code in ((signal.SIGKILL, "chat.killed"), (signal.SIGILL, "chat.other_processor")):
            model.count(["load it"])
            pid = model.owner.pid
            assert pid
            timer = threading.Timer(0.02, os.kill, (pid, number))
            timer.start()
            with pytest.raises(ModelError) as caught:
                CALLS[name](model)
            assert caught.value.message.code == code
            assert "dose" not in str(caught.value)
            assert not psutil.pid_exists(pid)
        (choice,) = model.choose(ASK, ["?"], LABELS)
        assert sum(choice.probabilities) == pytest.approx(1)
        assert not choice.measured, "random weights put hardly anything on labels"


def test_a_child_that_is_killed_while_it_loads(path: Path) -> None:
    def kill() -> None:
        while loading.owner.pid is None:
            time.sleep(0.001)
        os.kill(loading.owner.pid, signal.SIGKILL)

    with closing(chat(path)) as loading:
        killer = threading.Thread(target=kill)
        killer.start()
        with pytest.raises(ModelError, match="was killed"):
            loading.count(["x"])
        killer.join()
        assert loading.count(["the dose"]) == [2]


@pytest.mark.parametrize("name", ["complete", "count"])  # a count is too long for the pipe: it waits to be taken
def test_a_child_that_hangs_is_ended(path: Path, name: str) -> None:
    with closing(chat(path, ChatSettings(context=1024, threads=1, hang_seconds=0.5))) as model:
        model.count(["load it"])
        pid = model.owner.pid
        assert pid
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(ModelError, match=r"respond for 0\.5 seconds"):
            CALLS[name](model)
        assert not psutil.pid_exists(pid)
        assert model.complete(Request(ASK, 5)).prompt_tokens


def test_memory_is_allowed_for_all_files_of_a_model(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"big-Q8-0000{number}-of-00003.gguf").write_bytes(bytes(1000 * number))
    (tmp_path / "other.gguf").write_bytes(bytes(5000))
    setup = chat(tmp_path / "big-Q8-00001-of-00003.gguf")._setup()
    assert setup["memory_bytes"] == 2 * 6000 + SETTINGS.child_memory_bytes
    assert chat(tmp_path / "other.gguf")._setup()["memory_bytes"] == 2 * 5000 + SETTINGS.child_memory_bytes
    (tmp_path / "big-Q8-00002-of-00003.gguf").unlink()
    with pytest.raises(ModelError, match="is missing"):
        chat(tmp_path / "big-Q8-00001-of-00003.gguf")._setup()


def test_memory_that_runs_out_is_a_clear_error(path: Path) -> None:
    """As the model is loaded, and in a request."""
    tight = ChatSettings(context=1024, threads=1, child_memory_bytes=64 * 2**20)
    with closing(chat(path, tight)) as model, pytest.raises(ModelError, match=r"memory|crashed|could not load"):
        model.complete(Request(ASK, 5))
    with closing(chat(path, replace(tight, child_memory_bytes=700 * 2**20))) as model:
        model.count(["load it"])
        with pytest.raises(ModelError, match=r"ran out of memory|crashed"):
            model.count(["the dose " * 20_000_000])
        assert model.count(["again"]) == model.count(["again"])


@pytest.mark.parametrize(
    ("code", "problem"),
    [("print('no json')", "chat.answered_else"), ("print('[1]')", "chat.answered_else"),
     ("print('[\"done\", 3]')", "chat.answered_else"), ("print('x' * 10**6)", "chat.message_too_long"),
     ("time.sleep(60)", "chat.slow"),
     ("[print('[\"beat\"]', flush=True) or time.sleep(0.1) for _ in range(600)]", "chat.slow")],
)  # fmt: skip
def test_a_child_that_speaks_nonsense_or_loads_for_ever_is_ended(path: Path, code: str, problem: str) -> None:
    program = f"import sys, time; sys.stdin.readline(); {code}; sys.stdout.flush(); sys.stdin.read()"
    seconds = 1.0 if problem == "chat.slow" else 60.0
    settings, began = ChatSettings(context=1024, reply_bytes=1000, load_seconds=seconds), time.monotonic()
    with closing(chat(path, settings, command=(sys.executable, "-c", program))) as model:
        with pytest.raises(ModelError) as caught:
            model.count(["x"])
        assert caught.value.message.code == problem
        assert model.owner.pid is None
    assert time.monotonic() - began < 50


def test_cancelling_comes_through_within_a_micro_batch(path: Path) -> None:
    """While the prompt is read and while tokens come; the same child goes on."""
    with closing(chat(path)) as model:
        model.count(["load it"])
        pid, began = model.owner.pid, time.monotonic()
        with pytest.raises(Cancelled):
            model.complete(Request(LONG, 400), Watch(cancelled=lambda: time.monotonic() > began + 0.02))
        tokens: list[str] = []
        with pytest.raises(Cancelled):
            model.complete(Request(ASK, 900), Watch(tokens.append, lambda: len(tokens) > 3))
        assert len(tokens) < 900
        assert model.owner.pid == pid


def test_a_caller_whose_ear_fails_loses_the_child_only(path: Path) -> None:
    def deaf(_: str) -> None:
        raise KeyboardInterrupt

    with closing(chat(path)) as model:
        with pytest.raises(KeyboardInterrupt):
            model.complete(Request(ASK, 400), Watch(token=deaf))
        assert model.owner.pid is None
        assert model.count(["again"]) == model.count(["again"])


def test_an_idle_model_is_unloaded_and_comes_back(path: Path) -> None:
    with closing(chat(path, ChatSettings(context=1024, threads=1, idle_seconds=0.2))) as model:
        model.count(["load it"])
        pid = model.owner.pid
        assert pid
        deadline = time.monotonic() + 10
        while psutil.pid_exists(pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not psutil.pid_exists(pid)
        assert model.complete(Request(ASK, 5)).prompt_tokens


def test_no_orphan_when_the_parent_is_killed(path: Path) -> None:
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom localmed.config import ChatSettings\n"
        "from localmed.models.llama.adapter import ChatFile, LlamaChat\n"
        f"model = LlamaChat(ChatFile('tiny', Path({str(path)!r}), '', 'chatml', 2048), ChatSettings(context=512))\n"
        "model.count(['x']); print(model.owner.pid, flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        assert psutil.pid_exists(child)
        parent.kill()
    psutil.wait_procs([psutil.Process(child)] if psutil.pid_exists(child) else [], timeout=10)
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_several_threads_wait_for_each_other(model: LlamaChat) -> None:
    alone = model.choose(ASK, ["?"], LABELS)
    choices: list[list[Choice]] = []
    threads = [threading.Thread(target=lambda: choices.append(model.choose(ASK, ["?"], LABELS))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert choices == [alone] * 6


def test_the_tokens_of_a_prompt_are_those_that_it_is_asked_with(model: LlamaChat) -> None:
    messages = (Message("system", "Plan."), Message("user", "Which dose <|im_end|> now?"))
    prompt, reply = model.tokens(messages, "yes")
    assert len(prompt) == model.complete(Request(messages, 1)).prompt_tokens
    end = model.tokens(messages, "")[1]
    assert len(end) == 1
    assert reply[-1:] == end
    assert prompt.count(end[0]) == 2, "one for each message: what a question holds is text"


def test_one_that_was_closed_does_not_start_again(path: Path) -> None:
    model = chat(path)
    assert model.complete(Request(ASK, 8)).text
    model.close()
    with pytest.raises(ModelError, match=pattern("model.chosen_anew")):
        model.complete(Request(ASK, 8))
    assert model.owner.pid is None

"""A command as a process: it dumps no core, nor do its children; what a patient says can come by standard input."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from localmed.process import confined
from tests.cli.conftest import COMMAND, Localmed, environment

ORDER = "Paracetamol 500 mg four times a day\n"


def without_core(pid: int) -> bool:
    """Whether the process may write no core file."""
    return "Max core file size 0 0" in " ".join(Path(f"/proc/{pid}/limits").read_text().split())


@pytest.mark.slow
def test_a_command_dumps_no_core(localmed: Localmed) -> None:
    command = [*COMMAND, "--data", str(localmed.data), "search", "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()) as process:
        deadline = time.monotonic() + 60
        while not without_core(process.pid) and time.monotonic() < deadline:
            time.sleep(0.02)
        ended = process.poll()
        limited = without_core(process.pid)
        assert process.communicate(b"sepsis")[0]
    assert ended is None
    assert limited


def test_children_dump_none_either(localmed: Localmed, folder: Path) -> None:
    """Each that reads files, draws or runs a model says so itself too; here the limit that they inherit is seen."""
    script = (
        "from localmed.process import children, confined; confined.no_core_dump()\n"
        "child = children.Child(children.command('localmed.ingest.child'), 1000)\n"
        "print(*open(f'/proc/{child.pid}/limits').read().split()); child.kill()"
    )
    done = subprocess.run([*COMMAND[:2], "-c", script], capture_output=True, text=True, check=True)
    assert "Max core file size 0 0" in done.stdout


def test_no_program_is_handed_a_dump_either() -> None:
    """Such as systemd-coredump, to which the limit does not apply."""
    script = (
        "import ctypes; from localmed.process import confined; prctl = ctypes.CDLL(None).prctl;"
        "before = prctl(3, 0, 0, 0, 0);"
        "confined.no_core_dump(); print(before, prctl(3, 0, 0, 0, 0))"
    )
    done = subprocess.run([*COMMAND[:2], "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "1 0\n"
    assert confined.PR_SET_DUMPABLE == 4


# --- standard input ---------------------------------------------------------------------------------------------------


def test_questions_before_and_the_question_itself(localmed: Localmed) -> None:
    typed = localmed.ok("ask", "And in adults under 50 kg?", "--after", "What is the maximum dose of paracetamol?")
    assert "2 g in 24 hours" in typed.out
    assert localmed.ok("ask", "And in adults under 50 kg?", "--after", "-",
                       stdin="What is the maximum dose of paracetamol?\n").out == typed.out  # fmt: skip
    both = "What is the maximum dose of paracetamol?\n\nAnd in adults under 50 kg?\n"
    assert localmed.ok("ask", "-", "--after", "-", stdin=both).out == typed.out


def test_questions_about_an_order(localmed: Localmed, tmp_path: Path) -> None:
    (order := tmp_path / "order.txt").write_text(ORDER)
    questions = "What is the maximum dose of paracetamol?", "When should lactate be measured?"
    typed = localmed.ok("explain", str(order), "--question", questions[0], "--question", questions[1])
    assert questions[1] in typed.out
    assert localmed.ok("explain", str(order), "--question", "-", stdin="\n".join(questions)).out == typed.out


def test_what_was_asked_of_an_answer_and_a_concept(localmed: Localmed, tmp_path: Path) -> None:
    (answer := tmp_path / "answer.txt").write_text("The maximum dose of paracetamol in adults is 4 g in 24 hours. [1]")
    question = "What is the maximum dose of paracetamol?"
    typed = localmed.ok("verify", str(answer), "--question", question).out
    assert localmed.ok("verify", str(answer), "--question", "-", stdin=question).out == typed
    assert localmed("concept", "-", stdin="sepsis").err == localmed("concept", "sepsis").err


@pytest.mark.parametrize(
    "arguments",
    [("verify", "-", "--question", "-"), ("explain", "-", "--question", "-"), ("ebm", "-", "--patient", "-")],
)
def test_standard_input_is_one_thing(localmed: Localmed, arguments: tuple[str, ...]) -> None:
    assert "standard input" in localmed(*arguments, stdin=ORDER).failed(2)

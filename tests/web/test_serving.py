"""Where the server may listen, what a stream does when the login ends, and the command from its start to its end."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localmed.domain import Answer
from localmed.domain.errors import InputError, UsageError
from localmed.people import accounts
from localmed.site.session import Session, local_caller
from localmed.web.serving import Address, loopback
from tests.cli.conftest import COMMAND, environment
from tests.web.conftest import Clients
from tests.web.test_ask import QUESTION
from tests.words import said


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.5", "::", "ward.example", "192.168.1.2"])
def test_the_network_needs_tls(host: str) -> None:
    with pytest.raises(UsageError) as raised:
        Address(host).checked()
    assert raised.value.message.code == "web.serve.plain"
    assert Address(host, plain=True).checked().url.startswith("http://")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.5.5.5"])
def test_the_loopback_needs_none(host: str) -> None:
    assert loopback(host)
    assert Address(host).checked() == Address(host)


def test_a_file_that_is_no_certificate_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ward.pem"
    file.write_text("no certificate")
    with pytest.raises(InputError) as raised:
        Address("10.0.0.5", certificate=file, key=file).checked()
    assert raised.value.message.code == "web.serve.tls"


def test_no_answer_is_handed_to_a_login_that_has_ended(
    copied_clients: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account is disabled while its question is answered."""
    reader, ask = copied_clients("reader"), Session.ask
    admin = Session(copied_clients.site, local_caller(copied_clients.settings))

    def disabling(session: Session, *arguments: Any, **options: Any) -> Answer:
        answer = ask(session, *arguments, **options)
        accounts.change(admin, replace(accounts.account(admin.data, "reader"), disabled=True))
        return answer

    monkeypatch.setattr(Session, "ask", disabling)
    values = {"form": reader.token(), "question": QUESTION}
    reply = reader.http.post("/ask", data=values, headers={"accept": "text/event-stream"})
    events = [json.loads(line[6:]) for line in reply.text.splitlines() if line.startswith("data: ")]
    assert "answer" not in [event["kind"] for event in events]
    value = said("web.error.signed_out")
    assert events[-1] == {"kind": "error", "value": value, "code": "web.error.signed_out"}


@pytest.mark.slow
def test_the_command_serves_until_it_is_ended(tmp_path: Path) -> None:
    command = [*COMMAND, "--data", str(tmp_path / "data"), "serve", "--port", "8797"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    assert server.stdout
    assert "http://127.0.0.1:8797/" in server.stdout.readline()
    assert re.search(r"one-time code: [0-9a-f]{10}$", server.stdout.readline().strip())
    for _ in range(50):
        try:
            with urllib.request.urlopen("http://127.0.0.1:8797/", timeout=10) as reply:
                page = reply.read().decode()
            break
        except OSError:  # it says where just before it listens
            time.sleep(0.2)
    assert "First start" in page
    server.send_signal(signal.SIGTERM)
    out, err = server.communicate(timeout=60)
    assert (server.returncode, out) == (0, "")
    assert "Traceback" not in err

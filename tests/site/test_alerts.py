"""Alerts: kept until they are over, told once, to the machine and the hospital, never elsewhere."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from localmed.config import AlertSettings, Settings
from localmed.domain import message
from localmed.domain.errors import BadSettings
from localmed.site import alerts

TEXT = message("refresh.failed", why=message("hold.standing", count=2))


def test_an_alert_stands_until_it_is_over(settings: Settings) -> None:
    alerts.tell(settings, "refresh", TEXT)
    alerts.tell(settings, "damage", TEXT)
    assert {one.kind for one in alerts.alerts(settings.data)} == {"refresh", "damage"}
    alerts.clear(settings.data, "refresh")
    assert [(one.kind, one.text) for one in alerts.alerts(settings.data)] == [("damage", TEXT)]


@pytest.mark.parametrize("host", ["mail.example.org", "8.8.8.8", "0.0.0.0", "2001:4860:4860::8888", "localhost.evil"])
def test_a_relay_outside_the_hospital_is_refused(settings: Settings, host: str) -> None:
    with pytest.raises(BadSettings):
        alerts.relay(replace(settings, alerts=AlertSettings(mail_host=host)))
    alerts.tell(replace(settings, alerts=AlertSettings(mail_host=host, mail_to=("it@x",))), "refresh", TEXT)
    assert {one.kind for one in alerts.alerts(settings.data)} == {"refresh", "mail"}, "and that it was not sent"


def test_a_relay_within_is_taken(settings: Settings) -> None:
    for host in ("localhost", "127.0.0.1", "10.0.0.5", "192.168.1.9", "fd00::1"):
        assert alerts.relay(replace(settings, alerts=AlertSettings(mail_host=host))), host


def test_a_letter_is_sent_once(settings: Settings) -> None:
    lines: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        relay = threading.Thread(target=lambda: lines.extend(taken(server)))
        relay.start()
        port = int(server.getsockname()[1])
        chosen = AlertSettings(syslog=False, mail_host="127.0.0.1", mail_port=port, mail_to=("it@hospital.example",))
        alerts.tell(replace(settings, alerts=chosen), "refresh", TEXT)
        relay.join(30)
        alerts.tell(replace(settings, alerts=chosen), "refresh", TEXT)  # to nobody: the relay has gone
    assert "Subject: localmed: refresh" in lines
    assert [line for line in lines if "Files on hold because" in line]
    assert [one.kind for one in alerts.alerts(settings.data)] == ["refresh"]


def taken(server: socket.socket) -> list[str]:
    """The lines of one letter."""
    connection, _ = server.accept()
    lines, within = [], False
    with connection, connection.makefile("rw", newline="\r\n") as stream:
        print("220 relay", file=stream, end="\r\n", flush=True)
        for line in stream:
            lines.append(line.strip())
            within = lines[-1] == "data" or (within and lines[-1] != ".")
            if not within or lines[-1] == "data":
                reply = {"data": "354 go on", "QUIT": "221 bye"}.get(lines[-1], "250 ok")
                print(reply, file=stream, end="\r\n", flush=True)
    return lines


def test_the_syslog_gets_a_line(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(str(tmp_path / "log"))
        alerts._to_syslog("<28>localmed: refresh: failed", str(tmp_path / "log"))
        assert log.recv(200) == b"<28>localmed: refresh: failed"

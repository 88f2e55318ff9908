"""Alerts: conditions that an administrator must resolve, shown above every page and after a command's output.

Examples: a failed refresh, a change blocked by the canaries, a full disk, a lost GPU, damage, a directory that refuses
look-ups. There is one alert of each kind, the newest. A new text also goes to syslog and, if configured, to a mail
relay given as an address of this machine or a private network, because names would need a lookup. Alerts contain no
question, record or text of a document. A failure to raise an alert never fails the caller.
"""

from __future__ import annotations

import ipaddress
import smtplib
import socket
import sqlite3
from contextlib import suppress
from dataclasses import dataclass
from email.message import EmailMessage
from pathlib import Path

from localmed.config import Settings
from localmed.domain import Message, message
from localmed.domain.errors import BadSettings, LocalmedError
from localmed.library.journal import now
from localmed.library.state import rows, selected
from localmed.messages import from_text, render, to_text

SYSLOG = "/dev/log"
WARNING = 3 << 3 | 4  # facility daemon, severity warning


@dataclass(frozen=True, slots=True)
class Alert:
    """A condition since ``time`` (ISO 8601); ``kind``: refresh, canaries, disk, backup and others."""

    kind: str
    time: str
    text: Message


def alerts(data: Path) -> tuple[Alert, ...]:
    """The current alerts, newest first; empty where the state file is missing or unreadable."""
    with suppress(LocalmedError, sqlite3.Error, OSError):
        query = "SELECT kind, time, text FROM alerts ORDER BY time DESC, kind"
        return tuple(Alert(kind, time, from_text(text)) for kind, time, text in selected(data, query))
    return ()


def tell(settings: Settings, kind: str, text: Message) -> None:
    """Raise an alert, and send it if its text is new."""
    if any(one.kind == kind and one.text == text for one in alerts(settings.data)):
        return
    with suppress(LocalmedError, sqlite3.Error, OSError), rows(settings.data) as state:  # of a full disk, for one
        state.execute("INSERT OR REPLACE INTO alerts VALUES (?, ?, ?)", (kind, now(), to_text(text)))
    words = render(text, "en")
    if settings.alerts.syslog:
        _to_syslog(f"<{WARNING}>localmed: {kind}: {words}")
    if settings.alerts.mail_host and (fault := _by_mail(settings, kind, words)) and kind != "mail":
        tell(settings, "mail", fault)


def clear(data: Path, *kinds: str) -> None:
    """Remove the alerts of these kinds."""
    if any(one.kind in kinds for one in alerts(data)):
        with suppress(LocalmedError, sqlite3.Error, OSError), rows(data) as state:
            for kind in kinds:
                state.execute("DELETE FROM alerts WHERE kind = ?", (kind,))


def relay(settings: Settings) -> str:
    """The address of the mail relay ("": none); raise ``BadSettings`` for one that may be outside the hospital."""
    host = settings.alerts.mail_host
    if not host:
        return ""
    with suppress(ValueError):
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
        if (address.is_loopback or address.is_private) and not address.is_unspecified:
            return str(address)
    raise BadSettings("alert.relay", host=host)


def _to_syslog(line: str, path: str = SYSLOG) -> None:
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.setblocking(False)
        log.sendto(line.encode("utf-8", "replace"), path)


def _by_mail(settings: Settings, kind: str, words: str) -> Message | None:
    chosen = settings.alerts
    letter = EmailMessage()
    letter["Subject"], letter["From"], letter["To"] = f"localmed: {kind}", chosen.mail_from, ", ".join(chosen.mail_to)
    letter.set_content(words)
    try:
        own = socket.gethostname() or "localhost"  # smtplib would look its own name up
        with smtplib.SMTP(relay(settings), chosen.mail_port, own, chosen.mail_seconds) as smtp:
            smtp.send_message(letter)
    except LocalmedError as error:
        return error.messages[0]
    except (OSError, smtplib.SMTPException, ValueError) as error:
        return message("alert.not_sent", host=chosen.mail_host, kind=type(error).__name__)
    return None

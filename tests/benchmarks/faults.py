"""Faults that reach people: uploads without a login, and a model host that is killed while the library changes.

python -m tests.benchmarks.run --only faults            five minutes
"""

from __future__ import annotations

import os
import random
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from localmed.config import LibrarySettings, Settings
from localmed.domain.accounts import Account, SessionRole
from localmed.domain.errors import Busy, ModelError
from localmed.library import generations
from localmed.people import accounts
from localmed.site import canary_gate, importing
from localmed.site.session import Session, local_caller
from localmed.site.site import Site
from localmed.web.visits import LOGIN_COOKIE
from tests.benchmarks.common import Place, Row, met
from tests.fakes import HashedWords, described, write
from tests.site.asked import CITED, SEPSIS
from tests.web.conftest import PASSWORD, Clients, served

SENDERS, SIZE, PIECE = 20, 512 * 2**20, 64 * 2**10
SENT_AT_MOST = 64 * 2**20  # bytes that a sender goes on sending though nothing answers
PUBLICATIONS = 20
SMALL = LibrarySettings(writer_memory_bytes=15_000_000)
HEAD = (
    "POST /library/upload HTTP/1.1\r\nhost: {host}\r\ncontent-type: multipart/form-data; boundary=x\r\n"
    "content-length: {size}\r\naccept: application/json\r\n{cookie}\r\n"
)
FORM = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.pdf"\r\n\r\n'


def run(_: Place) -> list[Row]:
    """All of them."""
    rows: list[Row] = []
    for part in (unsigned_uploads, killed_hosts):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(part(Path(folder)))
    return rows


# --- uploads without a login ------------------------------------------------------------------------------------------


def unsigned_uploads(folder: Path) -> Row:
    """What the server puts on the disk of uploads by nobody; of a librarian's it is seen that it is counted."""
    settings = Settings(folder / "data", library=SMALL)
    with Site(settings, HashedWords()) as site:
        accounts.create(Session(site, local_caller(settings)), Account("librarian", SessionRole.LIBRARIAN), PASSWORD)
        clients = Clients(settings, site)
        login = f"cookie: {LOGIN_COOKIE}={clients('librarian').http.cookies[LOGIN_COOKIE]}\r\n"
        with served(clients) as url, _Spooled() as spooled:
            statuses = _all_at_once(url, "", SENDERS, SIZE)
            of_nobody, spooled.most = spooled.most, 0
            _all_at_once(url, login, 1, 32 * 2**20)
            of_librarian = spooled.most
    how = f"{SENDERS} at once, {SIZE // 2**20} MiB each, statuses {dict(statuses)}; of a librarian's upload of 32 MiB"
    return Row(
        "uploads without a login: bytes on the disk",
        "0",
        f"{of_nobody}",
        met(of_nobody == 0 < of_librarian),
        f"{how} {of_librarian / 2**20:.0f} MiB were seen",
    )


def _all_at_once(url: str, cookie: str, senders: int, size: int) -> Counter[str]:
    statuses, host = Counter[str](), urlsplit(url).netloc

    def send() -> None:
        with socket.create_connection(("127.0.0.1", int(host.rpartition(":")[2])), timeout=20) as line:
            sent, body = 0, FORM.ljust(PIECE, b"a")
            with suppress(OSError):
                line.sendall(HEAD.format(host=host, size=size, cookie=cookie).encode())
                line.settimeout(2)
                while sent < min(size, SENT_AT_MOST):
                    line.sendall(body)
                    sent += len(body)
                    body = b"a" * PIECE
            with suppress(OSError):
                statuses[line.recv(64).decode(errors="replace").partition("\r\n")[0][9:12]] += 1

    threads = [threading.Thread(target=send) for _ in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses


class _Spooled:
    """The most bytes that this process had in files without a name, looked at all the time: where forms are spooled."""

    def __init__(self) -> None:
        self.most, self._over = 0, threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> _Spooled:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.005):
            total = 0
            for number in os.listdir("/proc/self/fd"):  # noqa: PTH208
                with suppress(OSError):
                    state = os.stat(f"/proc/self/fd/{number}")  # noqa: PTH116
                    total += state.st_size if stat.S_ISREG(state.st_mode) and not state.st_nlink else 0
            self.most = max(self.most, total)


# --- a model host that is killed --------------------------------------------------------------------------------------


def killed_hosts(folder: Path) -> Row:
    """Publications during which the model host is killed: what is served was asked the canaries."""
    settings, chance = Settings(folder / "data", library=SMALL), random.Random(28)
    outcomes, unasked = Counter[str](), 0
    with Site(settings) as site:
        session = Session(site, local_caller(settings))
        texts = folder / "texts"
        importing.import_paths(session, [write(texts, {"sepsis.txt": SEPSIS})], described("ward"))
        (settings.data / "canaries.toml").write_text(CITED)
        seconds = 30.0  # of a publication that nothing disturbs, once the first was timed
        for number in range(PUBLICATIONS + 1):
            host = _host(settings.data)
            killer = threading.Timer(chance.uniform(0.0, seconds) if number else seconds, host.kill)
            killer.start()
            began, before = time.monotonic(), generations.served_number(settings.data)
            try:
                write(texts, {f"{number}.txt": f"Text {number}\n\nGive paracetamol for fever {number}.\n"})
                importing.import_paths(session, [texts], described("ward"))
                outcomes["served"] += 1
            except (ModelError, Busy) as error:
                outcomes[type(error).__name__] += 1
            if not number:
                seconds = time.monotonic() - began
                outcomes.clear()
                killer.cancel()
                host.kill()
            killer.join()
            host.wait()
            asked = canary_gate._stored_results(settings.data).basis == canary_gate._results_basis(session)
            unasked += generations.served_number(settings.data) != before and not asked
    told = ", ".join(f"{count} {name}" for name, count in sorted(outcomes.items()))
    how = f"{PUBLICATIONS} publications, the host killed (SIGKILL) at a random moment of each: {told}"
    return Row("generations served unasked though the model host was killed", "0", f"{unasked}", met(not unasked), how)


def _host(data: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "localmed", "--data", str(data), "host"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Ready")
    return process

"""The window under load: a real ``localmed serve`` over the starter corpus, 50 readers who ask, search and open a page.

The readers' programs run on the same cores. A visit is a question (followed to its last event), a search and the page
image of what was cited. Capacity is what four readers who never pause get done; arrivals are drawn from a Poisson
process at half and at twice of it. Memory is that of the server and all its children together, their shared pages
counted once (PSS). The machine's load before it begins stands beside the figures: others' work makes the seconds worse.

    python -m tests.benchmarks.run --only window            about twelve minutes
"""

from __future__ import annotations

import http.client
import json
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import psutil

from localmed.config import Settings
from localmed.domain.accounts import Account
from localmed.people import accounts, logins
from localmed.process.hooks import Hooks
from localmed.site import starter
from localmed.site.session import Session, local_caller
from localmed.site.site import Site
from localmed.web.visits import LOGIN_COOKIE
from tests.benchmarks.common import Place, Row, met, percentile

QUESTIONS = tomllib.loads((starter.CORPORA / "starter_questions.toml").read_text("utf-8"))["question"]
READERS = 50
AT_WORK = 4  # readers who never pause, for the capacity
WARMING, UNLOADED, CAPACITY, HALF, TWICE = 5, 20, 30.0, 300.0, 120.0  # visits; seconds
WARM_UP = 60.0  # seconds of the half load before memory is looked at
LOOK = 10.0  # seconds between two looks at the memory
MOST_GROWTH = 0.05
PATIENCE = 120.0  # seconds until a request counts as failed
Size = tuple[int, int]  # bytes of the server, of its children
KINDS = ("first page", "search", "page image", "answer")


@dataclass(frozen=True)
class Reader:
    """A signed-in browser: its cookie, and the token of its forms."""

    cookie: str
    form: str


@dataclass
class Log:
    """Seconds of each kind of request, and the statuses of those that failed."""

    seconds: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    refused: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, kind: str, seconds: float, fault: str) -> None:
        """A request has ended."""
        with self.lock:
            if fault == "429":
                self.refused[kind] += 1
            elif fault:
                self.wrong[f"{kind}: {fault}"] += 1
            else:
                self.seconds[kind].append(seconds)

    def p95(self, kind: str) -> float:
        """Seconds within which 95 % of a kind were answered; infinite where none was."""
        return percentile(self.seconds[kind], 0.95) if self.seconds[kind] else float("inf")


def run(place: Place) -> list[Row]:
    """All figures of the window."""
    data = place.work / "window-data"
    readers, load = library(data), os.getloadavg()[0]
    with server(data) as (port, process):
        unloaded, half, twice = Log(), Log(), Log()
        for number in range(WARMING):
            visit(port, readers[number], Log(), number)
        for number in range(UNLOADED):
            visit(port, readers[number % READERS], unloaded, number)
        capacity = capacity_of(port, readers)
        memory = arrivals(port, readers, half, capacity / 2, HALF, process)
        after = arrivals(port, readers, twice, 2 * capacity, TWICE, process)
    return [*_latencies(unloaded, load), _half(unloaded, half, capacity), _twice(twice), *_memory(memory, after)]


# --- rows -------------------------------------------------------------------------------------------------------------


def _latencies(unloaded: Log, load: float) -> list[Row]:
    targets = {"first page": 0.1, "search": 0.15, "page image": 0.2}
    how = (
        f"{UNLOADED} visits one after the other, after {WARMING} others; load of the machine before {load:.1f}; "
        "image 0.5 s after the answer"
    )
    return [
        Row(f"window, {kind}, one reader, p95", f"<= {targets[kind] * 1000:.0f} ms" if kind in targets else "",
            f"{unloaded.p95(kind) * 1000:.0f} ms", met(unloaded.p95(kind) <= targets[kind]) if kind in targets else "-",
            f"median {statistics.median(unloaded.seconds[kind]) * 1000:.0f} ms; {how}")
        for kind in KINDS
    ]  # fmt: skip


def _half(unloaded: Log, half: Log, capacity: float) -> Row:
    slower = {kind: half.p95(kind) / unloaded.p95(kind) for kind in KINDS}
    wrong = sum(half.wrong.values()) + sum(half.refused.values())
    how = (
        f"{capacity / 2:.2f} visits/s for {HALF:.0f} s, {len(half.seconds['answer'])} answers; p95 "
        + ", ".join(f"{kind} {half.p95(kind) * 1000:.0f} ms" for kind in KINDS)
        + f"; errors: {_counts(half.wrong + half.refused)}"
    )
    measured = f"{max(slower.values()):.1f}x ({max(slower, key=lambda kind: slower[kind])}), {wrong} errors"
    return Row("window, 50 readers at half of the capacity, p95 against one reader", "<= 3x, 0 errors", measured,
               met(max(slower.values()) <= 3 and not wrong), how)  # fmt: skip


def _twice(twice: Log) -> Row:
    searched = len(twice.seconds["search"])
    how = (
        f"{TWICE:.0f} s; {len(twice.seconds['answer'])} answers, {_counts(twice.refused)} refused (429), {searched} "
        f"searches, p95 {twice.p95('search') * 1000:.0f} ms; errors: {_counts(twice.wrong)}"
    )
    good = not twice.wrong and set(twice.refused) <= {"answer"} and searched > 0
    measured = f"{sum(twice.wrong.values())} other errors, {searched} searches answered"
    return Row("window, 50 readers at twice the capacity", "only 429; search answers", measured, met(good), how)


def _memory(half: list[Size], twice: list[Size]) -> list[Row]:
    """From the warm-up to the end of each phase, by medians of three looks; which process grew stands beside it."""
    warm = _median(half[:3])
    ends = {"half of the capacity": _median(half[-3:]), "twice the capacity": _median(twice[-3:])}
    return [
        Row(f"window, memory from the warm-up to the end of {phase}", f"<= {MOST_GROWTH:.0%}",
            f"{sum(end) / sum(warm) - 1:+.1%}", met(sum(end) / sum(warm) - 1 <= MOST_GROWTH),
            f"PSS after {WARM_UP:.0f} s and at the end: server {_mib(warm[0], end[0])}, "
            f"model host and other children {_mib(warm[1], end[1])} MiB; medians of three looks")
        for phase, end in ends.items()
    ]  # fmt: skip


def _median(sizes: list[Size]) -> Size:
    server, others = zip(*sizes, strict=True)
    return int(statistics.median(server)), int(statistics.median(others))


def _mib(*sizes: int) -> str:
    return ", then ".join(f"{size / 2**20:.0f}" for size in sizes)


def _counts(counted: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(counted.items())) or "none"


# --- the server -------------------------------------------------------------------------------------------------------


def library(data: Path) -> list[Reader]:
    """The starter corpus, imported unless it is there, and the readers, signed in."""
    settings = Settings(data)
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    (data / "localmed.toml").write_text("[web]\nidle_minutes = 600\n")  # fifty readers at half load come seldom
    with Site(settings) as site:
        session = Session(site, local_caller(settings))
        if not (data / "current").exists():
            starter.import_starter(session, Hooks())
        known = {account.user for account in accounts.accounts(data)}
        for number in range(READERS):
            if f"reader{number}" not in known:
                accounts.create(session, Account(f"reader{number}"), "a password of some length")
        return [signed_in(data, accounts.account(data, f"reader{number}")) for number in range(READERS)]


def signed_in(data: Path, account: Account) -> Reader:
    token = logins.begin(data, account)
    login = logins.current(data, token, Settings(data).web)
    assert login
    return Reader(f"{LOGIN_COOKIE}={token}", login.form)


@contextmanager
def server(data: Path, *options: str) -> Iterator[tuple[int, psutil.Process]]:
    """``localmed serve`` on a free port of the loopback, answering; ended afterwards. Its log lies beside ``data``."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "localmed", "--data", str(data), "serve", "--port", str(port), *options]
    with data.with_suffix(".log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.1)
        yield port, psutil.Process(process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def memory_of(process: psutil.Process) -> Size:
    """Bytes of ``process`` and of its children, shared pages counted once."""
    others = 0
    for one in process.children(recursive=True):
        with suppress(psutil.Error):
            others += one.memory_full_info().pss
    return process.memory_full_info().pss, others


# --- the readers ------------------------------------------------------------------------------------------------------


def visit(port: int, reader: Reader, log: Log, number: int, pause: float = 0.5) -> None:
    """The first page, a question, a search, and after ``pause`` the page image of the first citation."""
    question = QUESTIONS[number % len(QUESTIONS)]["text"]
    request(port, reader, log, "first page", "GET", "/")
    events = request(port, reader, log, "answer", "POST", "/ask", question=question)
    request(port, reader, log, "search", "POST", "/search", question=question)
    path = _image(events)
    if path:
        time.sleep(pause)
        request(port, reader, log, "page image", "GET", path)


def request(port: int, reader: Reader, log: Log, kind: str, method: str, path: str, **fields: str) -> str:
    """What the server replies, whole; its seconds and its fault are noted."""
    headers = {"cookie": reader.cookie, "accept": "text/event-stream" if kind == "answer" else "text/html"}
    body = urlencode({"form": reader.form, **fields}) if fields else None
    if body:
        headers["content-type"] = "application/x-www-form-urlencoded"
    begun, fault, text = time.perf_counter(), "", ""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, headers)
        reply = connection.getresponse()
        text = reply.read().decode("utf-8", "replace")
        fault = "" if reply.status == 200 else str(reply.status)
        if kind == "answer" and not fault and '"kind": "answer"' not in text:
            fault = f"no answer ({_error(text)})"
    except (OSError, http.client.HTTPException) as error:  # the second: a reply that broke off
        fault = type(error).__name__
    finally:
        connection.close()
    log.note(kind, time.perf_counter() - begun, fault)
    return text


def _error(events: str) -> str:
    """What the page is told in place of an answer, in our own words."""
    lines = (line[6:] for line in events.splitlines() if line.startswith('data: {"kind": "error"'))
    return str(json.loads(next(lines, '{"value": "the stream ended"}'))["value"])


def _image(events: str) -> str:
    """The address of the page image of an answer's first section; "" where there is none."""
    lines = (line[6:] for line in events.splitlines() if line.startswith('data: {"kind": "answer"'))
    html = str(json.loads(next(lines, '{"value": {"html": ""}}'))["value"]["html"])
    if not (link := re.search(r'href="(/answers/\w+/sources/\w+)\?([^"]*)" data-source', html)):
        return ""
    return f"{link[1]}/image?{link[2].replace('&amp;', '&')}"


def capacity_of(port: int, readers: list[Reader]) -> float:
    """Visits a second that readers who never pause get done."""
    visits, over = Counter[int](), time.perf_counter() + CAPACITY

    def work(start: int) -> None:
        while time.perf_counter() < over:
            visit(port, readers[start], Log(), start + visits[start], 0.0)
            visits[start] += 1

    threads = [threading.Thread(target=work, args=(start,)) for start in range(AT_WORK)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return visits.total() / (time.perf_counter() - over + CAPACITY)


def arrivals(
    port: int, readers: list[Reader], log: Log, rate: float, seconds: float, process: psutil.Process
) -> list[Size]:
    """Visits that begin at ``rate`` a second, whoever is still served; the memory every ten seconds."""
    drawn, begun, number = random.Random(0), time.monotonic(), 0
    threads: list[threading.Thread] = []
    sizes: list[Size] = []
    following = begun
    while following < begun + seconds:
        time.sleep(max(0.0, following - time.monotonic()))
        if time.monotonic() - begun > (WARM_UP if seconds == HALF else 0.0) + LOOK * len(sizes):
            sizes.append(memory_of(process))
        threads.append(threading.Thread(target=visit, args=(port, readers[number % READERS], log, number)))
        threads[-1].start()
        number += 1
        following += drawn.expovariate(rate)
    for thread in threads:
        thread.join(PATIENCE)
    sizes.append(memory_of(process))
    return sizes

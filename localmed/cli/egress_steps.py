"""The steps of ``doctor --egress`` in an empty network: ``python -m localmed.cli.egress_steps STEP FOLDER``.

An import and a question as commands; then the server, and a client that acts as a browser: first account, style sheet
and script, sign-in, a question with its events, a search, a page.
"""

from __future__ import annotations

import fcntl
import http.client
import json
import re
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlencode

QUESTION = "When are antibiotics given in septic shock?"
TEXT = "Sepsis: the first hour\n\nGive antibiotics within one hour of recognition of septic shock. Measure lactate.\n"
MANIFEST = 'name = "proof"\ntitle = "Proof"\nkind = "guideline"\n'
USER, PASSWORD = "proof", "a password for one minute"
BETWEEN_COOKIES = "; "  # RFC 6265
PORT = 8765  # nothing else listens here: the namespace is new
WAIT = 300.0  # seconds for the server to load under strace
UP = 0x1 | 0x40  # IFF_UP and IFF_RUNNING, from <net/if.h>
GET_FLAGS, SET_FLAGS = 0x8913, 0x8914


def loopback_up() -> None:
    """Bring up the namespace's loopback, without which no server can bind."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = bytearray(struct.pack("16sh22x", b"lo", 0))
        fcntl.ioctl(any_socket, GET_FLAGS, request)
        (flags,) = struct.unpack_from("h", request, 16)
        fcntl.ioctl(any_socket, SET_FLAGS, struct.pack("16sh22x", b"lo", flags | UP))


def localmed(folder: Path, *arguments: str) -> list[str]:
    """The command line of localmed on the data folder of the proof."""
    return [sys.executable, "-P", "-m", "localmed", "--data", str(folder / "data"), *arguments]


def import_(folder: Path) -> None:
    """Import a text and, if available, a PDF into a new library."""
    documents = folder / "documents"
    documents.mkdir()
    (documents / "sepsis.txt").write_text(TEXT, "utf-8")
    from localmed.site.starter import CORPORA

    for pdf in sorted((CORPORA / "starter" / "guidelines").glob("*.pdf"))[:1]:
        (documents / pdf.name).write_bytes(pdf.read_bytes())
    (folder / "proof.toml").write_text(MANIFEST, "utf-8")
    manifest = str(folder / "proof.toml")
    subprocess.run(localmed(folder, "import", str(documents), "-c", "proof", "--manifest", manifest), check=True)


def ask(folder: Path) -> None:
    """Ask a question; exit with 1 without sections."""
    done = subprocess.run(localmed(folder, "ask", QUESTION, "--json"), check=True, capture_output=True)
    if json.loads(done.stdout)["status"] != "sections":
        sys.exit(1)


def serve(folder: Path) -> None:
    """Start the server and use it as a browser would."""
    from localmed.config import load
    from localmed.people import accounts

    settings = load(str(folder / "data"))
    code = accounts.first_code(settings.data)
    accounts.create_first(settings.data, code, USER, PASSWORD, settings.web)
    with served(folder):
        Browser().visit()


@contextmanager
def served(folder: Path) -> Iterator[None]:
    """The server, for the length of the block."""
    server = subprocess.Popen(localmed(folder, "serve", "--port", str(PORT)), stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + WAIT
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", PORT), 1):
                break
            if server.poll() is not None or time.monotonic() > deadline:
                sys.exit(1)
            time.sleep(0.2)
        yield
    finally:
        server.terminate()
        server.wait(60)


class Browser:
    """A minimal browser for the pages: cookies, form tokens, an origin."""

    def __init__(self) -> None:
        self.cookies: dict[str, str] = {}

    def fetch(self, method: str, path: str, fields: dict[str, str] | None = None, accept: str = "text/html") -> str:
        """A page after redirections; exit on any status but success."""
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=WAIT)
        origin = f"http://127.0.0.1:{PORT}"
        cookies = BETWEEN_COOKIES.join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"Cookie": cookies, "Origin": origin, "Sec-Fetch-Site": "same-origin", "Accept": accept,
                   "Content-Type": "application/x-www-form-urlencoded"}  # fmt: skip
        connection.request(method, path, urlencode(fields) if fields else None, headers)
        reply = connection.getresponse()
        text = reply.read().decode("utf-8", "replace")
        for cookie in reply.headers.get_all("Set-Cookie") or ():
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        if reply.status in (302, 303, 307):
            return self.fetch("GET", reply.headers["Location"])
        if reply.status != 200:
            sys.exit(f"{method} {path} {reply.status}")
        return text

    def visit(self) -> None:
        """Sign in, load what a page loads, ask, search, sign out."""
        page = self.fetch("POST", "/login", {"user": USER, "password": PASSWORD, "next": "/"})
        for address in re.findall(r'(?:href|src)="(/static/[^"]+)"', page):
            self.fetch("GET", address)
        match = re.search(r'name="form" value="([^"]+)"', self.fetch("GET", "/account"))
        form = {"form": match[1] if match else sys.exit("no form")}
        if '"kind": "answer"' not in self.fetch("POST", "/ask", {**form, "question": QUESTION}, "text/event-stream"):
            sys.exit("no answer")
        self.fetch("GET", f"/search?{urlencode({'question': QUESTION})}")
        self.fetch("GET", "/library/documents")
        self.fetch("POST", "/logout", form)


def main() -> None:
    """Run the step that the command line names."""
    step, folder = sys.argv[1], Path(sys.argv[2])
    loopback_up()
    {"import": import_, "ask": ask, "serve": serve}[step](folder)


if __name__ == "__main__":
    main()

"""A real ``localmed serve``: TLS, two worker processes, a second server on the same data, a model host killed."""

from __future__ import annotations

import http.client
import re
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlencode

import psutil
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from localmed.config import Settings
from localmed.domain import Collection
from localmed.ingest.manifest import Manifest
from localmed.process.environment import ARENAS
from localmed.site import importing
from localmed.site.session import Session, local_caller
from localmed.site.site import Site
from tests.cli.conftest import COMMAND, environment, write_files
from tests.web.conftest import PASSWORD, make_accounts
from tests.words import phrase

QUESTION = "What is the loading dose of vancomycin?"
PATIENCE = 180.0  # seconds that anything may take on a busy machine
HUGE = 2 * 2**30  # bytes
AREA = 64 * 2**20  # bytes


@dataclass
class Browser:
    """Requests to one server, with the cookies it set."""

    port: int
    trusted: ssl.SSLContext | None = None
    cookies: dict[str, str] = field(default_factory=dict)

    def request(self, method: str, path: str, headers: dict[str, str] | None = None, **fields: str) -> tuple[int, str]:
        """The status of the reply, and its text."""
        with self.connected() as line:
            sent = {"cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()), **(headers or {})}
            if fields:
                sent["content-type"] = "application/x-www-form-urlencoded"
            line.request(method, path, urlencode(fields) if fields else None, sent)
            reply = line.getresponse()
            for cookie in reply.headers.get_all("set-cookie") or ():
                name, _, rest = cookie.partition("=")
                self.cookies[name] = rest.partition(";")[0]
                assert ("secure" in rest.lower()) == (self.trusted is not None), "over TLS only where there is TLS"
            assert ("strict-transport-security" in reply.headers) == (self.trusted is not None)
            return reply.status, reply.read().decode()

    @contextmanager
    def connected(self) -> Iterator[http.client.HTTPConnection]:
        """A connection of its own, so that any worker may take it."""
        line: http.client.HTTPConnection
        if self.trusted:
            line = http.client.HTTPSConnection("127.0.0.1", self.port, context=self.trusted, timeout=PATIENCE)
        else:
            line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            yield line
        finally:
            line.close()

    def form(self, path: str, headers: dict[str, str] | None = None, **fields: str) -> tuple[int, str]:
        """Send a form with the login's token."""
        token = re.search(r'name="form" value="([^"]+)"', self.request("GET", "/account")[1])
        return self.request("POST", path, headers, form=token[1] if token else "", **fields)

    def ask(self, question: str = QUESTION) -> tuple[int, str]:
        """The events of an answer."""
        return self.form("/ask", {"accept": "text/event-stream"}, question=question)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of the built-in encoder, with accounts."""
    root = tmp_path_factory.mktemp("served")
    settings = Settings(root / "data")
    with Site(settings) as site:
        session = Session(site, local_caller(settings))
        importing.import_paths(session, [write_files(root / "files")], Manifest(Collection("ward", "Ward documents")))
    make_accounts(settings)
    return settings.data


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that is its own authority, and its key."""
    folder, key = tmp_path_factory.mktemp("tls"), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localmed test")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1)).add_extension(x509.BasicConstraints(True, 0), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.KeyUsage(digital_signature=True, key_cert_sign=True, content_commitment=False,
                                     key_encipherment=False, data_encipherment=False, key_agreement=False,
                                     crl_sign=False, encipher_only=False, decipher_only=False), critical=True)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    chain, private = folder / "ward.pem", folder / "ward.key"
    chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ))  # fmt: skip
    return chain, private


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextmanager
def serving(data: Path, port: int, *options: str) -> Iterator[psutil.Process]:
    """``localmed serve``, answering; it ends by SIGTERM with 0 and leaves no process."""
    command = [*COMMAND, "--data", str(data), "serve", "--port", str(port), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    try:
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
                break
            time.sleep(0.1)
        tree = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        yield tree[0]
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "Traceback" not in err
    _, left = psutil.wait_procs(tree, 30)
    assert left == []


def hosts(server: psutil.Process) -> list[psutil.Process]:
    """The model hosts among the children of ``server``."""
    return [one for one in server.children() if one.status() != psutil.STATUS_ZOMBIE and "host" in one.cmdline()]


def loading_models(server: psutil.Process) -> list[psutil.Process]:
    """Those of ``server`` and all its children into which onnxruntime was loaded."""
    processes = (server, *server.children(recursive=True))
    return [one for one in processes if "onnxruntime" in maps_of(one)]


def maps_of(process: psutil.Process) -> str:
    """The map of the memory of ``process``; none once it has ended, as a renderer's child does with each page drawn."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{process.pid}/maps").read_text()
    return ""


def arenas(process: psutil.Process) -> int:
    """The areas of memory that glibc made for threads of ``process``: of 64 MiB each, what is unused not open to it."""
    maps = maps_of(process)
    areas = re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw-p .*\n\2-([0-9a-f]+) ---p ", maps, re.MULTILINE)
    return sum(int(start, 16) % AREA == 0 and int(end, 16) - int(start, 16) == AREA for start, _, end in areas)


@pytest.mark.slow
def test_over_tls_two_workers_know_the_same_logins_and_end_together(data: Path, certificate: tuple[Path, Path]) -> None:
    chain, key = map(str, certificate)
    port = free_port()
    with serving(data, port, "--tls-cert", chain, "--tls-key", key, "--workers", "2") as server:
        reader = Browser(port, ssl.create_default_context(cafile=chain))
        assert reader.request("POST", "/login", user="reader", password=PASSWORD)[0] == 303
        answered = [reader.request("GET", "/account")[0] for _ in range(12)]
        assert answered == [200] * 12, "whichever worker takes the connection"
        assert '"kind": "answer"' in reader.ask()[1]
        assert '"kind": "answer"' in reader.ask("I want to know the dose, I can not go on like this")[1]
        assert len(hosts(server)) == 1, "the workers share one model host"
        assert loading_models(server) == hosts(server), "a web process loads no model of its own"
        assert max(arenas(one) for one in (server, *server.children())) <= 2 * ARENAS, (
            "a full area goes on in a second one; without the bound the server had 15 and the model host 6"
        )
        status, page = reader.request("POST", "/ask", form="not the token", question=QUESTION)
        assert (status, phrase("web.error.token") in page) == (403, True)
        assert reader.form("/ask", question="x" * 10_000_000)[0] == 413
        assert huge_upload(reader).startswith(b"HTTP/1.1 413")
        with pytest.raises((OSError, http.client.HTTPException)):
            Browser(port).request("GET", "/login")


def huge_upload(browser: Browser) -> bytes:
    """What is replied to a file of 2 GB, of which only the beginning is ever sent."""
    with browser.connected() as line:
        line.connect()
        cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        line.sock.sendall(
            f"POST /library/upload HTTP/1.1\r\nHost: 127.0.0.1:{browser.port}\r\nCookie: {cookies}\r\n"
            f"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {HUGE}\r\n\r\n--x\r\n".encode()
        )
        return bytes(line.sock.recv(100))


@pytest.mark.slow
def test_a_second_server_of_the_data_folder_and_a_model_host_that_is_killed(data: Path) -> None:
    first_port, second_port = free_port(), free_port()
    with serving(data, first_port) as first, serving(data, second_port) as second:
        reader = Browser(first_port)
        assert reader.request("POST", "/login", user="reader", password=PASSWORD)[0] == 303
        assert '"kind": "answer"' in reader.ask()[1]
        other = Browser(second_port, cookies=reader.cookies)
        assert "vancomycin" in other.request("GET", "/history")[1], "a login and what it asked are the data folder's"
        for host in hosts(first):
            host.kill()
        assert "25 mg/kg" in reader.form("/search", question=QUESTION)[1], "found by words at once"
        for browser in (reader, other):
            assert answered_again(browser), "another host was started"
        deadline = time.monotonic() + PATIENCE
        while len(hosts(first)) + len(hosts(second)) > 1 and time.monotonic() < deadline:
            time.sleep(0.5)  # both may have started one: the later one ends by itself
        assert len(hosts(first)) + len(hosts(second)) == 1


@pytest.mark.slow
def test_a_model_host_that_hangs_is_replaced(data: Path, tmp_path: Path) -> None:
    own = tmp_path / "data"
    shutil.copytree(data, own, symlinks=True, ignore=shutil.ignore_patterns("host"))
    (own / "localmed.toml").write_text("[host]\nsilent_seconds = 3.0\n")
    port = free_port()
    with serving(own, port) as server:
        reader = Browser(port)
        assert reader.request("POST", "/login", user="reader", password=PASSWORD)[0] == 303
        (hung,) = hosts(server)
        hung.suspend()
        assert answered_again(reader), "without it, or by another"
        deadline = time.monotonic() + PATIENCE
        while hung.is_running() and time.monotonic() < deadline:
            time.sleep(0.5)
        assert not hung.is_running()
        assert answered_again(reader)


def answered_again(browser: Browser) -> bool:
    """Whether ``browser`` is answered by meaning before long; until then by words, or each question is told why not."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        status, events = browser.ask()
        by_words = phrase("search.words_only") in events
        if '"kind": "answer"' in events and not by_words:
            return True
        assert (status, by_words or '"kind": "error"' in events) == (200, True)
        time.sleep(0.5)
    return False

"""Nothing of a large body is taken from whoever may not send it, and of each sender only so many at a time.

The application is called as a server calls it, with a body of 512 MiB that would be made as it is asked for: what was
asked for is counted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import pytest
from fastapi import FastAPI

from localmed.web import application, protection
from localmed.web.visits import LOGIN_COOKIE
from tests.web.conftest import Clients

T = TypeVar("T")
HUGE = 512 * 2**20
PIECE = 64 * 2**10
BEGUN = b'--x\r\nContent-Disposition: form-data; name="files"; filename="a.pdf"\r\n\r\n'
FORM = "multipart/form-data; boundary=x"


class Sending:
    """A request with a body that comes piece by piece; ``taken`` counts the bytes that were asked for."""

    def __init__(self, path: str, headers: Mapping[str, str], size: int = HUGE, told: bool = True) -> None:
        self.size, self.taken, self.status, self.body = size, 0, 0, b""
        self.held = asyncio.Event()
        length = {"content-length": str(size)} if told else {"transfer-encoding": "chunked"}
        given = {"host": "localhost", "content-type": FORM, "accept": "application/json", **length, **headers}
        self.scope = {
            "type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b"",
            "scheme": "http", "http_version": "1.1", "server": ("localhost", 80), "client": ("10.0.0.9", 1),
            "root_path": "", "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }  # fmt: skip

    async def receive(self) -> dict[str, Any]:
        if self.taken >= self.size:
            await asyncio.sleep(3600)
        if self.taken >= 2 * PIECE:
            await self.held.wait()
        piece = (b"" if self.taken else BEGUN).ljust(PIECE, b"a")
        self.taken += PIECE
        return {"type": "http.request", "body": piece, "more_body": self.taken < self.size}

    async def send(self, message: Any) -> None:
        self.status = message.get("status", self.status)
        self.body += message.get("body", b"")

    async def to(self, app: FastAPI) -> Sending:
        await app(self.scope, self.receive, self.send)
        return self


def ran(work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` comes to, in a thread: a browser's tests may run a loop in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, work).result()


def cookie(clients: Clients, user: str) -> dict[str, str]:
    return {"cookie": f"{LOGIN_COOKIE}={clients(user).http.cookies[LOGIN_COOKIE]}"}


@pytest.mark.parametrize("path", ["/library/upload", "/api/v1/ask"])
def test_nothing_is_taken_from_whoever_is_not_signed_in(client: Clients, path: str) -> None:
    async def twenty() -> list[Sending]:
        app = application.create(client.site)
        return await asyncio.gather(*(Sending(path, {}).to(app) for _ in range(20)))

    sent = ran(twenty())
    assert [one.taken for one in sent] == [0] * 20
    assert {one.status for one in sent} <= {401, 413}
    wrong = ran(Sending(path, {"cookie": f"{LOGIN_COOKIE}=guessed"}).to(application.create(client.site)))
    assert (wrong.taken, wrong.status) in ((0, 401), (0, 413))


def test_a_reader_may_not_upload(client: Clients) -> None:
    sent = ran(Sending("/library/upload", cookie(client, "reader")).to(application.create(client.site)))
    assert sent.taken == 0
    assert sent.status == 403


def test_of_a_body_of_unknown_length_no_more_is_taken_than_of_a_small_one(client: Clients) -> None:
    sent = ran(Sending("/library/upload", {}, told=False).to(application.create(client.site)))
    assert sent.taken <= protection.SMALL + PIECE
    assert sent.status in (401, 413)


@pytest.mark.slow
def test_of_one_person_and_of_all_only_so_many_arrive_at_a_time(client: Clients) -> None:
    one, other, third = (cookie(client, user) for user in ("librarian", "admin", "librarian"))

    async def several() -> tuple[list[int], list[int]]:
        app = application.create(client.site)
        under_way = [Sending("/library/upload", who) for who in (one, third, other, other)]
        tasks = [asyncio.create_task(sending.to(app)) for sending in under_way]
        async with asyncio.timeout(60):
            while any(sending.taken < 2 * PIECE for sending in under_way):
                await asyncio.sleep(0.01)
        refused = [await Sending("/library/upload", who).to(app) for who in (one, other)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        again = Sending("/library/upload", one)
        task = asyncio.create_task(again.to(app))
        async with asyncio.timeout(60):
            while again.taken < 2 * PIECE:
                await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return [one.taken for one in refused], [one.status for one in refused]

    assert ran(several()) == ([0, 0], [503, 503])

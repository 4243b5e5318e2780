"""The notice of a newer version: only if allowed, once a week, from a package index on loopback."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from studio.update_notice import UpdateNotice


class Index(ThreadingHTTPServer):
    """A package index; ``answer``: its next answers, ``asked``: the headers of all requests."""

    def __init__(self) -> None:
        self.answer, self.asked = b"", list[dict[str, str]]()
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/simple/fish-voice-studio/"


class Handler(BaseHTTPRequestHandler):
    server: Index

    def do_GET(self) -> None:
        self.server.asked.append(dict(self.headers))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.server.answer)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index() -> Iterator[Index]:
    with Index() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


async def told(home: Path, index: Index, is_allowed: bool = True) -> tuple[list[str], UpdateNotice]:
    """What a start reports before it waits for a week."""
    notice, lines, has_looked = UpdateNotice(home, is_allowed, index.url), list[str](), asyncio.Event()

    async def wait(seconds: float) -> None:
        assert 0 < seconds <= 7 * 86_400
        has_looked.set()
        await asyncio.Event().wait()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("studio.update_notice.wait", wait)
        watch = asyncio.create_task(notice.watch(lines.append))
        await asyncio.wait({watch, asyncio.create_task(has_looked.wait())}, return_when=asyncio.FIRST_COMPLETED)
        assert watch.done() != is_allowed
        watch.cancel()
    return lines, notice


async def test_a_newer_version_is_reported_and_the_index_is_asked_once_a_week(tmp_path: Path, index: Index) -> None:
    index.answer = json.dumps({"versions": ["0.1.0", "9.10.0", "9.9.0", "10.0.0rc1", "none"]}).encode()
    assert (await told(tmp_path, index, is_allowed=False))[0] == [] and index.asked == []
    for _ in range(2):  # a second start within the week
        lines, notice = await told(tmp_path, index)
        assert notice.newer == "9.10.0" and len(lines) == 1 and lines[0].startswith("Version 9.10.0 has been published")
    assert len(index.asked) == 1
    assert "0.1.0" not in str(index.asked) and "Cookie" not in index.asked[0]


@pytest.mark.parametrize("answer", [b"", b"<html>", b"[]", b'{"versions": null}', b'{"versions": ["0.0.1", 7]}'])
async def test_an_index_without_a_newer_version_is_no_error(tmp_path: Path, index: Index, answer: bytes) -> None:
    index.answer = answer
    (tmp_path / "update.json").write_text("{damaged")
    for _ in range(2):
        assert (await told(tmp_path, index))[0] == []
    assert len(index.asked) == 1


@pytest.mark.posix
async def test_a_pipe_or_nonsense_in_place_of_the_kept_answer_counts_as_none(tmp_path: Path, index: Index) -> None:
    index.answer = b'{"versions": ["9.10.0"]}'
    os.mkfifo(tmp_path / "update.json")
    assert (await told(tmp_path, index))[1].newer == "9.10.0"
    (tmp_path / "update.json").unlink(missing_ok=True)
    gc.disable()  # a finaliser that ran at the greatest depth would fail
    try:
        for number, kept in enumerate(('{"asked": NaN, "newest": ""}', "[" * 100_000), 2):
            (tmp_path / "update.json").write_text(kept)
            assert (await told(tmp_path, index))[1].newer == "9.10.0" and len(index.asked) == number
    finally:
        gc.enable()

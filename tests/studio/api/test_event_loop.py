"""The event loop stays responsive while the largest bodies are read: one request delays no other stream."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import sqlite3
import ssl
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from websockets.sync.client import connect

import studio.api.routes.voice_routes
import studio.ui.voice_endpoints
import studio.voices.clip_service
from engine import EngineConfig
from longform.library.project_records import NewPart, ProjectSettings
from longform.worker import ProjectWorker
from manuscript.passages import MAX_PARTS
from protocols.fish.fish_body import MESSAGE_PACK, URL_ENCODED
from protocols.fish.message_pack import MAX_VALUES, pack, unpack
from studio.api.body import MAX_BODY
from studio.library.checks import MAX_TEXT
from studio.library.take import NewTake, Take
from studio.library.take_repository import insert_take
from studio.settings import Settings
from studio.speech.request import MAX_INPUT
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve
from tests.studio.sounds import data_url, tone, wav

GOAL_MS = 50.0
"""CPU time, not wall time: the load of other threads and programs does not count."""
FAILS_MS = 250.0
"""Allows for a slow processor; work that grows with the input takes longer on any."""


TICK = 0.005
PAUSE_MS = 4000.0
"""Wall time, which includes waiting for the interpreter's lock, so it is also long on a busy machine: up to 2.1 s with
eight programs for each core."""


class LoopWatch:
    """Measures the most CPU time of a single callback of a loop, and the longest pause of the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
        self._loop = loop
        self._longest, self._callback = 0.0, ""
        self.longest: dict[str, tuple[float, str]] = {}
        """CPU time in milliseconds and the callback, by request."""
        self._pause, self._stopped = 0.0, threading.Event()
        self.pauses: dict[str, float] = {}
        """Wall time in milliseconds, by request."""
        loop.call_soon_threadsafe(self._tick, time.perf_counter())
        run = asyncio.Handle._run

        def timed(handle: asyncio.Handle) -> None:
            began = time.thread_time()
            run(handle)
            took = time.thread_time() - began
            if took > self._longest and handle._loop is loop:  # type: ignore[attr-defined]
                self._longest, self._callback = took, repr(handle)[:300]

        monkeypatch.setattr(asyncio.Handle, "_run", timed)

    def _tick(self, due: float) -> None:
        now = time.perf_counter()
        self._pause = max(self._pause, now - due)
        if not self._stopped.is_set():
            self._loop.call_later(TICK, self._tick, now + TICK)

    def stop(self) -> None:
        self._stopped.set()

    @contextlib.contextmanager
    def during(self, what: str) -> Iterator[None]:
        self._longest, self._callback, self._pause = 0.0, "", 0.0
        yield
        # The response may arrive before the end of the callback that sent it, and before the late tick.
        asyncio.run_coroutine_threadsafe(asyncio.sleep(2 * TICK), self._loop).result(30)
        self.longest[what], self.pauses[what] = (1000 * self._longest, self._callback), 1000 * self._pause


@pytest.fixture(scope="module")
def served(voices_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    def start(config: EngineConfig, progress: object) -> FakeEngine:
        return FakeEngine(config, rows=8)

    home = str(tmp_path_factory.mktemp("loop"))
    settings = Settings(model="test/model", voices=str(voices_folder), home=home)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("longform.extension.ProjectWorker", partial(ProjectWorker, rows=0))
        with serve(settings, start) as served:
            yield served


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stacks of calls in an event loop's thread that wait for a disk or take long."""
    stacks: list[str] = []

    def watched(does: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(does)
        def watched_call(*values: Any, **named: Any) -> Any:
            with contextlib.suppress(RuntimeError):
                asyncio.get_running_loop()
                stacks.append("".join(traceback.format_stack(limit=8)))
            return does(*values, **named)

        return watched_call

    monkeypatch.setattr(sqlite3, "connect", watched(sqlite3.connect))
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", watched(ssl.SSLContext.load_verify_locations))
    monkeypatch.setattr(Path, "open", watched(Path.open))
    for module in (
        studio.api.routes.voice_routes,
        studio.ui.voice_endpoints,
        studio.voices.clip_service,
    ):
        for name in ("compare", "take_in", "suggest_span", "export_voice", "import_pack"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, watched(getattr(module, name)))
    return stacks


def as_json(fields: object) -> dict[str, Any]:
    """Serialised in advance, because the test shares the server's process and its interpreter lock."""
    return {"content": json.dumps(fields).encode(), "headers": {"Content-Type": "application/json"}}


def bytewise(body: bytes) -> dict[str, Any]:
    pieces = (body[at : at + 1] for at in range(len(body)))
    return {"content": pieces, "headers": {"Content-Type": "application/json"}}


def bytewise_form(text: bytes) -> dict[str, Any]:
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    fields = bytewise(head + text + b"\r\n--x--\r\n")
    return fields | {"headers": {"Content-Type": "multipart/form-data; boundary=x"}}


def documents() -> dict[str, tuple[str, str, dict[str, Any]]]:
    """Documents that are short to read but expensive to process."""
    return {
        "project, lines": ("POST", "/v1/projects", {"files": {"file": ("a.txt", b"\n" * 5_000_000)}}),
        "project, lines in JSON": ("POST", "/v1/projects", as_json({"input": "\n" * 5_000_000})),
        "project, a word": ("POST", "/v1/projects", as_json({"input": "a" * 5_000_000})),
        "project, chunks of a byte": ("POST", "/v1/projects", bytewise(b" " * 50_000 + b'{"input": "It swam."}')),
        "project, a form in chunks of a byte": ("POST", "/v1/projects", bytewise_form(b"It swam. " * 6_000)),
    }


def largest(clip: bytes, book_id: str) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """The most expensive request of each kind: method, path and arguments for httpx."""
    words = "a b. " * (MAX_INPUT // 5)
    book = "It swam, and it sang.\n\n" * 10_000
    same = "a " * (MAX_TEXT // 2)
    marks = "\u0301\u0323" * (MAX_BODY // 12 - 100)  # six bytes each in JSON
    blank = " " * (MAX_BODY - 200)
    clip_of_blanks = {"input": "Hi.", "ref_audio": "data:,", "ref_text": blank}
    junk = {"x": "a" * (MAX_BODY - 100)}
    values = [{str(number): 1} for number in range(66_000)]
    names = {str(number): 1 for number in range(99_000)}
    form = {"ref_text": same, "heard": same[2:] + "b ", "name": "Loop"}
    sound = {"audio_sample": ("clip.wav", clip)}
    spoken = {"ref_audio": data_url(clip), "ref_text": "Hello.", "input": "Hi."}

    return {
        "speech, long text": ("POST", "/v1/audio/speech", as_json({"input": words})),
        "speech, a clip": ("POST", "/v1/audio/speech", as_json(spoken)),
        "speech, a model's name": ("POST", "/v1/audio/speech", as_json({"input": "a", "model": "anna"})),
        "speech, 16 MiB": ("POST", "/v1/audio/speech", as_json(junk)),
        "speech, a long voice": ("POST", "/v1/audio/speech", as_json({"input": "a", "voice": marks})),
        "speech, a long cast": ("POST", "/v1/audio/speech", as_json({"input": "a: b", "cast": {"a": marks}})),
        "speech, a cast of many": ("POST", "/v1/audio/speech", as_json({"input": "a: b", "cast": names})),
        "speech, blanks": ("POST", "/v1/audio/speech", as_json({"input": blank})),
        "speech, a blank ref_text": ("POST", "/v1/audio/speech", as_json(clip_of_blanks)),
        "speech, many values": ("POST", "/v1/audio/speech", as_json({"x": values})),
        "project, many names": ("POST", "/v1/projects", as_json(names)),
        "project, an item of many names": ("POST", "/v1/projects", as_json({"items": [names]})),
        "batch": ("POST", "/v1/audio/speech/batch", as_json({"items": [{"input": words, "voice": "nobody"}] * 32})),
        "batch, blanks": ("POST", "/v1/audio/speech/batch", as_json({"input": blank, "items": [{}] * 32})),
        "voice": ("POST", "/v1/audio/voices", {"data": form, "files": sound}),
        "sample": ("POST", "/v1/voices/anna/samples", {"data": form, "files": sound}),
        "advise": ("POST", "/v1/voices/advise", {"data": form, "files": sound}),
        "consent": ("POST", "/v1/audio/voice_consents", {"data": {"name": "a", "language": "en"}, "files": sound}),
        "voice, 16 MiB": ("PATCH", "/v1/voices/anna", as_json(junk)),
        "voice, a long name": ("PATCH", "/v1/voices/anna", as_json({"name": marks})),
        "voice, a long text": ("PATCH", "/v1/voices/anna", as_json({"description": marks})),
        "pack": ("POST", "/v1/voices/import", {"files": {"file": ("a.fishvoice", b"PK\r\n--" * 6_000_000)}}),
        "project, items": ("POST", "/v1/projects", as_json({"items": [{"input": "It swam."}] * 20_000})),
        "project, a book": ("POST", "/v1/projects", as_json({"input": book})),
        "project, replace": ("POST", f"/v1/projects/{book_id}/replace", as_json({"find": "a", "replace": "e"})),
        "project, replace, undo": ("POST", f"/v1/projects/{book_id}/replace/undo", {}),
        "project, a file": ("POST", "/v1/projects", {"files": {"file": ("a.md", book.encode())}}),
        "project, a long title": (
            "POST",
            "/v1/projects",
            as_json({"input": "a", "title": "a " * (MAX_BODY // 2 - 100)}),
        ),
        "project, a long voice": ("POST", "/v1/projects", as_json({"input": "a", "voice": marks})),
        "takes, by 1000 ids": ("GET", "/v1/takes?ids=" + ",".join(f"req_{n}" for n in range(1000)), {}),
        "takes, restored": ("POST", "/v1/takes/restore", as_json({"ids": [f"req_{n}" for n in range(1000)]})),
        "voices": ("GET", "/v1/audio/voices", {}),
        "voice as a file": ("GET", "/v1/voices/anna/export", {}),
        "projects": ("GET", "/v1/projects", {}),
        "settings": ("GET", "/v1/settings", {}),
        "diagnostics": ("GET", "/v1/diagnostics", {}),
        **documents(),
    }


def largest_of_fish(clip: bytes) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """The most expensive requests to Fish Audio's routes."""
    same = "a " * (MAX_TEXT // 2)
    blank = " " * (MAX_BODY - 200)

    def as_packed(fields: object) -> dict[str, Any]:
        return {"content": pack(fields), "headers": {"Content-Type": MESSAGE_PACK}}

    clips = [{"audio": clip, "text": "Hello."}] * (MAX_BODY // len(clip) - 1)
    voices = [("voices", ("a.wav", clip))] * 8
    many = {"title": "Loop", "texts": [same] * 8}
    return {
        "tts, clips": ("POST", "/v1/tts", as_packed({"text": "a", "references": clips})),
        "tts, 16 MiB of bytes": ("POST", "/v1/tts", as_packed({"text": "a", "x": bytes(MAX_BODY - 100)})),
        "tts, many values": ("POST", "/v1/tts", as_packed({"text": "a", "x": [0] * (MAX_VALUES - 10)})),
        "tts, too many values": ("POST", "/v1/tts", as_packed({"text": "a", "x": [0] * (MAX_BODY - 100)})),
        "tts, many fields": ("POST", "/v1/tts", as_packed({str(number): 1 for number in range(MAX_VALUES // 2 - 10)})),
        "tts, many clips": ("POST", "/v1/tts", as_packed({"text": "a", "references": [{}] * (MAX_VALUES - 10)})),
        "tts, a long voice": ("POST", "/v1/tts", as_packed({"text": "a", "reference_id": "\u0301\u0323" * 4_000_000})),
        "tts, speakers": (
            "POST",
            "/v1/tts",
            as_packed({"text": "<|speaker:0|>a" * (MAX_INPUT // 14), "reference_id": ["anna", "bert"]}),
        ),
        "tts, a form": ("POST", "/v1/tts", {"content": b"a=&" * 5_000_000, "headers": {"Content-Type": URL_ENCODED}}),
        "model, many recordings": ("POST", "/model", {"data": many, "files": voices}),
        "model, a packed recording": (
            "POST",
            "/model",
            as_packed({"title": "Loop", "voices": [clip] * 7, "texts": [same] * 7, "description": blank}),
        ),
        "model, a long title": ("PATCH", "/model/anna", as_packed({"title": "\u0301\u0323" * 4_000_000})),
        "model, list": ("GET", "/model?title=a&page_size=100", {}),
        "asr": ("POST", "/v1/asr", as_packed({"audio": clip})),
        "references, add": ("POST", "/v1/references/add", as_packed({"id": "Loop", "audio": clip, "text": same})),
    }


def longest_book(served: Served) -> tuple[str, list[str]]:
    """The id of a project of the most parts, all with audio, and the ids of its parts."""
    library, text = served.app.state.studio.speech.voices.library, "a b. " * 10
    book = library.projects.create("", "Book", "txt", [NewPart(text)] * MAX_PARTS, ProjectSettings())
    take = Take("take_0", 1.0, "anna", 1, recipe=ProjectSettings().recipe(text, None), seconds=0.01, sample_rate=44_100)
    with library.store.adding([[wav(tone(0.01))]]) as (db, [digest]):
        ids = [part_id for [part_id] in db.execute("select id from parts where project_id = ?", [book.id]).fetchall()]
        insert_take(db, NewTake(replace(take, media_type="audio/wav", part_id=ids[0])), digest)
        [row] = db.execute("select * from takes where id = 'take_0'").fetchall()
        names = [column for _, column, *_ in db.execute("pragma table_info(takes)").fetchall()]
        copies = [dict(zip(names, row, strict=True)) | {"n": None, "id": f"take_{p}", "part_id": p} for p in ids]
        marks = ", ".join(f":{name}" for name in names)
        db.conn.executemany(f"insert into takes ({', '.join(names)}) values ({marks})", copies)
        db.execute("update all_parts set chosen = 'take_' || id, state = 'done' where project_id = ?", [book.id])
    return book.id, ids


def requests_of_a_project(app: FastAPI, book_id: str, ids: list[str]) -> dict[str, tuple[str, str, dict[str, Any]]]:
    """A request to every route that reads a whole project, and to those that change many parts at once."""
    paths = [path for path, operations in app.openapi()["paths"].items() if "get" in operations]
    addresses = [path for path in paths if path.startswith(PROJECT) and path.count("{") == 1 and path not in SLOW]
    reads = {f"GET {path}": ("GET", path.format(project_id=book_id), dict[str, Any]()) for path in sorted(addresses)}
    assert len(reads) > 12
    project, some = f"/v1/projects/{book_id}", {"ids": ids[1:]}
    return reads | {
        "parts, all": ("GET", f"{project}/parts/ids", {}),
        "parts, changed": ("PATCH", f"{project}/parts", as_json(some | {"pause": 1})),
        "parts, moved": ("POST", f"{project}/parts/move", as_json(some | {"position": 0})),
        "parts, deleted": ("POST", f"{project}/parts/delete", as_json(some)),
        "parts, restored": ("POST", f"{project}/parts/restore", as_json(some)),
        "parts, queued": ("POST", f"{project}/speak", as_json({"parts": ids})),
        "words, counted": ("POST", f"{project}/replace", as_json({"find": "a", "dry_run": True})),
    }


PROJECT = "/v1/projects/{project_id}"
SLOW = {f"{PROJECT}/epub", f"{PROJECT}/loudness"}
"""They work for minutes before they answer, in a queue of their own; `test_long_work` has them."""


def test_event_loop_stays_responsive_during_the_largest_requests(
    served: Served,
    blocked: list[str],
    monkeypatch: pytest.MonkeyPatch,
    record_testsuite_property: Callable[[str, object], None],
) -> None:
    clip = wav(tone(29, rate=88_200), rate=88_200)
    assert served.loop is not None
    watch = LoopWatch(served.loop, monkeypatch)
    with served.client() as client:
        items = [{"input": "a b. " * 50}] * 20_000  # the longest project allowed
        book_id = client.post("/v1/projects", json={"items": items}).json()["id"]
        of_project = requests_of_a_project(served.app, *longest_book(served))
        for what, (method, path, request) in (largest(clip, book_id) | largest_of_fish(clip) | of_project).items():
            with watch.during(what), client.stream(method, path, **request) as answer:
                if answer.headers["content-type"] == "application/json":
                    answer.read()
            assert answer.status_code < 500 or answer.status_code == 501, what  # no recogniser is installed
    for what, messages in sessions().items():
        with watch.during(what), connect(served.url.replace("http", "ws") + SOCKET, proxy=None) as socket:
            for message in messages:
                socket.send(message)
            while json.loads(socket.recv(60))["type"] not in ("audio.start", "audio.cancelled", "session.done"):
                pass
    for what, packed in LIVE.items():
        with watch.during(what), connect(served.url.replace("http", "ws") + "/v1/tts/live", proxy=None) as socket:
            socket.send(pack({"event": "start", "request": {"text": "", "format": "wav"}}))
            for _ in range(MESSAGES):
                socket.send(packed)
            socket.send(pack({"event": "stop"}))
            assert unpack(socket.recv(60, decode=False)) == {"event": "finish", "reason": "stop"}
    watch.stop()
    for what, (took, callback) in sorted(watch.longest.items(), key=lambda entry: -entry[1][0]):
        by_clock = f"{took:7.1f} ms, by the clock {watch.pauses[what]:7.1f}  {what}"
        print(f"{by_clock}{f'  more than the goal: {callback}' if took > GOAL_MS else ''}")
        record_testsuite_property(f"longest callback of the event loop: {what}, ms", round(took, 1))
    assert not blocked, "\n".join(blocked[:3])
    slowest = max(watch.longest, key=lambda what: watch.longest[what][0])
    assert watch.longest[slowest][0] < FAILS_MS, (slowest, *watch.longest[slowest])
    assert max(watch.pauses.values()) < PAUSE_MS, watch.pauses


SOCKET = "/v1/audio/speech/stream"
MESSAGES = 6_000
"""More than a loop reads at once: the cost of a callback grows no further, that of sending them does."""
LIVE = {
    "socket of Fish Audio, many tiny messages": pack({"event": "text", "text": ""}),
    "socket of Fish Audio, many flushes": pack({"event": "flush"}),
}


def sessions() -> dict[str, list[str]]:
    """Messages to a socket, expensive because of their length or their number."""
    config = json.dumps({"type": "session.config", "model": "anna", "response_format": "pcm"})
    flush, done = json.dumps({"type": "input.flush"}), json.dumps({"type": "input.done"})
    letter, text = (json.dumps({"type": "input.text", "text": text}) for text in ("a", "a b. " * 3000))
    cancel = json.dumps({"type": "input.cancel"})
    return {
        "socket": [config, text, flush],
        "socket, many flushes": [config, *[flush] * MESSAGES, done],
        "socket, many tiny messages": [config, *[letter] * MESSAGES, flush],
        "socket, many cancels": [config, *[cancel] * MESSAGES, done],
    }

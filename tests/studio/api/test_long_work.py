"""Callers of long work, however many, delay no others, and their work is cancelled when they disconnect."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import re
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import httpx
import ormsgpack
import pytest
from anyio import CapacityLimiter, to_thread
from fastapi.routing import APIRoute

from engine import EngineConfig
from longform import document_import
from studio.errors import InvalidRequest
from studio.library.store import Store
from studio.library.trash import Trash
from studio.settings import Settings
from studio.work import Job
from tests.longform.test_projects import create_project, until
from tests.studio.conftest import Steered
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve
from tests.studio.sounds import data_url, tone, wav
from tests.studio.work.hanging import children, hang
from tests.waiting import wait_until, wait_until_true

CALLERS = 60
ADDRESSES = 3
BUNDLED = 2
"""Number of bundled voices, whose clips a new studio encodes."""

Wanted = tuple[str, dict[str, Any]]
"""The queue, and arguments for httpx."""

QUEUES = {
    "POST /v1/projects": "short_documents",
    "POST /v1/projects/characters": "short_documents",
    "POST /v1/projects/preview": "short_documents",
    "POST /v1/voices/advise": "clips",
    "GET /v1/takes/{take_id}/likeness": "clips",
    "POST /v1/takes/{take_id}/likeness": "clips",
    "POST /v1/voices/denoise": "clips",
    "POST /v1/voices/transcribe": "clips",
    "POST /v1/audio/voices": "clips",
    "POST /v1/voices/{reference}/samples": "clips",
    "PATCH /v1/voices/{reference}/samples/{sample_id}": "clips",
    "GET /v1/voices/{reference}/preview": "clips",
    "POST /v1/voices/inspect": "packs",
    "POST /v1/voices/import": "packs",
    "GET /v1/voices/{reference}/export": "packs",
    "GET /v1/takes/export": "exports",
    "GET /v1/takes/{take_id}/audio": "exports",
    "GET /v1/projects/{project_id}/audio": "exports",
    "GET /v1/projects/{project_id}/chapters": "exports",
    "GET /v1/projects/{project_id}/zip": "exports",
    "GET /v1/projects/{project_id}/tracks": "exports",
    "GET /v1/projects/{project_id}/sample": "exports",
    "GET /v1/projects/{project_id}/epub": "exports",
    "GET /v1/projects/{project_id}/subtitles": "exports",
    "GET /v1/projects/{project_id}/timeline": "exports",
    "GET /v1/projects/{project_id}/loudness": "exports",
    "GET /v1/projects/{project_id}/proof/report": "exports",
    "POST /v1/projects/{project_id}/cast/recast": "changes",
    "PUT /v1/projects/{project_id}/cover": "changes",
    "GET /v1/engine/models": "models",
    "GET /v1/models": "lists",
    "GET /v1/audio/voices": "lists",
    "GET /v1/references/list": "lists",
    "GET /model": "lists",
    "GET /elevenlabs/v1/voices": "lists",
    "GET /elevenlabs/v2/voices": "lists",
    "POST /v1/audio/speech": "encodings",
    "POST /v1/audio/speech/reading": "texts",
    "POST /v1/tts": "encodings",
    "POST /v1/tts/stream/with-timestamp": "encodings",
    "POST /v1/asr": "clips",
    "POST /v1/audio/transcriptions": "clips",
    "POST /v1/references/add": "clips",
    "POST /model": "clips",
    "POST /elevenlabs/v1/voices/add": "clips",
    "POST /elevenlabs/v1/voices/{voice_id}/edit": "clips",
    "POST /elevenlabs/v1/speech-to-text": "clips",
}
"""Routes whose work grows with the request, and the queue in which it starts."""
SHORT = {
    "POST /v1/projects/{project_id}/update",  # in the queues of lookups and documents, one after the other
    "PUT /v1/pronunciations/csv",  # at most 2,000 entries
    "GET /v1/pronunciations/csv",
    "GET /v1/projects/{project_id}/cover",  # in the queue of lookups, like the next one
    "GET /v1/projects/previews/{preview_id}/cover",
    "POST /v1/audio/voice_consents",  # stored unchanged
    "GET /v1/voices/{reference}/samples/{sample_id}/audio",  # sent as stored, like the next two
    "GET /v1/projects/{project_id}/takes/{take_id}/audio",
    "GET /metrics",
    "POST /v1/audio/speech/batch",  # in the engine's queue, like the next one
    "POST /v1/takes/{take_id}/continue",
    "PATCH /model/{voice_id}",  # a cover is ignored
    "POST /v1/references/update",  # names only, like the next one
    "DELETE /v1/references/delete",
    *(f"POST /elevenlabs/v1/text-to-speech/{{voice_id}}{end}" for end in ("", "/stream")),  # in the engine's queue
    *(f"POST /elevenlabs/v1/text-to-dialogue{end}" for end in ("", "/stream")),
    "GET /elevenlabs/v1/voices/{voice_id}/samples/{sample_id}/audio",  # sent as stored, like the next one
    "GET /elevenlabs/v1/history/{history_item_id}/audio",
}
"""Routes that accept or send files, whose work is short or uses the engine's own queue."""


def test_every_route_with_files_has_a_queue_or_is_known_as_short(steered: Callable[..., Steered]) -> None:
    served, _ = steered()
    described = served.app.openapi()["paths"]
    known, with_files = set(), set()
    for path, methods in described.items():
        for method, about in methods.items():
            known.add(f"{method.upper()} {path}")
            takes = about.get("requestBody", {}).get("content", {})
            sends = {kind for answer in about["responses"].values() for kind in answer.get("content", {})}
            if "multipart/form-data" in takes or sends - {"application/json"}:
                with_files.add(f"{method.upper()} {path}")
    assert with_files - set(QUEUES) == SHORT
    assert set(QUEUES) | SHORT <= known


class Gate:
    """Holds the work of all queues while its callers are connected, except what `counts` reads."""

    def __init__(self) -> None:
        self.is_open = threading.Event()

    def run(self, job: Job, function: Callable[..., Any], *values: object) -> Any:
        if "looked up" in job.too_long or getattr(getattr(function, "func", None), "__name__", "") == "list_projects":
            return function(*values)
        while not self.is_open.wait(0.002):
            job.check()
        raise InvalidRequest("the gate was opened")


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    gate = Gate()
    monkeypatch.setattr(Job, "run", lambda job, *values: gate.run(job, *values))
    yield gate
    gate.is_open.set()


def send_request(served: Served, request: httpx.Request, number: int) -> socket.socket:
    """Send the request on a new connection of one of the callers; the connection."""
    host, port = served.url.removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)), source_address=(f"127.0.0.{2 + number % ADDRESSES}", 0))
    body = request.read()
    head = [f"{request.method} {request.url.raw_path.decode()} HTTP/1.1"]
    head += [f"{name}: {value}" for name, value in request.headers.items()]
    connection.sendall("\r\n".join([*head, "", ""]).encode() + body)
    return connection


def job_counts(client: httpx.Client, queue: str) -> tuple[int, int]:
    """Numbers of running and waiting jobs in the queue."""
    work = client.get("/health").json()["work"][queue]
    return work["running"], work["waiting"]


def held(client: httpx.Client, queue: str, other: str = "") -> int:
    """Number of jobs in the queue; none if it is the same as ``other``.

    On a busy machine short texts are planned in the queue of texts too, so that some callers wait there.
    """
    return 0 if queue == other else sum(job_counts(client, queue))


LISTS = ("/v1/takes?limit=200", "/v1/voices?limit=100", "/v1/projects?limit=200")


def counts(client: httpx.Client) -> dict[str, int]:
    """Numbers of takes, voices and projects that are complete."""
    listed = {path: client.get(path).raise_for_status().json()["data"] for path in LISTS}
    return {path: sum(row.get("state") in (None, "finished", "done") for row in rows) for path, rows in listed.items()}


@pytest.fixture(scope="module")
def with_book(voices_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, dict[str, str]]]:
    """A studio with one item of each kind, and their ids for the addresses."""
    engines: list[FakeEngine] = []

    def start(config: EngineConfig, progress: object) -> FakeEngine:
        engines.append(FakeEngine(config))
        return engines[0]

    home = str(tmp_path_factory.mktemp("home"))
    with serve(Settings(model="test/model", voices=str(voices_folder), home=home), start) as served:
        wait_until_true(lambda: len(engines[0].encoded) == BUNDLED)
        with served.client() as client:
            speech = client.post("/v1/audio/speech", json={"input": "Two words.", "response_format": "wav"})
            sample = client.get("/v1/voices/anna/samples").json()["data"][0]["id"]
        project = create_project(served, input="Hi.", start=True)
        until(served, project, "done")
        ids = {"take_id": speech.headers["x-request-id"], "project_id": project["id"]}
        yield served, ids | {"reference": "anna", "sample_id": sample}


def arguments_for(route: str) -> dict[str, Any]:
    clip = wav(tone(2))
    files = {"audio_sample": ("a.wav", clip)}
    words = {"ref_text": "Hello.", "name": "Eve"}
    own = {"input": "Hi.", "ref_audio": data_url(clip), "ref_text": "Hello."}
    special: dict[str, dict[str, Any]] = {
        "POST /v1/projects": {"json": {"input": "It swam."}},
        "POST /v1/projects/characters": {"json": {"input": "It swam."}},
        "POST /v1/projects/preview": {"json": {"input": "It swam."}},
        "POST /v1/projects/{project_id}/cast/proposals": {"json": {"ids": ["part_x"], "estimate": True}},
        "POST /v1/voices/inspect": {"files": {"file": ("a.fishvoice", b"PK")}},
        "POST /v1/voices/import": {"files": {"file": ("a.fishvoice", b"PK")}},
        "PATCH /v1/voices/{reference}/samples/{sample_id}": {"json": {"cut": {"start": 0.1}}},
        "GET /v1/takes/{take_id}/audio": {"params": {"format": "mp3"}},
        "GET /v1/projects/{project_id}/audio": {"params": {"format": "mp3"}},
        "POST /v1/projects/{project_id}/cast/recast": {"json": {}},
        "PUT /v1/projects/{project_id}/cover": {"files": {"cover": ("a.png", b"PNG")}},
        "POST /v1/audio/speech": {"json": own},
        "POST /v1/audio/speech/reading": {"json": {"input": "It is 5 pm."}},
        "POST /v1/asr": {"files": {"audio": ("a.wav", clip)}},
        "POST /v1/audio/transcriptions": {"files": {"file": ("a.wav", clip)}},
        "POST /v1/references/add": {"data": {"id": "Eve", "text": "Hello."}, "files": {"audio": ("a.wav", clip)}},
        "POST /model": {"data": {"title": "Eve", "texts": "Hello."}, "files": {"voices": ("a.wav", clip)}},
    }
    if route.startswith("POST /v1/tts"):
        return {"json": {"text": "Hi.", "references": [{"audio": data_url(clip), "text": "Hello."}]}}
    if route.startswith("POST /elevenlabs/"):
        recording = ("a.wav", clip)
        return {"data": {"name": "Eve"}, "files": {"file": recording} if "text" in route else {"files": recording}}
    return special.get(route, {"data": words, "files": files} if route.startswith("POST") else {})


@pytest.mark.parametrize("route", QUEUES)
def test_sixty_disconnecting_callers_delay_no_others_and_their_work_is_cancelled(
    with_book: tuple[Served, dict[str, str]], gate: Gate, route: str
) -> None:
    served, ids = with_book
    method, path = route.split(" ")
    with served.client() as client:
        before = counts(client)
        request = client.build_request(method, path.format(**ids, voice_id=ids["reference"]), **arguments_for(route))
        request.read()
        callers = [send_request(served, request, number) for number in range(CALLERS)]
        queue = QUEUES[route]
        places = sum(client.get("/v1/queue").json()["work"][queue][most] for most in ("max_running", "max_waiting"))
        # A request read only after its caller has left would start work once the gate is open.
        wait_until_true(lambda: held(client, queue) == min(CALLERS - held(client, "texts", queue), places))
        assert counts(client) == before, "all of it is held, and the plain routes answer"
        for caller in callers:
            caller.close()
        wait_until_true(lambda: job_counts(client, queue) == (0, 0))
        gate.is_open.set()
        assert counts(client) == before


LARGE = "It swam. " * 4_000
LARGE_BODIES: dict[str, tuple[str, dict[str, Any]]] = {
    "JSON": ("/v1/projects", {"json": {"items": [{"input": "It swam."}] * 2_000}}),
    "Fish Audio's JSON": ("/v1/tts", {"json": {"text": LARGE}}),
    "MessagePack": (
        "/v1/tts",
        {"content": ormsgpack.packb({"text": LARGE}), "headers": {"content-type": "application/msgpack"}},
    ),
    "a form": ("/v1/tts", {"data": {"text": LARGE}}),
}


@pytest.mark.parametrize("kind", LARGE_BODIES)
def test_large_bodies_are_parsed_in_a_queue_and_dropped_when_their_callers_leave(
    steered: Callable[..., Steered], gate: Gate, kind: str
) -> None:
    served, _ = steered()
    path, arguments = LARGE_BODIES[kind]
    with served.client() as client:
        request = client.build_request("POST", path, **arguments)
        callers = [send_request(served, request, number) for number in range(CALLERS)]
        wait_until_true(lambda: job_counts(client, "texts") == (2, CALLERS - 2))
        for caller in callers:
            caller.close()
        wait_until_true(lambda: job_counts(client, "texts") == (0, 0))
        gate.is_open.set()
        assert counts(client)["/v1/projects?limit=200"] == 0


def test_document_process_ends_when_its_caller_disconnects(
    steered: Callable[..., Steered], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _ = steered()
    monkeypatch.setattr(document_import, "cut_document", hang)
    with served.client() as client:
        files = {"file": ("book.txt", b"It swam. " * 10_000)}
        request = client.build_request("POST", "/v1/projects", files=files)
        request.read()
        callers = [send_request(served, request, number) for number in range(CALLERS)]
        wait_until_true(lambda: len(children()) == 2)
        assert client.post("/v1/projects/preview", json={"input": "It swam."}).status_code == 200, "short ones pass"
        assert counts(client)["/v1/projects?limit=200"] == 0
        for caller in callers:
            caller.close()
        wait_until_true(lambda: job_counts(client, "documents") == (0, 0))
        wait_until_true(lambda: not children())
        assert counts(client)["/v1/projects?limit=200"] == 0


def test_full_queue_refuses_with_its_limit_and_retry_after(steered: Callable[..., Steered], gate: Gate) -> None:
    served, _ = steered()
    body = {"input": "It swam."}
    with served.client() as client, contextlib.ExitStack() as open_ones:
        request = client.build_request("POST", "/v1/projects", json=body)
        for number in range(CALLERS):
            open_ones.enter_context(send_request(served, request, number))
        wait_until_true(lambda: job_counts(client, "short_documents") == (2, 30))
        full = client.post("/v1/projects", json=body)
        assert full.status_code == 429 and int(full.headers["retry-after"]) > 0
        assert "30 are waiting, the maximum" in full.json()["error"]["message"]
        assert client.get("/v1/queue").json()["work"]["short_documents"]["waiting"] == 30


def test_one_caller_may_fill_only_half_of_a_queue(steered: Callable[..., Steered], gate: Gate) -> None:
    served, _ = steered()
    with served.client() as client, contextlib.ExitStack() as open_ones:
        request = client.build_request("POST", "/v1/projects", json={"input": "It swam."})
        for _ in range(20):
            open_ones.enter_context(send_request(served, request, 0))
        wait_until_true(lambda: job_counts(client, "short_documents") == (2, 14))
        with httpx.Client(base_url=served.url, transport=httpx.HTTPTransport(local_address="127.0.0.2")) as same:
            refused = same.post("/v1/projects", json={"input": "It swam."})
        assert refused.status_code == 429 and "16 of your documents" in refused.json()["error"]["message"]
        open_ones.enter_context(send_request(served, request, 1))
        wait_until_true(lambda: job_counts(client, "short_documents") == (2, 15))


def test_full_encoding_queue_refuses_a_new_clip_but_not_a_cached_one(
    steered: Callable[..., Steered], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, engine = steered(max_waiting=1)
    wait_until_true(lambda: len(engine.encoded) == BUNDLED)  # encoded in the same queue
    speech = {"input": "Hi.", "ref_audio": data_url(wav(tone(1, 8000), 8000)), "ref_text": "Hello."}
    speech["response_format"] = "wav"
    with served.client() as client:
        assert client.post("/v1/audio/speech", json=speech).status_code == 200
        gate = Gate()
        with contextlib.ExitStack() as open_ones:
            monkeypatch.setattr(Job, "run", lambda job, *values: gate.run(job, *values))
            for number in range(12):
                other = json.dumps(speech | {"ref_text": f"Hello {number}."})
                request = client.build_request("POST", "/v1/audio/speech", content=other)
                request.headers["content-type"] = "application/json"
                open_ones.enter_context(send_request(served, request, number))
                counts = min(number + 1, 8), int(number >= 8)  # running, waiting; others are refused
                wait_until(counts.__eq__, lambda: job_counts(client, "encodings"))
            assert client.post("/v1/audio/speech", json=speech).status_code == 200
            refused = client.post("/v1/audio/speech", json=speech | {"ref_text": "Hello."[::-1]})
            assert refused.status_code == 429 and refused.headers["retry-after"]
        wait_until_true(lambda: job_counts(client, "encodings") == (0, 0))


WRITES: dict[str, dict[str, Any]] = {
    "PATCH /v1/takes/{take_id}": {"starred": True},
    "POST /v1/pronunciations": {"phrase": "GIF", "said": "jiff"},
    "POST /v1/trash/restore": {"items": [{"kind": "take", "id": "nothing"}]},
}


@pytest.mark.parametrize("route", WRITES)
def test_lists_do_not_wait_for_blocked_writers(with_book: tuple[Served, dict[str, str]], route: str) -> None:
    served, ids = with_book
    library = served.app.state.studio.library
    other = sqlite3.connect(library.store.path, isolation_level=None)

    async def shared_threads() -> float:
        return to_thread.current_default_thread_limiter().borrowed_tokens

    with served.client() as client, contextlib.ExitStack() as open_ones:
        open_ones.callback(other.close)
        before = counts(client)
        other.execute("begin immediate")
        method, path = route.split(" ")
        change = client.build_request(method, path.format(**ids), json=WRITES[route])
        callers = [open_ones.enter_context(send_request(served, change, number)) for number in range(CALLERS)]
        wait_until_true(lambda: len(library.store._line) > 1)
        wait_until_true(lambda: sum(job_counts(client, "writes")) == CALLERS)  # in the queue that is fair and bounded
        for _ in range(3):  # until all of them have been read
            assert counts(client) == before
        assert served.loop is not None
        assert asyncio.run_coroutine_threadsafe(shared_threads(), served.loop).result(10) < 3
        other.execute("rollback")
        assert all(caller.recv(12).startswith(b"HTTP/1.1 ") for caller in callers)


def test_caller_of_many_lookups_lets_others_have_turns(
    with_book: tuple[Served, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _ = with_book
    permits = threading.Semaphore(0)
    page = Trash.page

    def held(trash: Trash, *values: Any) -> Any:
        permits.acquire()
        return page(trash, *values)

    monkeypatch.setattr(Trash, "page", held)
    with served.client() as client, contextlib.ExitStack() as open_ones, ThreadPoolExecutor(1) as pool:
        open_ones.callback(permits.release, CALLERS)
        request = client.build_request("GET", "/v1/trash")
        for _ in range(CALLERS):
            open_ones.enter_context(send_request(served, request, 0))
        wait_until_true(lambda: job_counts(client, "lookups") == (4, CALLERS - 4))
        other = pool.submit(client.get, "/v1/takes")
        for ended in range(4):  # the other one asks for more than one answer, each after the one before
            wait_until_true(lambda: other.done() or sum(job_counts(client, "lookups")) == CALLERS - ended + 1)  # noqa: B023
            permits.release()
        assert other.result(10).status_code == 200
        assert sum(job_counts(client, "lookups")) >= CALLERS - 4


MOST_SECONDS = 0.1
"""CPU time of one call, not wall time: the load of other threads and programs does not count. Sixty callers of such a
route delay all others by at most 60 × 0.1 s / the number of cores; the longest lookup takes 0.02 s."""
PARTS = 5000
"""Of a project, so that a lookup which reads all of them shows."""
DOWNLOADS = {"POST /v1/recogniser", "POST /v1/engine/models/{name}/download"}
"""They begin work in the background, once, however many ask for it."""


class Lookup(dict[str, str]):
    """Ids for addresses; those that are unknown are of nothing."""

    def __missing__(self, name: str) -> str:
        return "nothing"


def example(schema: dict[str, Any], document: dict[str, Any]) -> Any:
    """A small value that has the fields which the schema requires."""
    if "$ref" in schema:
        return example(document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]], document)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return example(schema[choice][0], document)
    if "default" in schema or "enum" in schema:
        return schema.get("default", schema.get("enum", [None])[0])
    if schema.get("type") == "object":
        fields = schema.get("properties", {})
        return {name: example(fields[name], document) for name in schema.get("required", ())}
    if schema.get("type") == "array":
        return [example(schema.get("items", {}), document)]
    return {"integer": 1, "number": 1.0, "boolean": False}.get(schema.get("type", ""), "It swam.")


def function_caches() -> list[functools._lru_cache_wrapper[Any]]:
    """All caches of functions. Found once, and in the modules: the garbage collector would take a tenth of a second for
    each route, and not name those that conftest.py has frozen."""
    modules = [module for name, module in sys.modules.items() if name.startswith(("engine.", "studio."))]
    classes = [value for module in modules for value in vars(module).values() if isinstance(value, type)]
    values = [getattr(value, "__func__", value) for owner in (*modules, *classes) for value in vars(owner).values()]
    caches = {id(value): value for value in values if type(value) is functools._lru_cache_wrapper}
    return [cache for cache in caches.values() if str(cache.__module__).startswith(("engine.", "studio."))]


PASSING = ("next", "close")
"""Functions that may run in shared threads for a project or take: pieces of files, and query parameters."""
ASKED: ContextVar[str] = ContextVar("asked", default="")
"""The path of the route that makes a call."""
IS_SHARED = ContextVar("is_shared", default=False)
"""Whether this is one of the threads that plain routes share."""


@pytest.fixture
def spent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[float, str]]]:
    """CPU seconds of every call in the shared threads and of every lookup, and the function; none for what a route of
    projects or takes does."""
    calls: list[tuple[float, str]] = []
    run, handle = to_thread.run_sync, APIRoute.handle

    async def handled(route: APIRoute, *values: Any) -> None:
        ASKED.set(route.path)
        await handle(route, *values)

    async def timed(function: Callable[..., Any], *values: Any, limiter: CapacityLimiter | None = None) -> Any:
        def measured(*values: Any) -> Any:
            IS_SHARED.set(True)
            began = time.thread_time()
            try:
                return function(*values)
            finally:
                calls.append((time.thread_time() - began, repr(function)[:300]))

        if limiter is None and ASKED.get().startswith(("/v1/projects", "/v1/takes")):
            is_short = getattr(function, "__name__", "") in PASSING or re.search("Finish|TakeQuery", repr(function))
            assert is_short, f"{ASKED.get()} must use studio.work.read or studio.api.queued: {function}"
        is_lookup = "looked up" in getattr(getattr(function, "__self__", None), "too_long", "")
        return await run(measured if limiter is None or is_lookup else function, *values, limiter=limiter)

    begin = Store._transaction

    def transaction(store: Store, *values: Any) -> Any:
        if IS_SHARED.get():
            calls.append((float("inf"), f"{ASKED.get()} waits for the library's lock"))
        return begin(store, *values)

    monkeypatch.setattr(Store, "_transaction", transaction)
    monkeypatch.setattr(to_thread, "run_sync", timed)
    monkeypatch.setattr(APIRoute, "handle", handled)
    yield calls


def test_no_route_works_long_in_the_shared_threads(with_book: tuple[Served, dict[str, str]], spent: Any) -> None:
    served, ids = with_book
    document, longest, caches = served.app.openapi(), dict[str, tuple[float, str]](), function_caches()
    assert caches, "some are kept for the life of a process"
    with served.client() as client:
        items = [{"input": "It swam to the shore, and it sang."}] * PARTS
        known = Lookup(ids | {"project_id": client.post("/v1/projects", json={"items": items}).json()["id"]})
        for path, methods in document["paths"].items():
            for method, about in methods.items():
                route = f"{method.upper()} {path}"
                if route in DOWNLOADS:
                    continue
                bodies = about.get("requestBody", {}).get("content", {})
                request = arguments_for(route)
                if "application/json" in bodies and "json" not in request:
                    request = {"json": example(bodies["application/json"]["schema"], document)}
                for cache in caches:  # as in a studio that has just started
                    cache.cache_clear()
                spent.clear()
                with client.stream(method.upper(), path.format_map(known), **request) as answer:
                    assert answer.status_code < 500 or answer.status_code == 501, route
                    answer.read()
                longest[route] = max(spent, default=(0.0, ""))
    slow = {route: call for route, call in longest.items() if call[0] > MOST_SECONDS}
    assert not slow, "these need a queue of studio/work.py, within until_hangup, or studio.api.queued.write"
    assert sum(took > 0 for took, _ in longest.values()) > len(longest) / 3, "many routes look something up"

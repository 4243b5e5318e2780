"""Switching models without a restart: takes end first, the old model is unloaded first, and reloaded on failure."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from websockets.sync.client import connect

from engine import CheckpointError, Engine
from longform.extension import REGENERATIONS
from protocols.fish.message_pack import pack
from studio.models.catalogue import BUNDLED_FOLDER, TREES
from studio.models.model_choice import write_choice
from studio.settings import Settings, read_keys
from tests.longform.test_projects import create_project, parts_of
from tests.longform.test_projects import until as until_project
from tests.studio.api.test_ownership import asking
from tests.studio.models.conftest import (
    AUDIO8,
    DOWNLOAD,
    LIST,
    STATE,
    Studio,
    downloaded,
    say,
    switched,
    unreadable,
    until,
)
from tests.studio.models.hub import Hub
from tests.studio.server import serve
from tests.tiny import damage_values
from tests.waiting import wait_until_true

StudioOf = Callable[..., Studio]


def put(client: httpx.Client, model: str | Path) -> httpx.Response:
    return client.put(STATE, json={"model": str(model)})


def why(answer: httpx.Response) -> str:
    return str(answer.json()["error"]["message"])


def test_downloaded_model_can_be_used_and_is_loaded_at_the_next_start(
    hub: Hub, snapshot: Path, studio_of: StudioOf, tmp_path: Path
) -> None:
    home = str(tmp_path / "home")
    studio = studio_of(home=home)
    with studio.served.client() as client:
        assert put(client, AUDIO8).status_code == 400 and "not on this machine yet" in why(put(client, AUDIO8))
        client.post(DOWNLOAD)
        assert downloaded(client)["error"] is None
        answer = put(client, AUDIO8)
        assert answer.status_code == 202 and answer.json()["fixed_by_setting"] is False
        state = switched(client)
        assert state["model"] == "Edge0/Audio8-TTS-Preview-0.6b" and state["error"] is None
        assert say(client).status_code == 200
        assert client.get("/health").json()["engine"]["model"] == state["model"]
        assert client.get("/v1/models").json()["data"][0]["id"] == state["model"]
    assert studio.models == [BUNDLED_FOLDER, str(snapshot)] and studio.engines[0].stopped
    assert studio.engines[1].encoded  # its codec needs its own codes
    assert studio_of(home=home).models == [str(snapshot)]
    assert studio_of(home=home, model="test/model").models == ["test/model"]  # a setting takes precedence


def test_switch_waits_for_running_takes_and_refuses_new_ones_meanwhile(
    studio_of: StudioOf, quick_checkpoint: Path
) -> None:
    studio = studio_of()
    engine = studio.engines[0]
    with studio.served.client() as client:
        whole = len(say(client).content)
        engine.later_frames_gate.clear()
        answers: list[httpx.Response] = []
        speaking = threading.Thread(target=lambda: answers.append(say(client)))
        speaking.start()
        studio.served.until(running=1)
        assert put(client, quick_checkpoint).status_code == 202
        until(client, lambda state: state["doing"].startswith("waiting for 1 requests to end, for streams "))
        refused = say(client)
        assert refused.status_code == 503 and refused.headers["Retry-After"] and "waiting for 1" in why(refused)
        assert put(client, quick_checkpoint).status_code == 409
        assert client.delete(STATE).json()["switching_to"] is None
        assert client.get("/ready").json() == {"ready": True}  # with the previous model
        assert put(client, quick_checkpoint).status_code == 202
        until(client, lambda state: state["can_cancel"])
        engine.later_frames_gate.set()
        speaking.join(30)
        assert answers[0].status_code == 200 and len(answers[0].content) == whole
        assert switched(client)["model"] == quick_checkpoint.name
        assert client.delete(STATE).status_code == 404
    assert engine.stopped and studio.models == [BUNDLED_FOLDER, str(quick_checkpoint)]


def test_what_waits_for_its_place_when_a_switch_begins_is_served_by_the_previous_model(
    studio_of: StudioOf, quick_checkpoint: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("longform.extension.REGENERATIONS", replace(REGENERATIONS, at_once=1))
    studio = studio_of(home=str(tmp_path / "home"))
    engine = studio.engines[0]
    with studio.served.client() as client, ThreadPoolExecutor() as pool:
        project = create_project(studio.served, items=[{"input": "One two. Three."}], start=True)
        until_project(studio.served, project, "done")
        [part] = parts_of(studio.served, project)
        engine.later_frames_gate.clear()
        path = f"/v1/projects/{project['id']}/parts/{part['id']}/regenerate"
        items = {"items": [{"input": f"Item {number}."} for number in range(8)]}
        words = {"text": "One two. Three.", "start": 0, "end": 3}
        asked = [pool.submit(client.post, path, json=words) for _ in range(2)]
        studio.served.until(running=1)
        asked.append(pool.submit(client.post, "/v1/audio/speech/batch", json=items))
        studio.served.until(running=2)
        until(client, lambda _: studio.served.app.state.studio.speech.in_use >= 10)
        work = client.get("/health").json()["work"]["regenerations"]
        assert (work["running"], work["waiting"]) == (1, 1), "a queue, which is fair to all callers"
        assert put(client, quick_checkpoint).status_code == 202
        until(client, lambda state: state["can_cancel"])
        assert say(client).status_code == 503
        engine.later_frames_gate.set()
        answers = [one.result(60) for one in asked]
        assert [answer.status_code for answer in answers[:2]] == [200, 200], answers[1].text
        assert answers[2].json()["succeeded"] == 8, answers[2].text
        assert switched(client)["model"] == quick_checkpoint.name
    assert engine.stopped and len(engine.utterances) >= 11


LONG = "word " * 2900


def listen(studio: Studio, protocol: str, stack: contextlib.ExitStack) -> None:
    """Begin a long stream, and read nothing of it."""
    if protocol in SOCKETS:
        address = studio.served.url.replace("http", "ws") + SOCKETS[protocol]
        socket = stack.enter_context(connect(address, proxy=None, max_queue=1, close_timeout=0))
        stack.callback(socket.socket.close)
        for message in MESSAGES[protocol]:
            socket.send(message)
        return
    client = stack.enter_context(studio.served.client())
    path = "/v1/tts" if protocol == "tts" else "/v1/audio/speech"
    body = {"text": LONG, "format": "wav"} if protocol == "tts" else {"input": LONG, "response_format": "wav"}
    answer = client.stream("POST", path, json=body | ({"stream_format": "sse"} if protocol == "sse" else {}))
    assert stack.enter_context(answer).status_code == 200


SOCKETS = {"socket": "/v1/audio/speech/stream", "live": "/v1/tts/live"}
MESSAGES: dict[str, list[str | bytes]] = {
    "socket": [
        json.dumps({"type": "session.config", "response_format": "pcm"}),
        json.dumps({"type": "input.text", "text": LONG}),
        json.dumps({"type": "input.flush"}),
    ],
    "live": [pack({"event": "start", "request": {"text": LONG, "format": "wav"}}), pack({"event": "flush"})],
}


@pytest.mark.parametrize("protocol", ["audio", "sse", "tts", "socket", "live"])
def test_switch_ends_the_streams_of_listeners_who_do_not_read(
    studio_of: StudioOf, quick_checkpoint: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, protocol: str
) -> None:
    monkeypatch.setattr("studio.models.model_service.STREAM_SECONDS", 0.2)
    studio = studio_of(home=str(tmp_path / "home"))
    with contextlib.ExitStack() as stack, studio.served.client() as client:
        listen(studio, protocol, stack)
        studio.served.until(running=1)
        assert put(client, quick_checkpoint).status_code == 202
        assert switched(client)["model"] == quick_checkpoint.name, "while the listener is still connected"
        assert say(client).status_code == 200
        take = client.get("/v1/takes").json()["data"][1]
        assert take["state"] == "cancelled" and take["audio_s"] > 0
    assert studio.engines[0].cancelled == 1


@pytest.mark.parametrize("protocol", ["socket", "live"])
def test_a_conversation_forgets_the_codes_of_another_models_codec(
    studio_of: StudioOf, quick_checkpoint: Path, protocol: str
) -> None:
    studio = studio_of()
    address = studio.served.url.replace("http", "ws") + SOCKETS[protocol]
    with studio.served.client() as client, connect(address, proxy=None) as writer:
        if protocol == "live":
            writer.send(pack({"event": "start", "request": {"text": "", "format": "pcm"}}))

        def history_of(words: str, number: int) -> list[str]:
            if protocol == "live":
                writer.send(pack({"event": "text", "text": words}))
                writer.send(pack({"event": "flush"}))
            else:
                writer.send(json.dumps({"type": "input.text", "text": words}))
                writer.send(json.dumps({"type": "input.flush"}))
            engine = studio.engines[-1]
            wait_until_true(lambda: len(engine.utterances) == number)
            studio.served.until(running=0)
            return [turn.text for turn in engine.utterances[-1].history]

        assert history_of("One.", 1) == [] and history_of("Two.", 2) == ["One."]
        assert put(client, quick_checkpoint).status_code == 202 and switched(client)["error"] is None
        assert history_of("Three.", 1) == [] and history_of("Four.", 2) == ["Three."]


def test_a_project_pauses_for_a_switch_and_continues_with_the_new_model(
    studio_of: StudioOf, quick_checkpoint: Path
) -> None:
    studio = studio_of()
    engine = studio.engines[0]
    items = [{"input": f"Part {number}."} for number in range(12)]
    engine.later_frames_gate.clear()
    project = create_project(studio.served, items=items, start=True)
    until_project(studio.served, project, speaking=1)
    with studio.served.client() as client:
        assert put(client, quick_checkpoint).status_code == 202
        until(client, lambda state: state["can_cancel"])
        engine.later_frames_gate.set()
        assert switched(client)["model"] == quick_checkpoint.name
        now = until_project(studio.served, project, "done")
    assert now["parts"]["done"] == len(items) and now["parts"]["failed"] == 0
    assert 0 < len(studio.engines[1].utterances) < len(items)
    assert all(len(part["takes"]) == 1 for part in parts_of(studio.served, project))


@pytest.mark.parametrize("fault", [unreadable("x"), KeyError("unforeseen"), MemoryError("too large")])
def test_previous_model_is_loaded_if_a_switch_fails(
    studio_of: StudioOf, quick_checkpoint: Path, tmp_path: Path, fault: Exception
) -> None:
    studio = studio_of({str(quick_checkpoint): fault}, home=str(tmp_path / "home"))
    with studio.served.client() as client:
        put(client, quick_checkpoint)
        state = switched(client)
        assert state["model"] == "fry" and state["status"] == "ready"
        assert f"{quick_checkpoint.name} could not be loaded: " in state["error"] and str(fault) in state["error"]
        assert say(client).status_code == 200
        del studio.broken[str(quick_checkpoint)]
        put(client, quick_checkpoint)
        assert switched(client)["error"] is None
    assert studio.models == [BUNDLED_FOLDER, BUNDLED_FOLDER, str(quick_checkpoint)]


def test_third_model_can_be_chosen_if_neither_loads(studio_of: StudioOf, quick_checkpoint: Path) -> None:
    studio = studio_of()
    studio.broken |= {str(quick_checkpoint): unreadable("new"), BUNDLED_FOLDER: unreadable("old")}
    with studio.served.client() as client:
        put(client, quick_checkpoint)
        state = switched(client)
        assert state["status"] == "failed" and "nor could fry" in state["error"]
        assert say(client).status_code == 503
        studio.broken.clear()
        assert put(client, "bundled").status_code == 202
        assert switched(client)["status"] == "ready" and say(client).status_code == 200


def test_the_bundled_model_is_loaded_if_neither_loads(
    studio_of: StudioOf, quick_checkpoint: Path, tmp_path: Path
) -> None:
    other = shutil.copytree(quick_checkpoint, tmp_path / "other")
    studio = studio_of(model=str(other))
    studio.broken |= {str(quick_checkpoint): unreadable("new"), str(other): unreadable("old")}
    with studio.served.client() as client:
        put(client, quick_checkpoint)
        state = switched(client)
        assert state["model"] == "fry" and state["status"] == "ready"
        assert f"{quick_checkpoint.name} could not be loaded: new" in state["error"]
        assert "nor could other: old" in state["error"]
        assert say(client).status_code == 200


def test_old_weights_are_freed_before_new_ones_are_loaded(
    quick_checkpoint: Path, voices_folder: Path, tmp_path: Path
) -> None:
    """With the real engine, first with valid weights, then with some that are found to be damaged while loading."""
    other, damaged = tmp_path / "other", tmp_path / "damaged"
    for folder in (other, damaged):
        shutil.copytree(quick_checkpoint, folder)
    damage_values(damaged / "model.safetensors")
    alive: list[int] = []
    models: list[weakref.ref[object]] = []

    def start(*values: object) -> Engine:
        alive.append(sum(model() is not None for model in models))
        engine = Engine.start(*values)  # type: ignore[arg-type]
        models.append(weakref.ref(engine._checkpoint.model))
        return engine

    settings = Settings(model=str(quick_checkpoint), voices=str(voices_folder), home=str(tmp_path / "h"), max_rows=1)
    with serve(settings, start) as served, served.client() as client:
        assert say(client, max_new_tokens=4).status_code == 200
        put(client, other)
        assert switched(client)["model"] == "other" and say(client, max_new_tokens=4).status_code == 200
        put(client, damaged)
        state = switched(client)
        assert state["model"] == "other" and "model.safetensors" in state["error"]
        assert say(client, max_new_tokens=4).status_code == 200
    assert alive == [0, 0, 0, 0]


def test_unsuitable_model_is_refused_before_the_old_one_stops(
    studio_of: StudioOf, tmp_path: Path, cache: Path, quick_checkpoint: Path
) -> None:
    large, cut = tmp_path / "large", shutil.copytree(quick_checkpoint, tmp_path / "cut")
    (cut / "model.safetensors").write_bytes((cut / "model.safetensors").read_bytes()[:-1000])
    large.mkdir()
    (large / "config.json").write_text(json.dumps(TREES["s2-pro"]))
    studio = studio_of(memory_budget=1)
    with studio.served.client() as client:
        answer = put(client, large)
        assert answer.status_code == 400 and answer.json()["error"]["code"] == "model_does_not_fit"
        assert "does not fit: it needs at least" in why(answer) and "1.1 GB can be used" in why(answer)
        for wrong in (tmp_path, cut, "nowhere", "~nobody/x", "a\0b", "x" * 5000, "s2-pro"):
            assert put(client, wrong).status_code == 400, wrong
        assert client.put(STATE, json={"model": "bundled", "weights": "int4"}).status_code == 400
        listed = {model["name"]: model for model in client.get(LIST, params={"path": str(large)}).json()["data"]}
        assert listed["bundled"]["loaded"] and listed["bundled"]["fits"]
        assert listed[str(large)]["fits"] is listed["s2-pro"]["fits"] is False
        needs = {need["weights"]: need["memory_bytes"] for need in listed["s2-pro"]["needs"]}
        assert needs["bf16"] > needs["int8"] > needs["int6"] > 2**32
        assert all(need["real_time_factor"] > 1 for need in listed["s2-pro"]["needs"])
        nowhere = client.get(LIST, params={"path": str(tmp_path / "nowhere")}).json()["data"][-1]
        assert nowhere["error"].startswith(f"not found: '{tmp_path / 'nowhere'}';") and nowhere["fits"] is None
    assert len(studio.engines) == 1 and not studio.engines[0].stopped


def test_studio_starts_if_the_chosen_model_is_missing_or_broken(
    studio_of: StudioOf, cache: Path, tmp_path: Path, quick_checkpoint: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    write_choice(str(home), AUDIO8)
    with studio_of(home=str(home)).served.client() as client:
        state = client.get(STATE).json()
    assert state["model"] == "fry" and "not on this machine yet" in state["error"]
    write_choice(str(home), str(quick_checkpoint))
    with studio_of({str(quick_checkpoint): CheckpointError("cut off")}, home=str(home)).served.client() as client:
        state = client.get(STATE).json()
    assert state["model"] == "fry" and "could not be loaded: cut off" in state["error"]
    (home / "model.json").write_text("[]")
    with studio_of(home=str(home)).served.client() as client:
        state = client.get(STATE).json()
    assert state["model"] == "fry" and "model.json in STUDIO_HOME names no model" in state["error"]


def test_switching_needs_the_owner_and_a_fleet_explains_the_alternative(studio_of: StudioOf, cache: Path) -> None:
    served = studio_of(api_keys=read_keys("Anna=first,Bert=second")).served
    with asking(served, "second") as guest, asking(served, "first") as owner:
        for answer in (
            guest.get(LIST), guest.get(STATE), guest.post(DOWNLOAD), guest.delete(DOWNLOAD),
            put(guest, "bundled"), guest.delete(STATE),
        ):  # fmt: skip
            assert answer.status_code == 403 and answer.json()["error"]["code"] == "owner_only"
        assert owner.get(STATE).json()["cannot_switch"] is None
    with studio_of(engines=2).served.client() as client:
        assert "several engines" in client.get(STATE).json()["cannot_switch"]
        assert put(client, "bundled").status_code == 501


@pytest.mark.posix
def test_path_of_a_pipe_is_refused_with_its_kind(studio_of: StudioOf, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with studio_of().served.client() as client:
        answer = put(client, tmp_path / "pipe")
    assert answer.status_code == 400 and "is not a file but a named pipe" in why(answer)

"""Background work restarts after any failure, and its state is reported on request."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from collections.abc import AsyncGenerator, Callable, Collection
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from engine import AudioChunk, EngineConfig, Reference, Utterance
from longform.library.part_queue import PartQueue
from longform.library.project_repository import ProjectLibrary
from studio.errors import LibraryFull, LibraryUnavailable
from studio.library import VoiceFields
from studio.library.take import NewTake
from studio.library.take_repository import insert_take
from studio.settings import Settings
from studio.speech.recorder import Recorder, Retention
from studio.supervisor import HealthCheck
from tests.longform.test_projects import create_project, parts_of, until
from tests.studio.clips import new_sample
from tests.studio.conftest import Steered
from tests.studio.fake_engine import FakeEngine
from tests.studio.library.worker import active_take, stored_take
from tests.studio.server import Served, serve
from tests.waiting import wait_until, wait_until_true

Steer = Callable[..., Steered]


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.supervisor.FIRST_PAUSE", 0.02)
    monkeypatch.setattr("longform.worker.RETRY_SECONDS", 0.02)


def fail_first(monkeypatch: pytest.MonkeyPatch, owner: type, name: str, *errors: Exception) -> list[Exception]:
    """Make a method raise these errors first, in order, and then work as before; the remaining errors."""
    errors_left, does = list(errors), getattr(owner, name)

    def method(self: object, *arguments: Any, **more: Any) -> Any:
        if errors_left:
            raise errors_left.pop(0)
        return does(self, *arguments, **more)

    monkeypatch.setattr(owner, name, method)
    return errors_left


def background(served: Served) -> dict[str, dict[str, Any]]:
    health = httpx.get(f"{served.url}/health")
    assert health.status_code == 200 and health.json()["status"] == "ready"
    work = health.json()["background"]
    assert health.json()["degraded"] == any(not task["ok"] for task in work.values())
    return work


def until_well(served: Served, name: str, failures: int) -> None:
    wait_until(lambda work: work[name] == {"ok": True, "failures": failures}, lambda: background(served))


def test_projects_continue_after_a_start_with_an_unwritable_library(
    steered: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[Exception] = [LibraryUnavailable("locked"), KeyError("unforeseen")]

    class Failing(PartQueue):  # for this studio only: studios of other tests in this process use their own queues
        def recover(self, given_up: Collection[str] = ()) -> int:
            if errors:
                raise errors.pop(0)
            return super().recover(given_up)

    monkeypatch.setattr("longform.library.project_repository.PartQueue", Failing)
    served, _ = steered()
    project = create_project(served, items=[{"input": "One."}], start=True)
    until(served, project, "done")
    assert not errors
    until_well(served, "projects", 2)


@pytest.mark.parametrize("voice", ["nobody", "anna"])
def test_part_does_not_stay_in_progress_if_its_end_cannot_be_stored(
    steered: Steer, monkeypatch: pytest.MonkeyPatch, voice: str
) -> None:
    errors = fail_first(monkeypatch, PartQueue, "fail", LibraryUnavailable("locked"))
    errors += fail_first(monkeypatch, PartQueue, "release", LibraryUnavailable("locked"))
    fail_first(monkeypatch, PartQueue, "done", LibraryUnavailable("locked"))
    served, _ = steered()
    project = create_project(served, items=[{"input": "One.", "voice": voice}, {"input": "Two."}], start=True)
    now = until(served, project, "incomplete" if voice == "nobody" else "done")
    assert now["parts"]["speaking"] == 0 and now["parts"]["done"] == (1 if voice == "nobody" else 2)
    assert background(served)["projects"]["failures"] >= 2


def test_parts_wait_for_disk_space_and_show_it(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()
    done = PartQueue.done

    def full(self: PartQueue, *arguments: Any) -> None:
        if not goes_on.is_set():
            raise LibraryFull("the library has no room left on its disk")
        done(self, *arguments)

    monkeypatch.setattr(PartQueue, "done", full)
    served, _ = steered()
    project = create_project(served, items=[{"input": "One."}, {"input": "Two."}], start=True)
    wait_until(lambda work: work["projects"]["failures"] >= 3, lambda: background(served))
    assert not background(served)["projects"]["ok"]
    assert any("no room left" in (part["error"] or "") for part in parts_of(served, project))
    with served.client() as client:
        error = client.get("/v1/diagnostics").json()["background"]["projects"]["error"]
        metrics = client.get("/metrics").text
    assert "the audio of a part could not be stored" in error
    assert 'studio_background_ok{work="projects"} 0.0' in metrics and "engine_book_errors_total 0.0" in metrics
    goes_on.set()
    done_now = until(served, project, "done")
    assert done_now["parts"]["failed"] == 0 and all(part["attempts"] == 1 for part in parts_of(served, project))
    assert background(served)["projects"]["ok"]


class BuggyEngine(FakeEngine):
    async def speak(self, utterance: Utterance) -> AsyncGenerator[AudioChunk, None]:
        if "bug" in utterance.text:
            raise ZeroDivisionError("unforeseen")
        async for chunk in super().speak(utterance):
            yield chunk


def test_unexpected_error_fails_only_its_part(voices_folder: Path) -> None:
    settings = Settings(model="test/model", voices=str(voices_folder))
    with serve(settings, BuggyEngine.start) as served:
        project = create_project(served, items=[{"input": "A bug."}, {"input": "Two."}], start=True)
        now = until(served, project, "incomplete")
        assert (now["parts"]["done"], now["parts"]["failed"]) == (1, 1)
        assert "ZeroDivisionError" in parts_of(served, project)[0]["error"]


def test_damaged_voice_does_not_stop_preparing_others(
    tmp_path: Path, steered: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.speech.speech_service.WARM_AGAIN_SECONDS", 0.01)
    library = ProjectLibrary(tmp_path / "home")
    voice = library.voices.create(VoiceFields(name="Aaron"), [new_sample()])
    library.voices.edit("aaron", VoiceFields(favourite=True))
    library.files.path(voice.samples[0].clip).write_bytes(b"noise")
    served, engine = steered(home=str(tmp_path / "home"))
    wait_until(lambda work: len(engine.encoded) == 2 and work["warming"]["failures"], lambda: background(served))
    assert [text for *_, text in engine.encoded] == ["My name is anna.", "My name is bert."]
    with served.client() as client:
        assert "Aaron" in client.get("/v1/diagnostics").json()["background"]["warming"]["error"]
        client.delete("/v1/voices/aaron").raise_for_status()
    wait_until(lambda work: work["warming"]["ok"], lambda: background(served))
    assert len(engine.encoded) == 2


class SlowEncoder(FakeEngine):
    """Encodes a clip only when the gate is open."""

    def __init__(self, config: EngineConfig) -> None:
        super().__init__(config)
        self.encoder_gate = threading.Event()

    async def encode_reference(self, pcm: np.ndarray, sample_rate: int, text: str) -> Reference:
        reference = await super().encode_reference(pcm, sample_rate, text)
        await self._until(self.encoder_gate.is_set)
        return reference


def test_voices_are_prepared_between_requests_on_a_cpu(voices_folder: Path) -> None:
    engines: list[SlowEncoder] = []

    def start(config: EngineConfig, progress: Callable[[str, float], None]) -> SlowEncoder:
        engines.append(SlowEncoder(config))
        return engines[0]

    with serve(Settings(model="test/model", voices=str(voices_folder)), start) as served, served.client() as client:
        wait_until_true(lambda: bool(engines) and len(engines[0].encoded) == 1)
        engine = engines[0]
        engine.later_frames_gate.clear()
        request = {"input": "A long take.", "voice": "random", "response_format": "pcm"}
        with client.stream("POST", "/v1/audio/speech", json=request) as response:
            chunks = response.iter_raw()
            next(chunks)
            engine.encoder_gate.set()
            wait_until_true(lambda: client.get("/v1/queue").json()["work"]["encodings"]["running"] == 0)
            for _ in range(20):  # time enough to start a second clip
                client.get("/health")
            assert len(engine.encoded) == 1
            engine.later_frames_gate.set()
            assert list(chunks)
        wait_until_true(lambda: len(engine.encoded) == 2)


def test_no_voice_is_prepared_for_a_model_that_does_not_clone(voices_folder: Path) -> None:
    """It is loaded while voices are prepared for the model before it, which reports that it was stopped."""
    engines: list[SlowEncoder] = []

    def start(config: EngineConfig, progress: Callable[[str, float], None]) -> SlowEncoder:
        engines.append(SlowEncoder(config))
        return engines[0]

    with serve(Settings(model="test/model", voices=str(voices_folder)), start) as served:
        wait_until_true(lambda: bool(engines) and len(engines[0].encoded) == 1)
        served.app.state.studio.speech.warming.report_failure("the engine was stopped")
        engines[0].info = dataclasses.replace(engines[0].info, clones=False)
        engines[0].encoder_gate.set()
        wait_until(lambda work: work["warming"]["ok"], lambda: background(served))
        assert len(engines[0].encoded) == 1


def test_takes_are_stored_after_a_failed_one(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _ = steered()
    library: ProjectLibrary = served.app.state.studio.speech.voices.library
    errors = fail_first(monkeypatch, type(library.takes), "add_all", KeyError("unforeseen"))

    def speak() -> bool:
        with served.client() as client:
            answer = client.post("/v1/audio/speech", json={"input": "Two words"})
            return bool(client.get(f"/v1/takes/{answer.headers['x-request-id']}").json()["stored"])

    assert not speak() and not errors
    assert background(served)["recorder"] == {"ok": False, "failures": 1}
    assert speak()
    assert background(served)["recorder"] == {"ok": True, "failures": 1}


async def test_audio_that_nothing_holds_is_eventually_uncounted(tmp_path: Path) -> None:
    recorder = Recorder(ProjectLibrary(tmp_path), Retention(5, 10**6), lambda take_id, outcome: None)
    take = stored_take("req_1", "words", "anna")
    open_one = active_take(take, recorder)
    assert recorder.reserve(2000)
    open_one.write(np.ones(10, np.float32))
    assert recorder.check() == (2020, 2020), "it may be right as long as something is recorded"
    open_one.end()
    await recorder.wait_until_written()
    recorder.stop()
    assert recorder.check() == (0, 0) and recorder._audio_bytes == 0


def test_engine_is_failed_if_its_start_raises(voices_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda arguments: None)  # would print the stack

    def start(config: EngineConfig, progress: Callable[[str, float], None]) -> FakeEngine:
        raise KeyError("unforeseen")

    with serve(Settings(voices=str(voices_folder)), start, wait=False) as served:
        with pytest.raises(KeyError):
            served.app.state.studio.speech.host.wait(30)
        health = httpx.get(f"{served.url}/health")
        assert (health.status_code, health.json()["status"]) == (503, "failed")
        assert "KeyError" in health.json()["error"]


async def test_failing_work_is_restarted_until_done(caplog: pytest.LogCaptureFixture) -> None:
    watch, outcomes = HealthCheck("counting"), iter([OSError("a"), OSError("a"), ValueError("b"), None])

    async def work() -> None:
        if error := next(outcomes):
            raise error

    await asyncio.wait_for(watch.restart_forever(work), 60)
    assert next(outcomes, "done") == "done" and watch.status.failures == 3
    messages = [record.getMessage() for record in caplog.records if record.name == "studio.supervisor"]
    assert messages == [f"counting failed and is being restarted: {what}" for what in "ab"], "the same is told once"
    assert [bool(record.exc_info) for record in caplog.records if record.name == "studio.supervisor"] == [False, True]


def test_expired_deletions_are_removed_without_any_request(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.library.library.CLEAR_SECONDS", 0.02)
    served, _ = steered()
    library: ProjectLibrary = served.app.state.studio.speech.voices.library
    errors = fail_first(monkeypatch, type(library.trash), "expire", LibraryUnavailable("locked"))
    with library.store.writing() as db:  # as it is a week after its deletion
        take = stored_take("req_1", "secret words", "anna")
        audio = library.files.put(b"secret sound")
        insert_take(db, NewTake(dataclasses.replace(take, deleted=time.time() - 8 * 86_400)), audio)
    # A purge that started earlier may already have removed it.
    wait_until_true(lambda: not errors and not library.files.path(audio).exists())
    until_well(served, "clearing", 1)

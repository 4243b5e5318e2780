"""Where a request is planned: in the event loop if that is quick, else in a thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import pytest

from engine import EngineConfig
from studio.errors import LibraryUnavailable, UnknownVoice
from studio.library import Library, Voice, VoiceFields
from studio.speech import plan as planner_module
from studio.speech.plan import FEW, QUICK_SECONDS, SHORT, SLOW_SECONDS, Planner
from studio.speech.request import Origin, SpeechRequest
from studio.voices.resolver import VoiceResolver
from studio.work import TEXTS, WorkQueue
from tests.studio.clips import new_sample
from tests.studio.fake_engine import FakeEngine

INFO = FakeEngine.start(EngineConfig("model")).info
ORIGIN = Origin(caller="me")


@dataclass
class Clock:
    """In place of `time`."""

    of_processor: float = 1000.0
    of_wall: float = 1000.0

    def thread_time(self) -> float:
        return self.of_processor

    def monotonic(self) -> float:
        return self.of_wall


class Watched(VoiceResolver):
    """Records the thread of each look-up."""

    def __init__(self, library: Library) -> None:
        super().__init__(library)
        self.threads: list[threading.Thread] = []
        self.seconds = self.waits = 0.0
        """Processor time of each look-up, and its time spent only waiting."""
        self.clock = Clock()
        self.is_locked = False
        """Whether another program has the library, as an event loop finds it, which does not wait."""

    def find(self, name: str | None, hints: bool = True) -> Voice | None:
        self.threads.append(threading.current_thread())
        self.clock.of_processor += self.seconds
        self.clock.of_wall += self.seconds + self.waits
        if self.is_locked and self.threads[-1] is threading.main_thread():
            raise LibraryUnavailable("the library is locked by another program")
        return super().find(name, hints)

    @property
    def in_loop(self) -> list[bool]:
        return [thread is threading.main_thread() for thread in self.threads]


@pytest.fixture
def voices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watched:
    """Voices; only their look-ups take time."""
    library = Library(tmp_path)
    library.voices.create(VoiceFields(name="Eve"), [new_sample()])
    watched = Watched(library)
    monkeypatch.setattr(planner_module, "time", watched.clock)
    return watched


async def test_short_texts_are_planned_in_the_event_loop_and_long_ones_in_a_thread(
    voices: Watched,
) -> None:
    planner, request = Planner(voices, WorkQueue(TEXTS)), SpeechRequest("Hello there.", "eve", seed=3)
    in_thread = await planner.plan(request, INFO, ORIGIN)
    assert await planner.plan(request, INFO, ORIGIN) == in_thread
    assert in_thread.label == "eve" and voices.in_loop == [False, True]
    voices.threads.clear()
    plan = await planner.plan(SpeechRequest("word " * (SHORT // 5 + 1), "eve"), INFO, ORIGIN)
    assert plan.label == "eve" and voices.in_loop == [False]
    voices.threads.clear()
    await planner.plan(SpeechRequest("\n".join(f"Eve: {n}." for n in range(FEW + 2)), cast={}), INFO, ORIGIN)
    assert set(voices.in_loop) == {False}, "each of its voices may have a dictionary"


async def test_number_rules_are_compiled_in_a_thread_on_first_use(voices: Watched) -> None:
    planner = Planner(voices, WorkQueue(TEXTS))
    await planner.plan(SpeechRequest("Hello.", "eve"), INFO, ORIGIN)
    for _ in range(2):
        plan = await planner.plan(SpeechRequest("It is 5 pm.", "eve", normalize=True), INFO, ORIGIN)
        assert plan.parts[0].text == "It is five PM."
    assert voices.in_loop == [False, False, True]


async def test_plans_run_in_threads_after_an_expensive_one(voices: Watched) -> None:
    planner, request = Planner(voices, WorkQueue(TEXTS)), SpeechRequest("Hello.", "eve")
    await planner.plan(request, INFO, ORIGIN)
    voices.waits = 2 * QUICK_SECONDS  # for other threads, as in a crowd
    for _ in range(2):
        await planner.plan(request, INFO, ORIGIN)
    assert voices.in_loop == [False, True, True]
    voices.threads.clear()
    voices.seconds = 2 * QUICK_SECONDS
    await planner.plan(request, INFO, ORIGIN)
    voices.seconds, voices.waits = 0.0, 0.6 * SLOW_SECONDS
    for _ in range(4):
        await planner.plan(request, INFO, ORIGIN)
    assert voices.in_loop == [True, False, False, True, True], "for so many seconds"


async def test_locked_library_is_awaited_in_a_thread_with_the_same_refusals(voices: Watched) -> None:
    planner = Planner(voices, WorkQueue(TEXTS))
    await planner.plan(SpeechRequest("Hello.", "eve"), INFO, ORIGIN)
    voices.is_locked = True
    assert (await planner.plan(SpeechRequest("Hello.", "eve"), INFO, ORIGIN)).label == "eve"
    assert voices.in_loop == [False, True, False]
    voices.is_locked = False
    for _ in range(2):
        with pytest.raises(UnknownVoice, match="did you mean eve"):
            await planner.plan(SpeechRequest("Hello.", "evee"), INFO, ORIGIN)

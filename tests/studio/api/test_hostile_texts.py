"""No text occupies the interpreter: each of the hostile ones costs little, wherever a caller sends it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.patterns.hostile_texts import TEXTS
from tests.studio.conftest import Steered

SIZE = 8000
MOST_SECONDS = 2.0
"""CPU time of the whole process, whose interpreter one thread occupies at a time: plain words take a twentieth of it,
quadratic growth several times as much."""
SHARES = 4

WAYS: dict[str, Callable[[str], dict[str, object]]] = {
    "/v1/audio/speech/reading": lambda text: {"input": text},
    "/v1/audio/speech": lambda text: {"input": text, "voice": "anna"},
    "/v1/audio/speech/batch": lambda text: {"items": [{"input": text, "voice": "anna"}]},
    "/v1/tts": lambda text: {"text": text, "reference_id": "anna"},
}
READ, *SPOKEN = WAYS
ANSWERS_WHEN_SPOKEN = "/v1/audio/speech/batch"
"""It gets a quarter of the text: its first byte follows the speech, and speaking many short sentences costs 1.5 ms
each, for plain words as for others."""


@pytest.fixture
def client(steered: Callable[..., Steered]) -> Iterator[httpx.Client]:
    served, engine = steered(max_rows=1)
    engine.frames_a_word = 1
    health, stop = list[int](), threading.Event()

    def watch() -> None:
        with served.client() as watching:
            while not stop.wait(0.05):
                health.append(watching.get("/health").status_code)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with served.client() as client:
        yield client
    stop.set()
    watcher.join()
    assert set(health) == {200}


@pytest.mark.parametrize("share", range(SHARES))
def test_hostile_text_costs_little_wherever_it_is_sent(client: httpx.Client, share: int) -> None:
    assert len(TEXTS) > 200
    slow = list[str]()
    for number, (name, make) in enumerate(list(TEXTS.items())[share::SHARES]):
        spoken = number // 12 % len(SPOKEN) if number % 12 == 0 else None  # all are read, some are spoken too
        way = READ if spoken is None else SPOKEN[spoken]
        text = make(SIZE // 4 if way == ANSWERS_WHEN_SPOKEN else SIZE)
        began = time.process_time()
        with client.stream("POST", way, json=WAYS[way](text)) as answer:  # elsewhere it follows the reading
            is_too_short = answer.status_code == 500 and b"too soon" in answer.read()  # one frame a word
            assert answer.status_code < 500 or is_too_short, (name, way)
        seconds = time.process_time() - began
        if seconds > MOST_SECONDS:
            slow.append(f"{name} to {way}: {seconds:.1f} s")
    assert not slow, "\n".join(slow)

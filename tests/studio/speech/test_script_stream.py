"""Long texts, pauses, speed, and takes that go wrong: the listener's audio and the engine's requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import httpx
import numpy as np
import pytest

from engine import AudioChunk, EngineConfig, Reference, Sampling, Utterance
from speechtext.script import read_script
from studio.speech.script_stream import ASKING, ScriptStream
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served
from tests.studio.sounds import frames_of

SPEECH = "/v1/audio/speech"
FRAME = 2048
SENTENCE = "This is a sentence that fills about half a part of text."
Steer = Callable[..., Steered]


def wav_of(served: Served, **body: object) -> httpx.Response:
    with served.client() as client:
        return client.post(SPEECH, json={"response_format": "wav", "seed": 5} | body)


def samples(data: bytes) -> np.ndarray:
    return np.frombuffer(data[44:], "<i2").astype(np.float32) / 32767


def test_long_text_is_spoken_in_parts_of_one_conversation(steered: Steer) -> None:
    served, engine = steered()
    answer = wav_of(served, input=" ".join([SENTENCE] * 6), chunk_length=120)
    texts = [utterance.text for utterance in engine.utterances]
    assert texts == [f"{SENTENCE} {SENTENCE}"] * 3
    words = len(SENTENCE.split())
    assert frames_of(answer.content)[1] == 6 * words * 6 * FRAME
    for number, utterance in enumerate(engine.utterances):
        assert [turn.text for turn in utterance.history] == texts[:number]
        assert all(turn.frames == 2 * words * 6 for turn in utterance.history)
        assert [reference.text for reference in utterance.references] == ["My name is anna."]
        assert utterance.sampling.seed == 5 + number
    assert engine.cancelled == 0


def test_conversation_drops_its_oldest_turns_if_the_context_is_full(steered: Steer) -> None:
    served, engine = steered()
    wav_of(served, input=" ".join([SENTENCE] * 40), chunk_length=120)
    remembered = [len(utterance.history) for utterance in engine.utterances]
    assert len(remembered) == 20
    assert remembered[:3] == [0, 1, 2]
    assert max(remembered) == remembered[-1] < 19
    positions = [sum(turn.frames for turn in utterance.history) for utterance in engine.utterances]
    assert max(positions) < engine.info.max_context // 2


async def test_real_engine_uses_the_previous_parts_as_context(studio: Served) -> None:
    engine = studio.app.state.studio.speech.host.engine()
    utterance = Utterance("x", sampling=Sampling(seed=2), max_frames=12)

    async def spoken(history: list[Reference]) -> np.ndarray:
        script = read_script(f"{SENTENCE} {SENTENCE}", 100)
        performance = ScriptStream(engine, script, utterance, None, history)
        return np.concatenate([sound.pcm async for sound in performance.sounds()])

    history: list[Reference] = []
    whole = await spoken(history)
    assert len(history) == 2
    assert len(whole) == sum(turn.frames for turn in history) * FRAME
    np.testing.assert_array_equal(await spoken([]), whole)
    assert not np.array_equal(await spoken(history), whole)


def test_disconnect_during_a_later_part_frees_the_row(steered: Steer) -> None:
    served, engine = steered()
    body = {"input": " ".join([SENTENCE] * 4), "chunk_length": 100, "response_format": "wav"}
    with served.client() as client, client.stream("POST", SPEECH, json=body) as answer:
        pieces = answer.iter_raw()
        while len(engine.utterances) < 2:
            next(pieces)
        engine.later_frames_gate.clear()
    served.until(running=0, waiting=0)


def test_later_part_waits_while_the_queue_is_full(steered: Steer) -> None:
    served, engine = steered()
    engine.full_times = 3
    answer = wav_of(served, input=f"{SENTENCE} {SENTENCE}", chunk_length=100)
    assert engine.full_times == 0
    assert frames_of(answer.content)[1] == 2 * len(SENTENCE.split()) * 6 * FRAME


async def test_many_parts_that_wait_for_a_full_engine_rarely_ask_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.speech.script_stream.QUEUE_RETRY_SECONDS", 0)
    engine, count, turns = FakeEngine(EngineConfig("test/model", max_waiting=0)), 100, 500
    engine.rows, asked, speak = 0, 0, engine.speak

    def counted(utterance: Utterance) -> AsyncGenerator[AudioChunk, None]:
        nonlocal asked
        asked += 1
        return speak(utterance)

    monkeypatch.setattr(engine, "speak", counted)

    async def heard() -> int:
        utterance = Utterance("x", sampling=Sampling(seed=2), owner="anna")
        stream = ScriptStream(engine, read_script(SENTENCE), utterance, None, [], patient=True)
        return sum([sound.frames async for sound in stream.sounds()])

    waiting = asyncio.gather(*(heard() for _ in range(count)))
    for _ in range(turns):
        await asyncio.sleep(0)
    assert asked <= count + turns * ASKING < turns * count / 10
    engine.rows = count
    assert set(await waiting) == {6 * len(SENTENCE.split())}


def test_pauses_give_silence_of_their_length_at_their_position(steered: Steer) -> None:
    served, _ = steered()
    answer = wav_of(served, input="[pause:500ms] One. [pause:1s] Two. [pause:250ms]")
    pcm = samples(answer.content)
    half, one, quarter = 22_050, 44_100, 11_025
    assert len(pcm) == half + one + quarter + 2 * 6 * FRAME
    silent = np.abs(pcm) < 1e-4
    assert silent[:half].all() and silent[half + 6 * FRAME : half + 6 * FRAME + one].all() and silent[-quarter:].all()
    assert np.abs(pcm[half : half + 6 * FRAME]).max() > 0.4


async def test_long_silence_is_streamed_second_by_second() -> None:
    engine = FakeEngine(EngineConfig("test/model"))
    script = read_script("[pause:10s]" * 30 + "One." + "[pause:10s]" * 30)
    performance = ScriptStream(engine, script, Utterance("x", sampling=Sampling(seed=2)), None, [])
    sounds = [sound async for sound in performance.sounds()]
    assert max(len(sound.pcm) for sound in sounds) <= engine.info.sample_rate
    assert sum(len(sound.pcm) for sound in sounds) == 600 * engine.info.sample_rate + 6 * FRAME
    assert sum(sound.frames for sound in sounds) == 6
    assert [sound.finish_reason for sound in sounds if sound.finish_reason] == ["stop"] == [sounds[-1].finish_reason]


@pytest.mark.parametrize("speed", [0.5, 2])
def test_pauses_and_gaps_keep_their_length_at_any_speed(steered: Steer, speed: float) -> None:
    served, _ = steered()

    def seconds(text: str, **fields: object) -> float:
        body = {"input": text, "response_format": "pcm", "sample_rate": 44_100, "speed": speed, "seed": 1} | fields
        with served.client() as client:
            answer = client.post("/v1/audio/speech", json=body)
        assert answer.status_code == 200, answer.text
        return len(answer.content) / 2 / 44_100

    long, short = (seconds(f"Hi there. [pause:{pause}s] You.") for pause in (3, 1))
    assert long - short == pytest.approx(2, abs=0.1)
    turns = "Anna: Hi there.\nBert: You."
    long, short = (seconds(turns, cast={}, turn_gap=gap) for gap in (3, 1))
    assert long - short == pytest.approx(2, abs=0.1)


@pytest.mark.parametrize("more", [{}, {"cast": {"Anna": "anna"}}])
def test_more_than_ten_minutes_of_pauses_are_refused(steered: Steer, more: dict[str, object]) -> None:
    served, engine = steered()
    answer = wav_of(served, input="Anna: Hi." + "[pause:10s]" * 40 + "\nAnna: Hi." + "[pause:10s]" * 21, **more)
    assert_envelope(answer, 400)
    assert "add up to 610 s" in answer.json()["error"]["message"]
    assert not engine.utterances


def test_budget_counts_all_parts_and_the_record_names_the_limit(steered: Steer) -> None:
    served, _ = steered()
    answer = wav_of(served, input=" ".join([SENTENCE] * 4), chunk_length=100, max_new_tokens=100)
    assert frames_of(answer.content)[1] == 100 * FRAME
    with served.client() as client:
        take = client.get(f"/v1/takes/{answer.headers['x-request-id']}").json()
    assert (take["frames"], take["finish_reason"]) == (100, "length")


@pytest.mark.parametrize("speed", [0.25, 0.8, 1.5, 4.0])
def test_speed_changes_the_length_and_not_the_pitch(steered: Steer, speed: float) -> None:
    served, _ = steered()
    answer = wav_of(served, input="one two three four five six", seed=240, speed=speed)
    pcm = samples(answer.content)
    seconds = 36 * FRAME / 44_100
    assert len(pcm) / 44_100 == pytest.approx(seconds / speed, rel=0.03, abs=0.05)
    middle = pcm[len(pcm) // 4 : -len(pcm) // 4]
    loudest = np.argmax(np.abs(np.fft.rfft(middle * np.hanning(len(middle)))))
    assert loudest * 44_100 / len(middle) == pytest.approx(440, rel=0.01)


def test_speed_works_for_every_format(steered: Steer) -> None:
    served, _ = steered()
    for name in ("mp3", "opus", "aac", "flac", "pcm"):
        assert wav_of(served, input="one two", response_format=name, speed=1.3).status_code == 200


@pytest.mark.parametrize("fault", ["short", "nan"])
def test_immediately_failing_take_is_retried_once(steered: Steer, fault: str) -> None:
    served, engine = steered()
    engine.spoilt = [fault]
    answer = wav_of(served, input="Oh, incomprehensibilities!")
    assert answer.status_code == 200
    first, second = (utterance.sampling.seed for utterance in engine.utterances)
    assert first == 5 != second
    assert frames_of(answer.content)[1] == 12 * FRAME


def test_second_failure_is_an_error_with_the_reason(steered: Steer) -> None:
    served, engine = steered()
    engine.spoilt = ["nan", "nan"]
    answer = wav_of(served, input="a")
    assert_envelope(answer, 500)
    assert answer.json()["error"]["code"] == "degenerate_speech"
    first, second = (utterance.sampling.seed for utterance in engine.utterances)
    message = answer.json()["error"]["message"]
    assert "invalid samples" in message and f"with seed {first} and {second};" in message
    served.until(running=0)


@pytest.mark.parametrize(("fault", "why"), [("late nan", "invalid samples"), ("loop", "loop"), ("silent", "silent")])
def test_faulty_speech_already_playing_is_cut_off_and_recorded(steered: Steer, fault: str, why: str) -> None:
    served, engine = steered()
    engine.spoilt = [fault]
    with served.client() as client:
        body = {"input": "word " * 20, "response_format": "wav"}
        with pytest.raises(httpx.RemoteProtocolError), client.stream("POST", SPEECH, json=body) as answer:
            answer.read()
        take = client.get(f"/v1/takes/{answer.headers['x-request-id']}").json()
    assert take["state"] == "failed" and why in take["error"]
    served.until(running=0)

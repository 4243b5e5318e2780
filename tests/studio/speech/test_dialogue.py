"""Dialogues: the voice of each line, the timing of turns, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

from speechtext import TextError
from speechtext.turns import read_turns
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.fake_engine import tone
from tests.studio.server import Served
from tests.studio.sounds import frames_of

SPEECH = "/v1/audio/speech"
FRAME, RATE = 2048, 44_100
Steer = Callable[..., Steered]
SCRIPT = """Once upon a time
ANNA: Hello there.
The fish: [whispering] Hi, I say: go.

It is ten, at 10:30 sharp.
anna: Bye."""


def speak(served: Served, **body: object) -> httpx.Response:
    with served.client() as client:
        return client.post(SPEECH, json={"response_format": "wav", "seed": 5, "cast": {}} | body)


def test_name_and_colon_at_line_start_begin_a_turn() -> None:
    turns = read_turns(SCRIPT)
    assert [(turn.speaker, turn.text, turn.line) for turn in turns] == [
        (None, "Once upon a time", 1),
        ("ANNA", "Hello there.", 2),
        ("The fish", "[whispering] Hi, I say: go.\n\nIt is ten, at 10:30 sharp.", 3),
        ("anna", "Bye.", 6),
    ]
    assert [turn.speaker for turn in read_turns("小明：你好。\n小红：你好！")] == ["小明", "小红"]
    assert [turn.speaker for turn in read_turns("See https://example.org\nAnd one two three four five: six")] == [None]
    with pytest.raises(TextError, match="line 2: there is no text after “Bert:”"):
        read_turns("Anna: Hi.\nBert:\nAnna: Well?")


def test_turns_have_their_voice_seed_and_position_in_the_file(steered: Steer) -> None:
    served, engine = steered()
    script = "One two.\nAnna: Three four five.\nThe fish: Six.\nANNA: Seven."
    answer = speak(served, input=script, voice="bert", cast={"the fish": "bert"}, turn_gap=0.5)
    assert answer.headers["x-voice"] == "bert, anna"
    own = [utterance.references[0].text[11:15] for utterance in engine.utterances]
    assert own == ["bert", "anna", "bert", "anna"]
    assert [utterance.text for utterance in engine.utterances] == ["One two.", "Three four five.", "Six.", "Seven."]
    assert [utterance.sampling.seed for utterance in engine.utterances] == [5, 1014, 2023, 3032]
    # A voice continues from its own turns and gets none of the others' as history.
    assert [[turn.text for turn in utterance.history] for utterance in engine.utterances] == [
        [], [], ["One two."], ["Three four five."],
    ]  # fmt: skip
    gap, lengths = RATE // 2, [frames * FRAME for frames in (12, 18, 6, 6)]
    assert frames_of(answer.content) == (RATE, sum(lengths) + 3 * gap)
    with served.client() as client:
        turns = client.get(f"/v1/takes/{answer.headers['x-request-id']}").json()["turns"]
    assert [(turn["speaker"], turn["voice"], turn["seed"]) for turn in turns] == [
        ("", "bert", 5), ("Anna", "anna", 1014), ("The fish", "bert", 2023), ("ANNA", "anna", 3032),
    ]  # fmt: skip
    sound, start = np.frombuffer(answer.content[44:], "<i2").astype(np.float32) / 32767, 0
    for turn, length in zip(turns, lengths, strict=True):
        assert turn["start_s"] == round(start / RATE, 3) and turn["end_s"] == round((start + length) / RATE, 3)
        wanted = np.concatenate([tone(turn["seed"], frame) for frame in range(length // FRAME)])
        assert np.allclose(sound[start : start + length], wanted, atol=1e-4)
        assert not sound[start + length : start + length + gap].any()
        start += length + gap
    assert speak(served, input=script, voice="bert", cast={"the fish": "bert"}, turn_gap=0.5).content == answer.content


def test_revisions_of_a_voice_are_treated_as_separate_voices(steered: Steer) -> None:
    served, engine = steered()
    library = served.app.state.studio.library
    bert = library.voices.get("bert").samples
    library.voices.revise("anna", lambda _: bert)
    speak(served, input="A: One.\nB: Two.\nA: Three.", cast={"A": "anna@1", "B": "anna@2"})
    assert [utterance.references[0].text[11:15] for utterance in engine.utterances] == ["anna", "bert", "anna"]
    assert [[turn.text for turn in utterance.history] for utterance in engine.utterances] == [[], [], ["One."]]


def test_first_turn_is_streamed_before_the_second_is_generated(steered: Steer) -> None:
    served, engine = steered(max_rows=1, max_waiting=0)
    engine.later_frames_gate.clear()
    with served.client() as client:
        body = {"input": "Anna: one two three four five.\nBert: six.", "cast": {}, "response_format": "pcm"}
        with client.stream("POST", SPEECH, json=body) as answer:
            pieces = answer.iter_raw()
            assert len(next(pieces)) > 1000
            engine.later_frames_gate.set()
            assert sum(map(len, pieces)) > 60_000
    assert len(engine.utterances) == 2
    served.until(running=0)


def test_next_turn_begins_early_if_the_current_audio_will_not_last(steered: Steer) -> None:
    served, engine = steered(max_rows=2)
    engine.later_frames_gate.clear()
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(speak, served, input="Anna: Hm.\nBert: Yes, so it is.")
        served.until(running=2)  # one frame of "Hm." is there: the rest cannot fill the second that Bert may need
        engine.later_frames_gate.set()
        assert frames_of(answer.result().content)[1] == 30 * FRAME + round(0.3 * RATE)


def test_disconnect_cancels_both_turns(steered: Steer) -> None:
    served, engine = steered(max_rows=2)
    engine.later_frames_gate.clear()
    with served.client() as client:
        body = {"input": "Anna: Hm.\nBert: Yes, so it is.", "cast": {}, "response_format": "pcm"}
        with client.stream("POST", SPEECH, json=body) as answer:
            pieces = answer.iter_raw()
            next(pieces)
            served.until(running=2)
    served.until(running=0, cancelled=2)


def test_max_new_tokens_limits_all_turns_together(steered: Steer) -> None:
    served, _ = steered()
    answer = speak(served, input="Anna: one.\nBert: two.\nAnna: three.", max_new_tokens=9, turn_gap=0)
    assert frames_of(answer.content)[1] == 9 * FRAME
    with served.client() as client:
        assert client.get(f"/v1/takes/{answer.headers['x-request-id']}").json()["finish_reason"] == "length"


def test_refusals_name_the_line(steered: Steer) -> None:
    served, engine = steered()
    answer = speak(served, input="Anna: Hi.\nNobody: Hi.")
    assert_envelope(answer, 400, "cast")
    assert (
        answer.json()["error"]["code"] == "unknown_speaker" and "line 2: 'Nobody'" in answer.json()["error"]["message"]
    )
    unknown = speak(served, input="Hm.\nAnna: Hi.", cast={"Anna": "nobody"})
    assert_envelope(unknown, 400, "cast")
    assert "line 2, 'Anna'" in unknown.json()["error"]["message"]
    assert_envelope(speak(served, input="Anna: Hi.", cast={"Anna": " "}), 400, "cast")
    assert_envelope(speak(served, input="Anna: Hi.", turn_gap=11), 400, "turn_gap")
    assert "line 2" in speak(served, input="Anna: Hi.\nBert: [pause:1s]").json()["error"]["message"]
    assert engine.utterances == []


def test_dialogue_is_stored_with_voices_and_turns_and_can_be_repeated(steered: Steer) -> None:
    served, _ = steered()
    script = "One two.\nAnna: Three four five.\nThe fish: Six."
    with served.client() as client:
        answer = speak(served, input=script, voice="bert", cast={"the fish": "bert"}, temperature=0.5)
        take = client.get(f"/v1/takes/{answer.headers['x-request-id']}").json()
        assert (take["stored"], take["voice"], take["voice_id"]) == (True, "bert, anna", None)
        assert [(turn["speaker"], turn["voice"]) for turn in take["turns"]] == [
            ("", "bert"),
            ("Anna", "anna"),
            ("The fish", "bert"),
        ]
        request = take["request"]
        assert (request["voice"], request["cast"]) == ("bert@1", {"Anna": "anna@1", "The fish": "bert@1"})
        assert request["temperature"] == 0.5 and "top_p" not in request
        assert client.post(SPEECH, json=request).content == answer.content
        named = speak(served, input="Anna: One.\nBert: Two.", voice="random")
        take = client.get(f"/v1/takes/{named.headers['x-request-id']}").json()
        assert take["voice"] == "anna, bert" and "voice" not in take["request"]


def test_stored_dialogue_is_found_by_each_of_its_voices(steered: Steer) -> None:
    served, _ = steered()
    alone = speak(served, input="Alone.", voice="bert", cast=None).headers["x-request-id"]
    cast = {"Ann": "anna", "Bob": "bert"}
    both = speak(served, input="It was late.\nAnn: Hi.\nBob: Yes?", voice="random", cast=cast).headers["x-request-id"]
    with served.client() as client:

        def ids(**question: str) -> list[str]:
            return [take["id"] for take in client.get("/v1/takes", params=question).json()["data"]]

        assert ids(voice="anna") == ids(voice="anna@1") == ids(voice="random") == [both]
        assert ids(voice="bert") == [both, alone] and ids(voice="bert", q="alone") == [alone]
        client.patch("/v1/voices/anna", json={"name": "Zoe"})
        assert ids(voice="zoe") == ids(voice="Zoe") == [both]
        client.delete(f"/v1/takes/{both}")
        assert ids(voice="zoe") == [] and ids(voice="bert") == [alone]

"""One sentence of a stored take regenerated over HTTP: a new take, joined seamlessly, and the refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from engine import ModelCard
from studio.settings import read_keys
from tests.studio.answers import assert_envelope
from tests.studio.sounds import data_url, tone, wav
from tests.studio.speech.test_resume import TAKES, Steer, samples, speak

TEXT = "One two. Three four. Five six."
DIALOGUE = "Night.\nAnna: One two. Three four.\nBert: Five six. Seven eight."
RATE = 44_100


def mend(client: httpx.Client, take: str, start: int, end: int, **headers: str) -> httpx.Response:
    return client.post(f"{TAKES}/{take}/regenerate", json={"start": start, "end": end}, headers=headers)


def reword(client: httpx.Client, take: str, old: str, new: str) -> httpx.Response:
    """Replace ``old`` with ``new``."""
    start = client.get(f"{TAKES}/{take}").json()["text"].index(old)
    return client.post(f"{TAKES}/{take}/regenerate", json={"start": start, "end": start + len(old), "replacement": new})


def new_take(client: httpx.Client, text: str = TEXT, /, **fields: object) -> str:
    return speak(client, text, **fields).headers["x-request-id"]


def sound_and_times(client: httpx.Client, take: str) -> tuple[np.ndarray, list[tuple[str, float]]]:
    """The samples of a take, and when its words begin."""
    sound = samples(client.get(f"{TAKES}/{take}/audio")).astype(int)
    times = client.get(f"{TAKES}/{take}/timestamps").json()["timestamps"]
    return sound, [(word["text"], word["start"]) for word in times]


@pytest.mark.parametrize("speed", [1, 2])
def test_regenerated_sentence_differs_and_all_other_samples_stay(steered: Steer, speed: int) -> None:
    served, engine = steered()
    with served.client() as client:
        before = new_take(client, voice="anna", speed=speed, temperature=0.5)
        answer = mend(client, before, 11, 12)
        assert answer.status_code == 201 and answer.headers["x-request-id"] == answer.json()["id"]
        after, spoken = answer.json(), engine.utterances[-1]
        assert (spoken.text, spoken.sampling.temperature) == ("One two. Three four.", 0.5)
        assert spoken.sampling.seed != 7
        record = client.get(f"{TAKES}/{before}").json()
        assert (after["regenerated_from"], after["text"], after["voice"], after["seed"]) == (before, TEXT, "anna", 7)
        assert (record["regenerated_from"], after["parameters"], after["request"]) == (
            None,
            record["parameters"],
            record["request"],
        )
        assert abs(after["frames"] - 36) <= 2 and after["can_continue"] is False
        (old, was), (new, now) = sound_and_times(client, before), sound_and_times(client, after["id"])
        longer = len(new) - len(old)
        assert after["seconds"] == pytest.approx(len(new) / RATE, abs=0.001)
        begins, ends = int(was[2][1] * RATE), int(was[4][1] * RATE)
        assert [word for word, _ in now] == [word for word, _ in was]
        assert np.array_equal(new[: begins - 3000], old[: begins - 3000])
        assert np.array_equal(new[ends + 3000 + longer :], old[ends + 3000 :])
        assert not np.array_equal(new[begins + 3000 : ends - 9000], old[begins + 3000 : ends - 9000])
        assert now[0] == was[0] and now[5][1] == pytest.approx(was[5][1] + longer / RATE, abs=0.002)
        again = mend(client, after["id"], 0, len(TEXT)).json()  # the whole regenerated take again: no joints
        assert engine.utterances[-1].text == TEXT and again["regenerated_from"] == after["id"]
        listed = [take["id"] for take in client.get(TAKES).json()["data"]]
        assert listed == [again["id"], after["id"], before], "the one before stays"
        agents = new_take(client, voice="anna", live=True)
        mended = mend(client, agents, 11, 12).json()["id"]
        takes = served.app.state.studio.library.takes
        assert (takes.get(agents).live, takes.get(mended).live) == (True, False), "a person mended it"


def test_reworded_sentence_is_regenerated_and_all_other_samples_stay(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        before = new_take(client, voice="anna")
        after = reword(client, before, "four", "hundred and 4").json()
        assert engine.utterances[-1].text == "One two. Three hundred and 4."
        assert (after["text"], after["regenerated_from"]) == ("One two. Three hundred and 4. Five six.", before)
        assert after["request"]["input"] == after["text"] and client.get(f"{TAKES}/{before}").json()["text"] == TEXT
        (old, was), (new, now) = sound_and_times(client, before), sound_and_times(client, after["id"])
        assert [word for word, _ in now] == ["One", "two", "Three", "hundred", "and", "4", "Five", "six"]
        longer, begins, ends = len(new) - len(old), int(was[2][1] * RATE), int(was[4][1] * RATE)
        assert np.array_equal(new[: begins - 3000], old[: begins - 3000])
        assert np.array_equal(new[ends + 3000 + longer :], old[ends + 3000 :])
        again = reword(client, after["id"], "Three hundred and 4.", "").json()  # regenerates its neighbour without it
        assert engine.utterances[-1].text == "One two. Five six." and again["text"] == "One two.  Five six."
        assert [word for word, _ in sound_and_times(client, again["id"])[1]] == ["One", "two", "Five", "six"]
        last = reword(client, again["id"], "Five six.", " ").json()
        assert engine.utterances[-1].text == "One two." and last["text"].strip() == "One two."
        assert_envelope(reword(client, last["id"], "One two.", "…"), 400, "replacement")
        assert_envelope(reword(client, before, "One", "x" * 16_380), 400, "replacement")
        assert_envelope(reword(client, before, "One", "<|im_end|>"), 400, "replacement")
        assert len(client.get(TAKES).json()["data"]) == 4


def test_replacement_is_normalised_like_the_original_text(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        take = new_take(client, "I have 2. He has 3.", normalize=True)
        after = reword(client, take, "3", "4 dogs").json()
        assert engine.utterances[-1].text == "I have two. He has four dogs."
        assert after["request"]["input"] == "I have two. He has four dogs."
        assert after["text"] == "I have 2. He has 4 dogs."


def test_turn_can_be_reworded_but_not_given_another_speaker(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        before = new_take(client, DIALOGUE, cast={"Bert": "bert"})
        after = reword(client, before, "Five six.", "Ten, then.").json()
        assert engine.utterances[-1].text == "Ten, then."
        assert after["text"] == after["request"]["input"] == DIALOGUE.replace("Five six.", "Ten, then.")
        assert_envelope(reword(client, before, "six.", "six.\nAnna: Nine."), 400, "replacement")
        assert_envelope(reword(client, before, "Bert: Five", "Anna: Ten"), 400, "start")
        assert_envelope(reword(client, before, "Night.", "…"), 400, "replacement")


def test_regeneration_uses_the_requested_normalisation_and_current_dictionary(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        plain, read = (new_take(client, "I have 2. He has 3 GIF.", normalize=is_read) for is_read in (False, True))
        client.post("/v1/pronunciations", json={"phrase": "GIF", "said": "jif"})
        mend(client, plain, 12, 12)
        assert engine.utterances[-1].text == "I have 2. He has 3 jif."
        mended = mend(client, read, 12, 12).json()
        assert engine.utterances[-1].text == "I have two. He has three jif."
        assert mended["request"]["input"] == "I have two. He has three GIF."


def test_sentence_with_a_tag_and_the_next_one_are_regenerated_separately(steered: Steer) -> None:
    served, engine = steered()
    engine.info = replace(engine.info, card=ModelCard(normalize=True, tags=("whisper",)))
    text = "One is plain here. [whisper] Tom &amp; I cast [Level Up].\u200b Three is **plain** again."
    with served.client() as client:
        before = new_take(client, text)
        parts = ["One is plain here.", "[whisper] Tom and I cast Level Up.", "Three is plain again."]
        assert [utterance.text for utterance in engine.utterances] == parts
        timestamps = client.get(f"{TAKES}/{before}/timestamps?of=sentence").json()["timestamps"]
        assert [sentence["text"] for sentence in timestamps][1] == "Tom &amp; I cast Level Up.\u200b"
        _, was = sound_and_times(client, before)
        assert [word for word, _ in was][4:10] == ["Tom", "&amp", "I", "cast", "Level", "Up"]
        for words, spoken in (("Level", parts[:2]), ("again", parts[1:])):
            count = len(engine.utterances)
            answer = mend(client, before, text.index(words), text.index(words))
            assert answer.status_code == 201, answer.text
            assert [utterance.text for utterance in engine.utterances[count:]] == spoken
            _, now = sound_and_times(client, answer.json()["id"])
            assert [word for word, _ in now] == [word for word, _ in was]
        assert engine.utterances[-1].history == (), "it goes on plainly"


def test_regenerated_sentence_of_a_dialogue_keeps_its_speaker(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        before = new_take(client, DIALOGUE, cast={"Bert": "bert"}, turn_gap=0.5)
        at = DIALOGUE.index
        after = mend(client, before, at("Five"), at("six")).json()
        assert engine.utterances[-1].text == "Five six." and engine.utterances[-1].history == ()
        assert engine.utterances[-1].references[0].text == "My name is bert."
        (old, was), (new, now) = sound_and_times(client, before), sound_and_times(client, after["id"])
        later = (len(new) - len(old)) / RATE
        assert [word for word, _ in now] == [word for word, _ in was]
        assert now[4] == was[4] and now[-1][1] == pytest.approx(was[-1][1] + later, abs=0.002)
        turns = client.get(f"{TAKES}/{before}").json()["turns"]
        assert [turn["end_s"] for turn in after["turns"]] == pytest.approx(
            [turn["end_s"] + (later if turn["speaker"] == "Bert" else 0) for turn in turns], abs=0.002
        )
        mend(client, before, at("Three"), at("four."))
        assert engine.utterances[-1].text == "One two. Three four."
        mend(client, before, 0, 1)
        assert engine.utterances[-1].text == "Night."
        several = mend(client, before, at("four"), at("six"))
        assert_envelope(several, 409, "start")
        assert "select words of one of them" in several.text
        assert_envelope(mend(client, before, at("Anna"), at("Anna") + 2), 400, "start")


def test_impossible_regenerations_are_refused_with_the_reason_and_nothing_is_stored(steered: Steer) -> None:
    served, engine = steered()
    clip = {"ref_audio": data_url(wav(tone(1.5))), "ref_text": "My name is Anna."}

    def refused(take: str, status: int, words: str, param: str | None = None) -> None:
        answer = mend(client, take, 0, 1)
        assert_envelope(answer, status, param)
        assert words in answer.json()["error"]["message"]

    with served.client() as client:
        take = new_take(client)
        for start, end in ((5, 99), (5, 4)):
            assert_envelope(mend(client, take, start, end), 400, "start")
        refused("req_nobody", 404, "no", "take_id")
        refused(new_take(client, store=False), 404, "no", "take_id")
        refused(new_take(client, max_new_tokens=20), 409, "continue it", "take_id")
        refused(new_take(client, **clip), 409, "make a voice of the clip", "take_id")
        refused(new_take(client, voice="random"), 409, "chosen by its seed", "take_id")
        refused(new_take(client, "One.\nHe: Two.", cast={"He": "bert"}, voice="random"), 409, "chosen by its seed")
        rows = client.get(TAKES).json()["data"]
        engine.spoilt = ["silent"]
        refused(take, 500, "silent")
        taken = new_take(client, voice="anna")
        together = new_take(client, "One.\nHe: Two.", cast={"He": "anna"}, voice="bert")
        client.delete("/v1/voices/anna")
        client.patch("/v1/voices/bert", json={"name": "Anna"})  # the name now belongs to another voice
        refused(taken, 409, "no longer in the library", "take_id")
        assert_envelope(mend(client, together, 10, 11), 409, "take_id")
        assert mend(client, together, 0, 1).status_code == 201, "bert has only another name"
        stored = [row["id"] for row in client.get(TAKES).json()["data"] if row["stored"]]
        assert stored[1:] == [together, taken, *(row["id"] for row in rows if row["stored"])]


def test_regeneration_by_another_model_or_key_is_refused(steered: Steer, tmp_path: Path) -> None:
    home: dict[str, Any] = {"home": str(tmp_path / "home"), "api_keys": read_keys("first,second")}
    mine, theirs = ({"Authorization": f"Bearer {key}"} for key in ("first", "second"))
    served, _ = steered(**home)
    with served.client(headers=mine) as client:
        take = new_take(client)
        mended = mend(client, take, 0, 1).json()["id"]
        assert_envelope(mend(client, take, 0, 1, **theirs), 404, "take_id")
    other, _ = steered(**home, model="test/another")
    with other.client(headers=mine) as client:
        for old in (take, mended):  # the second has stored word times
            answer = mend(client, old, 0, 1)
            assert_envelope(answer, 409)
            assert "another model or codec" in answer.text


def test_regeneration_is_refused_by_a_full_queue_and_cancelled_on_disconnect(steered: Steer) -> None:
    served, engine = steered(max_rows=1, max_waiting=0)
    with served.client() as client:
        take = new_take(client)
        served.until(running=0)
        engine.first_frame_gate.clear()
        served.hang_up(f"{TAKES}/{take}/regenerate", {"start": 0, "end": 1}, running=1)
        served.until(running=0)
        engine.first_frame_gate.set()
        engine.later_frames_gate.clear()
        with client.stream("POST", "/v1/audio/speech", json={"input": TEXT, "response_format": "wav"}) as answer:
            pieces = answer.iter_raw()
            next(pieces)
            assert_envelope(mend(client, take, 0, 1), 429)
        engine.later_frames_gate.set()
        served.until(running=0)
        assert mend(client, take, 0, 1).status_code == 201

"""One sentence of a part regenerated over HTTP: the others keep their audio, the previous take can be chosen again."""

from __future__ import annotations

import io
import wave
from concurrent.futures import ThreadPoolExecutor

import httpx
import numpy as np
import pytest

from speechtext.errors import TextError
from speechtext.sentence_selection import Selection, select
from tests.longform.test_projects import PROJECTS, Json, Steer, change, create_project, parts_of, until
from tests.studio.answers import assert_envelope
from tests.studio.server import Served

TEXT = "One two. Three four. Five six."


def mend(
    served: Served, project: Json, part: Json, start: int, end: int, text: str = TEXT, **more: str
) -> httpx.Response:
    with served.client() as client:
        body = {"text": text, "start": start, "end": end, **more}
        return client.post(f"{PROJECTS}/{project['id']}/parts/{part['id']}/regenerate", json=body)


def sound_and_times(served: Served, project: Json, take: str) -> tuple[np.ndarray, list[tuple[str, float]]]:
    """The samples of a take and the start times of its words."""
    with served.client() as client:
        at = f"{PROJECTS}/{project['id']}/takes/{take}"
        sound, times = client.get(f"{at}/audio").content, client.get(f"{at}/timestamps").json()["timestamps"]
    with wave.open(io.BytesIO(sound)) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(int)
    return samples, [(word["text"], word["start"]) for word in times]


def test_a_regenerated_sentence_leaves_all_other_samples_unchanged(steered: Steer) -> None:
    served, engine = steered()
    project = create_project(served, items=[{"input": TEXT}], voice="anna", seed=7, start=True)
    until(served, project, "done")
    [part] = parts_of(served, project)
    mended = mend(served, project, part, 11, 12).json()
    assert engine.utterances[-1].text == "One two. Three four."  # with the preceding sentence
    assert (mended["state"], len(mended["takes"])) == ("done", 2) and mended["chosen"] == mended["takes"][0]["id"]
    assert mended["takes"][0]["seed"] != 7 and mended["takes"][1] == part["takes"][0]
    (old, was), (new, now) = (sound_and_times(served, project, take) for take in (part["chosen"], mended["chosen"]))
    assert [word for word, _ in now] == [word for word, _ in was]
    longer, rate = len(new) - len(old), 44_100
    begins, ends = int(was[2][1] * rate), int(was[4][1] * rate)
    assert np.array_equal(new[: begins - 3000], old[: begins - 3000])
    assert np.array_equal(new[ends + 3000 + longer :], old[ends + 3000 :])
    assert not np.array_equal(new[begins + 3000 : ends - 9000], old[begins + 3000 : ends - 9000])
    steepest = max(np.abs(np.diff(signal)).max() for signal in (old, new[begins + 3000 : ends - 9000]))
    assert np.abs(np.diff(new)).max() <= 1.05 * steepest
    assert now[0] == was[0] and now[5][1] == pytest.approx(was[5][1] + longer / rate, abs=0.002)
    again = mend(served, project, part, 0, len(TEXT)).json()  # the whole part: no joints
    assert engine.utterances[-1].text == TEXT and len(again["takes"]) == 3
    assert change(served, project, part, take=part["chosen"]).json()["chosen"] == part["chosen"]


def test_replaced_words_of_a_sentence_change_the_part_and_can_be_undone(steered: Steer) -> None:
    served, engine = steered()
    project = create_project(served, items=[{"input": TEXT}], voice="anna", start=True)
    until(served, project, "done")
    [part] = parts_of(served, project)
    new = mend(served, project, part, 15, 19, replacement="hundred").json()
    assert engine.utterances[-1].text == "One two. Three hundred."
    assert (new["text"], new["state"]) == ("One two. Three hundred. Five six.", "done")
    assert new["chosen"] == new["takes"][0]["id"] and len(new["takes"]) == 2
    assert [word for word, _ in sound_and_times(served, project, new["chosen"])[1]][3] == "hundred"
    back = change(served, project, part, text=TEXT, take=part["chosen"]).json()
    assert (back["text"], back["state"], back["chosen"]) == (TEXT, "done", part["chosen"])
    assert change(served, project, part, text=new["text"], take=new["chosen"]).json()["state"] == "done"

    assert_envelope(mend(served, project, part, 0, 3, replacement="Two"), 412, "text")
    text = new["text"]
    assert_envelope(mend(served, project, part, 0, 3, text, replacement="x" * 4000), 400, "replacement")
    assert_envelope(mend(served, project, part, 0, len(text), text, replacement="…"), 400, "replacement")
    assert len(parts_of(served, project)[0]["takes"]) == 2


def test_edit_during_a_regeneration_is_not_lost(steered: Steer) -> None:
    served, engine = steered()
    project = create_project(served, items=[{"input": TEXT}], voice="anna", start=True)
    until(served, project, "done")
    [part] = parts_of(served, project)
    engine.first_frame_gate.clear()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(mend, served, project, part, 15, 19, replacement="hundred")
        served.until(running=1)
        change(served, project, part, text="Other words.")
        engine.first_frame_gate.set()
        assert_envelope(waiting.result(), 412, "text")
    [now] = parts_of(served, project)
    assert (now["text"], now["chosen"], len(now["takes"])) == ("Other words.", part["chosen"], 1)


def test_take_of_a_part_is_not_listed(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": TEXT}], voice="anna", seed=7, start=True)
    until(served, project, "done")
    [part] = parts_of(served, project)
    at = f"/v1/takes/{part['chosen']}"
    with served.client() as client:
        take, ofpart = client.get(at).json(), f"{PROJECTS}/{project['id']}/takes/{part['chosen']}"
        assert (take["text"], take["voice"], take["seed"], take["finish_reason"]) == (TEXT, "anna", 7, "stop")
        assert client.get(f"{at}/audio").content == client.get(f"{ofpart}/audio").content
        assert (
            client.get(f"{at}/timestamps").json()["timestamps"]
            == client.get(f"{ofpart}/timestamps").json()["timestamps"]
        )
        assert client.get("/v1/takes").json()["data"] == client.get("/v1/takes?q=Three").json()["data"] == []
        assert_envelope(client.patch(at, json={"starred": True}), 404, "take_id")
        assert_envelope(client.delete(at), 404, "take_id")
        assert "would delete 0 takes" in client.delete("/v1/takes").text
        new = client.post(f"{at}/regenerate", json={"start": 11, "end": 12}).json()
        assert [listed["id"] for listed in client.get("/v1/takes").json()["data"]] == [new["id"]]
        assert parts_of(served, project)[0]["takes"] == part["takes"], "the part keeps its own"
        client.delete(f"{PROJECTS}/{project['id']}")
        assert_envelope(client.get(at), 404, "take_id")


def test_impossible_regenerations_are_refused_and_nothing_is_stored(steered: Steer) -> None:
    served, engine = steered()
    project = create_project(served, items=[{"input": TEXT}])
    [part] = parts_of(served, project)
    assert_envelope(mend(served, project, part, 0, 1), 412, "part")  # nothing to mend yet
    with served.client() as client:
        client.post(f"{PROJECTS}/{project['id']}/speak", json={})
        until(served, project, "done")
        assert_envelope(mend(served, project, part, 0, 1, "One."), 412, "text")
        assert_envelope(mend(served, project, part, 5, 99), 400, "start")
        assert_envelope(mend(served, project, part, 5, 4), 400, "start")
        assert_envelope(mend(served, project, {"id": "none"}, 0, 1), 404, "part")
        engine.spoilt = ["silent", "silent"]
        assert mend(served, project, part, 0, 1).status_code == 500
        assert client.get(f"{PROJECTS}/{project['id']}").json()["parts"]["done"] == 1
    assert len(parts_of(served, project)[0]["takes"]) == 1


def test_selection_is_extended_to_whole_sentences() -> None:
    text = "One two. … Three [sigh] four! Five."
    words = ["One", "two", "Three", "four", "Five"]

    def selected(start: int, end: int) -> Selection:
        return select(text, start, end, words)

    assert selected(0, 0) == Selection("One two. …", "", 0, 2) == selected(9, 9)
    assert selected(20, 20) == Selection("Three [sigh] four!", "One two. …", 2, 4)
    assert selected(4, 20) == Selection("One two. … Three [sigh] four!", "", 0, 4)
    assert selected(len(text), len(text)) == Selection("Five.", "Three [sigh] four!", 4, 5)
    assert select("a" * 400 + ". B.", 404, 404, ["a" * 400, "B"]).before == ""
    assert select(text, 29, 35, words, "").text == "Three [sigh] four!", "the sentence before it, where none follows"
    assert select(text, 4, 5, words, "T").new_text == text.replace("two", "Two")
    with pytest.raises(TextError, match="no sentence"):
        select("… [sigh]", 1, 1, [])


def test_bracketed_words_count_if_spoken() -> None:
    text = "[whisper] One. [Level Up] Two."
    assert select(text, 16, 16, ["One", "Level", "Up", "Two"]) == Selection("[Level Up] Two.", "[whisper] One.", 1, 4)
    assert select(text, 16, 16, ["One", "Two"]) == Selection("[Level Up] Two.", "[whisper] One.", 1, 2)

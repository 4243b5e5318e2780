"""Direction over HTTP: speed, sampling, tags and pauses of parts, and the ends of scenes."""

from __future__ import annotations

from itertools import pairwise

import pytest

from longform.cast_service import with_tags
from tests.longform.test_projects import PROJECTS, Steer, create_project, parts_of, post_verb, until
from tests.studio.answers import assert_envelope


def test_parts_may_have_their_own_speed_and_sampling(steered: Steer) -> None:
    served, engine = steered()
    project = create_project(served, items=[{"input": f"Part {n}."} for n in range(3)], start=True, temperature=0.5)
    until(served, project, "done")
    at = f"{PROJECTS}/{project['id']}"
    first, second, third = parts_of(served, project)
    with served.client() as client:
        body = {"ids": [first["id"], second["id"]], "speed": 1.25, "temperature": 0.9, "top_k": 7, "pause": 2}
        changed = client.patch(f"{at}/parts", json=body).json()
        assert (changed["object"], changed["count"], changed["followed"]) == ("project.parts.changed", 2, [])
        assert [part["state"] for part in parts_of(served, project)] == ["stale", "stale", "done"]
        post_verb(served, project, "speak", parts="stale")
        until(served, project, "done")
        assert [one.sampling.temperature for one in engine.utterances[-2:]] == [0.9, 0.9]
        assert [one.sampling.top_k for one in engine.utterances[-2:]] == [7, 7]
        client.patch(f"{at}", json={"temperature": 0.6})
        assert [part["state"] for part in parts_of(served, project)] == ["done", "done", "stale"]
        client.patch(f"{at}", json={"temperature": 0.5})
        back = client.patch(f"{at}/parts/{first['id']}", json={"speed": -1, "temperature": -1, "top_k": -1}).json()
        assert (back["speed"], back["temperature"], back["pause"], back["state"]) == (None, None, 2, "done")
        assert back["chosen"] == first["chosen"] and [take["stale"] for take in back["takes"]] == [True, False]
        undone = client.post(f"{at}/undo", json=changed["replaced"]).json()
        assert undone == {"object": "project.undone", "undone": 1, "left": [first["id"]]}
        before = {name: second[name] for name in ("speed", "temperature", "top_k", "pause", "chosen")}
        assert parts_of(served, project)[1].items() >= before.items()
        assert_envelope(client.patch(f"{at}/parts", json={"ids": [third["id"]], "speed": 9}), 400, "speed")
        assert_envelope(client.patch(f"{at}/parts", json={"ids": [third["id"]], "text": "No."}), 400, "text")


def test_tags_are_added_to_each_sentence_and_removed_again(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    served, _ = steered()
    texts = ["One. “[slow] Two,” she said.", "Three.", *("So, " * 900 + f"{n}." for n in range(120))]
    project = create_project(served, items=[{"input": text} for text in texts])
    at = f"{PROJECTS}/{project['id']}"
    parts = parts_of(served, project, limit=200)
    ids = [part["id"] for part in parts[:2]]
    with served.client() as client:
        body = {"first": parts[2]["id"], "last": parts[-1]["id"], "tags": ["whisper"]}
        replaced = client.patch(f"{at}/parts", json=body).json()["replaced"]
        monkeypatch.setattr("studio.api.body.MAX_BODY", len(str(replaced)) // 2)  # of all other requests
        undone = client.post(f"{at}/undo", json=replaced).json()
        monkeypatch.setattr("studio.api.body.MAX_SIGNS", 100)
        assert "in several requests" in client.post(f"{at}/undo", json=replaced).json()["error"]["message"]
        monkeypatch.undo()
        assert (undone["undone"], parts_of(served, project, limit=200)) == (120, parts), "with all letters and commas"
        replaced = client.patch(f"{at}/parts", json={"ids": ids, "tags": ["whisper"]}).json()["replaced"]
        client.patch(f"{at}/parts/{ids[1]}", json={"text": "[whisper] Three, and more."})  # by somebody else
        undone = {"object": "project.undone", "undone": 1, "left": ids[1:]}
        times = [client.get(at).json()["changed_at"]]
        assert client.post(f"{at}/undo", json=replaced).json() == undone
        times.append(client.get(at).json()["changed_at"])
        assert times[0] != times[1], "a change in the same second as another one is seen"
        assert client.post(f"{at}/undo", json=replaced).json()["undone"] == 0
        texts = [part["text"] for part in parts_of(served, project)[:2]]
        assert texts == ["One. “[slow] Two,” she said.", "[whisper] Three, and more."]
        client.patch(f"{at}/parts/{ids[1]}", json={"text": "Three."})
        client.patch(f"{at}/parts", json={"ids": ids, "tags": ["whisper"]})
        texts = [part["text"] for part in parts_of(served, project)[:2]]
        assert texts == ["[whisper] One. [whisper] “Two,” she said.", "[whisper] Three."]
        client.patch(f"{at}/parts/{ids[0]}", json={"tags": []})
        assert parts_of(served, project)[0]["text"] == "One. “Two,” she said."
        for tags in (["a]b"], [" "], ["x"] * 9):
            assert_envelope(client.patch(f"{at}/parts", json={"ids": ids, "tags": tags}), 400, "tags")
        long = client.post(f"{at}/parts", json={"text": "No. " * 999, "after": None}).json()["id"]
        answer = client.patch(f"{at}/parts", json={"ids": [*ids, long], "tags": ["slow"]})
        assert_envelope(answer, 400, "text")
    assert parts_of(served, project)[1]["text"] == "One. “Two,” she said.", "all or none"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("[pause:1s] Go.", "[sad] [pause:1s] Go."),
        ("[pause:1s] [whisper] Go. …", "[sad] [pause:1s] Go. …"),
        ("[a][b] Go!", "[sad] Go!"),
        ("…", "…"),
    ],
)
def test_tagging_keeps_pauses_and_skips_bare_punctuation(text: str, after: str) -> None:
    assert with_tags(text, ["sad"]) == after
    assert with_tags(after, []) == text.replace("[whisper] ", "").replace("[a][b] ", "")


def test_part_begins_at_a_sentence_with_a_leading_tag(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, input="One is plain. [whisper] Two is soft. Three.")
    assert [part["text"] for part in parts_of(served, project)] == ["One is plain.", "[whisper] Two is soft.", "Three."]


def test_scene_ends_with_the_scene_pause_of_the_project(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, input="One.\n\n* * *\n\nTwo.\n\n❦\n\nThree.", scene_pause=3, start=True)
    until(served, project, "done")
    at = f"{PROJECTS}/{project['id']}"

    def gaps() -> list[float]:
        with served.client() as client:
            placed = client.get(f"{at}/timeline").json()["parts"]
        return [round(after["start_s"] - before["end_s"], 3) for before, after in pairwise(placed)]

    parts = parts_of(served, project)
    assert [(part["scene"], part["pause"]) for part in parts] == [(True, None), (True, None), (False, None)]
    assert gaps() == [3, 3]
    with served.client() as client:
        assert client.patch(at, json={"scene_pause": None}).json()["settings"]["scene_pause"] == 1.5
        client.patch(f"{at}/parts/{parts[0]['id']}", json={"scene": False})
        assert gaps() == [0.5, 1.5]
        client.patch(f"{at}/parts/{parts[1]['id']}", json={"pause": 0})
        assert gaps() == [0.5, 0]

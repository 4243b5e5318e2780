"""The parts of a project arranged over HTTP: inserted, split, merged, moved, deleted, and words replaced in them."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from longform.library import part_arrangement
from longform.library.project_records import NewPart, Part, PartChanges, ProjectSettings
from longform.library.project_repository import ProjectLibrary
from longform.library.replacements import Matches, TextReplacement
from studio.errors import InvalidRequest
from tests.longform.test_projects import PROJECTS, Json, Steer, change, create_project, parts_of, post_verb, until
from tests.studio.answers import assert_envelope
from tests.studio.server import Served

WEEK = 7 * 86_400


def post(served: Served, project: Json, path: str, **body: object) -> httpx.Response:
    with served.client() as client:
        return client.post(f"{PROJECTS}/{project['id']}/{path}", json=body)


def texts(served: Served, project: Json) -> list[tuple[int, str, str]]:
    """The position, text and state of each part."""
    return [(part["position"], part["text"], part["state"]) for part in parts_of(served, project)]


def test_title_of_two_lines_stays_separate_after_a_merge(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, input="# 1\n\n## The Beginning\n\nIt was late.", kind="md")
    first, second = parts_of(served, project)
    assert (first["text"], first["chapter"]) == ("1\nThe Beginning", "1. The Beginning")
    merged = post(served, project, f"parts/{first['id']}/merge", following=second["id"]).json()
    assert merged["text"] == "1\nThe Beginning\nIt was late."


def test_splitting_and_merging_a_part_keeps_its_takes(steered: Steer) -> None:
    served, engine = steered()
    items = [{"input": "One two. 🙂 Three four.", "pause": 2, "chapter": "A"}, {"input": "Five.", "voice": "bert"}]
    project = create_project(served, items=items, voice="anna", start=True)
    until(served, project, "done")
    part, last = parts_of(served, project)
    halves = post(served, project, f"parts/{part['id']}/split", text=f" {part['text']}", at=10).json()["data"]
    assert [(half["text"], half["state"], half["pause"], half["chapter"]) for half in halves] == [
        ("One two.", "stale", None, "A"), ("🙂 Three four.", "new", 2, ""),
    ]  # fmt: skip
    assert halves[0]["takes"] == [part["takes"][0] | {"stale": True}] and halves[1]["takes"] == []
    assert texts(served, project)[2] == (2, "Five.", "done") and parts_of(served, project)[2]["takes"] == last["takes"]
    whole = post(served, project, f"parts/{part['id']}/merge", following=halves[1]["id"]).json()
    assert (whole["text"], whole["state"], whole["pause"], whole["position"]) == (part["text"], "done", 2, 0)
    assert len(engine.utterances) == 2  # its text matches its audio again
    both = post(served, project, f"parts/{part['id']}/merge", following=last["id"]).json()
    assert (both["text"], both["voice"], both["state"]) == ("One two. 🙂 Three four. Five.", None, "stale")
    assert {take["id"] for take in both["takes"]} == {part["chosen"], last["chosen"]}
    with served.client() as client:
        sound = client.get(f"{PROJECTS}/{project['id']}/takes/{last['chosen']}/audio")
        assert sound.status_code == 200 and len(sound.content) > 44
    post_verb(served, project, "speak")
    assert until(served, project, "done")["parts"]["total"] == 1


def test_undoing_a_merge_restores_chapters_takes_and_states(steered: Steer) -> None:
    served, _ = steered()
    items = [{"input": "One.", "pause": 2}, {"input": "Two.", "voice": "bert", "chapter": "B"}, {"input": "Three."}]
    project = create_project(served, items=items, voice="anna", start=True)
    until(served, project, "done")
    before = parts_of(served, project)
    first, second, third = (part["id"] for part in before)
    post(served, project, f"parts/{first}/merge", following=second)
    post(served, project, f"parts/{first}/merge", following=third)
    assert len(parts_of(served, project)[0]["takes"]) == 3
    for part_id in (third, second):
        assert post(served, project, "parts/restore", ids=[part_id]).status_code == 200
    assert parts_of(served, project) == before

    post(served, project, f"parts/{first}/merge", following=second)
    change(served, project, before[0], text="One or two.")
    post(served, project, "parts/restore", ids=[second])
    assert texts(served, project)[:2] == [(0, "One or two.", "stale"), (1, "Two.", "done")], "the edit stays"

    new = post(served, project, "parts", text="New.", after=None).json()
    post(served, project, f"parts/{new['id']}/merge", following=first)
    post(served, project, "parts/restore", ids=[first])
    assert texts(served, project)[:2] == [(0, "New.", "new"), (1, "One or two.", "stale")], "no audio of another part"


def test_takes_of_merged_parts_stay_while_the_merge_can_be_undone(
    steered: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longform.library.part_queue.MAX_TAKES", 1)
    served, _ = steered()
    project = create_project(served, items=[{"input": text} for text in ("One.", "Two.", "Three.")], start=True)
    until(served, project, "done")
    before = parts_of(served, project)
    first, *others = (part["id"] for part in before)
    for following in others:
        post(served, project, f"parts/{first}/merge", following=following)
    for _ in range(2):
        post_verb(served, project, "speak", parts=[first])
        until(served, project, "done")
    assert post(served, project, "parts/restore", ids=others).status_code == 200
    assert [(part["state"], part["chosen"]) for part in parts_of(served, project)] == [
        ("done", part["chosen"]) for part in before
    ]


def test_undoing_a_merge_keeps_what_was_set_since(tmp_path: Path) -> None:
    library = ProjectLibrary(tmp_path)
    parts = [NewPart("One.", pause=1, end=2.0), NewPart("Two.", pause=3, end=4.0, scene=True)]
    project = library.projects.create("me", "Mine", "txt", parts, ProjectSettings()).id
    first, second = library.projects.part_ids(project, "me")

    def undone(changes: PartChanges) -> Part:
        library.arrangement.merge(project, "me", first, second)
        library.part_edits.edit_part(project, "me", first, changes)
        library.arrangement.restore(project, "me", [second])
        return library.projects.part(project, "me", first)

    before = library.projects.part(project, "me", first)
    assert undone(PartChanges(speed=1.2)) == replace(before, speed=1.2)
    assert undone(PartChanges(pause=2.5)) == replace(before, speed=1.2, pause=2.5)
    assert undone(PartChanges(pause=1, scene=False)) == replace(before, speed=1.2)
    assert undone(PartChanges(text="One or two.")) == replace(before, speed=1.2, text="One or two.")
    assert undone(PartChanges(text="Yes or no. Two.")) == replace(before, speed=1.2, text="Yes or no.")
    assert undone(PartChanges(text="Two.")) == replace(before, speed=1.2, text="Two.")


def test_many_parts_are_deleted_restored_and_moved_in_one_request(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": f"Part {number}.", "chapter": "A"} for number in range(6)])
    before = parts_of(served, project)
    ids = [part["id"] for part in before]
    assert_envelope(post(served, project, "parts/delete", ids=[ids[0], "none"]), 404, "part")
    assert_envelope(post(served, project, "parts/delete", ids=ids), 400, "part")
    assert parts_of(served, project) == before, "all of them, or none"
    answer = {"object": "project.parts.deleted", "count": 3, "undo_seconds": WEEK}
    assert post(served, project, "parts/delete", ids=[ids[4], ids[1], ids[2], ids[1]]).json() == answer
    assert [part["id"] for part in parts_of(served, project)] == [ids[0], ids[3], ids[5]]
    assert post(served, project, "parts/restore", ids=ids).json()["count"] == 3
    assert parts_of(served, project) == before
    assert post(served, project, "parts/move", ids=[ids[5], ids[1]], position=2).json()["count"] == 2
    assert [part["id"] for part in parts_of(served, project)] == [ids[at] for at in (0, 2, 1, 5, 3, 4)]
    long = create_project(served, items=[{"input": "Hi."}] * 1200)
    with served.client() as client:
        everything = client.get(f"{PROJECTS}/{long['id']}/parts/ids").json()["data"]
        for verb in ("delete", "restore"):
            assert post(served, long, f"parts/{verb}", ids=everything[1:]).json()["count"] == 1199
        assert client.get(f"{PROJECTS}/{long['id']}/parts/ids").json()["data"] == everything
    assert_envelope(post(served, project, "parts/move", ids=ids[:2], position=5), 400, "position")


def test_paragraph_goes_on_without_deleted_parts(tmp_path: Path) -> None:
    library = ProjectLibrary(tmp_path)
    parts = [NewPart(f"Part {number}.", continues=number > 0) for number in range(6)]
    project = library.projects.create("me", "Mine", "txt", parts, ProjectSettings()).id
    ids = library.projects.part_ids(project, "me")

    def continuing() -> list[bool | None]:
        return [part.continues for part in library.projects.parts(project, "me")]

    library.arrangement.delete(project, "me", ids[1:3])
    assert continuing() == [False, True, True, True]
    library.arrangement.merge(project, "me", ids[3], ids[4])
    assert continuing() == [False, True, True]
    assert library.trash.empty(None) == 3
    assert continuing() == [False, True, True]
    library.arrangement.move(project, "me", [ids[5]], 0)
    assert continuing() == [False, False, True], "elsewhere it begins a paragraph"
    library.arrangement.move(project, "me", [ids[5]], 2)
    assert continuing() == [False, True, True]


def test_undoing_a_split_leaves_nothing_in_the_trash(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "One two.", "pause": 2}, {"input": "Three."}], start=True)
    until(served, project, "done")
    before = parts_of(served, project)
    first, last = (part["id"] for part in before)
    _, second = post(served, project, f"parts/{first}/split", text="One two.", at=4).json()["data"]
    with served.client() as client:
        client.delete(f"{PROJECTS}/{project['id']}/parts/{last}").raise_for_status()
        merge = {"following": second["id"], "text": " One two."}
        change(served, project, second, text="2.")
        assert_envelope(post(served, project, f"parts/{first}/merge", **merge), 412, "text")
        change(served, project, second, text="two.")
        assert post(served, project, f"parts/{first}/merge", **merge).status_code == 200
        post(served, project, "parts/restore", ids=[last])
        assert parts_of(served, project) == before
        trash = client.get("/v1/trash").json()["data"]
        assert second["id"] not in {item["id"] for item in trash}
        assert_envelope(post(served, project, "parts/restore", ids=[second["id"]]), 404, "ids")


def test_parts_are_inserted_moved_and_deleted_at_their_positions(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "One.", "chapter": "A"}, {"input": "Two."}], start=True)
    until(served, project, "done")
    first, second = parts_of(served, project)
    new = post(served, project, "parts", text=" Between. ", after=first["id"], voice="bert", pause=1)
    assert (new.status_code, new.json()["position"], new.json()["voice"]) == (201, 1, "bert")
    post(served, project, "parts", text="Before.", after=None)
    done = [(1, "One.", "done"), (2, "Between.", "new"), (3, "Two.", "done")]
    assert texts(served, project) == [(0, "Before.", "new"), *done]
    assert post(served, project, f"parts/{second['id']}/move", position=0).json()["position"] == 0
    assert [text for _, text, _ in texts(served, project)] == ["Two.", "Before.", "One.", "Between."]
    post(served, project, f"parts/{second['id']}/move", position=2)
    assert [text for _, text, _ in texts(served, project)] == ["Before.", "One.", "Two.", "Between."]
    with served.client() as client:
        gone = client.delete(f"{PROJECTS}/{project['id']}/parts/{first['id']}")
        receipt = {"id": first["id"], "object": "project.part.deleted", "deleted": True, "undo_seconds": WEEK}
        assert gone.json() == receipt
        assert client.get(f"{PROJECTS}/{project['id']}/takes/{first['chosen']}/audio").status_code == 404
        assert_envelope(client.delete(f"{PROJECTS}/{project['id']}/parts/{first['id']}"), 404, "part")
    assert [(part["position"], part["text"], part["chapter"]) for part in parts_of(served, project)] == [
        (0, "Before.", ""), (1, "Two.", "A"), (2, "Between.", ""),
    ]  # fmt: skip


def test_deleted_parts_are_restored_in_place_with_takes_and_chapter(steered: Steer) -> None:
    served, _ = steered()
    items = [{"input": "One.", "chapter": "A"}, {"input": "Two."}, {"input": "Three."}, {"input": "Four."}]
    project = create_project(served, items=items)
    before = parts_of(served, project)
    first, second = before[:2]
    post(served, project, "speak", parts=[first["id"]])
    until(served, project, "incomplete", done=1)
    before = parts_of(served, project)
    library = served.app.state.studio.speech.voices.library
    with served.client() as client:
        for part in (first, second):
            client.delete(f"{PROJECTS}/{project['id']}/parts/{part['id']}").raise_for_status()
        assert [row["id"] for row in client.get(PROJECTS).json()["data"]] == [project["id"]]
    assert [(part["text"], part["chapter"]) for part in parts_of(served, project)] == [("Three.", "A"), ("Four.", "")]
    other = create_project(served, input="Another.")
    assert_envelope(post(served, other, "parts/restore", ids=[first["id"]]), 404, "ids")
    back = post(served, project, "parts/restore", ids=[first["id"], second["id"], "none"]).json()
    assert back == {"object": "project.parts.restored", "count": 2}
    assert parts_of(served, project) == before
    assert_envelope(post(served, project, "parts/restore", ids=[first["id"]]), 404, "ids")
    with served.client() as client:
        assert client.get(f"{PROJECTS}/{project['id']}/takes/{before[0]['chosen']}/audio").status_code == 200
        client.delete(f"{PROJECTS}/{project['id']}/parts/{first['id']}").raise_for_status()
    files = {name for name, _ in library.files.everything()}
    assert library.trash.empty(None) == 1
    assert len(files - {name for name, _ in library.files.everything()}) == 1


def test_edit_of_an_outdated_text_is_refused(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "One."}])
    [part] = parts_of(served, project)
    assert change(served, project, part, text="Two.", text_before=" One.").json()["text"] == "Two."
    late = change(served, project, part, text="Three.", voice="anna", text_before="One.")
    assert_envelope(late, 412, "text")
    [now] = parts_of(served, project)
    assert (now["text"], now["voice"]) == ("Two.", None)
    assert change(served, project, part, text="Two.", text_before="One.").json()["text"] == "Two."  # sent twice
    assert_envelope(change(served, project, part, take="take_x", text_before="One."), 412, "text")
    assert_envelope(change(served, project, part, text="Four.", take_before="take_x"), 412, "take")
    assert change(served, project, part, text="Three.").json()["text"] == "Three."


def test_undo_puts_back_only_what_nobody_has_changed_since(steered: Steer) -> None:
    served, _ = steered()
    items = [{"input": "One.", "chapter": "One"}, {"input": "Two."}]
    project = create_project(served, items=items, title="Book", author="Ann", language="en", start=True)
    until(served, project, "done")
    at = f"{PROJECTS}/{project['id']}"
    [part, _] = parts_of(served, project)
    with served.client() as client:

        def undo(answer: httpx.Response) -> Any:
            undone = client.post(f"{at}/undo", json=answer.json()["replaced"]).json()
            return undone["undone"], undone["left"]

        mine = client.patch(at, json={"title": "My book", "author": "Anne", "speed": 1.2, "language": "en"})
        client.patch(at, json={"author": "Eve", "year": 1900})  # by somebody else
        seen = {"title": "My book", "author": "Anne", "year": None, "pause": 9}
        late = client.patch(at, json={"title": "Our book", "author": "Ann", "before": seen})
        assert_envelope(late, 412, "author")
        assert 'has changed author meanwhile: it is now "Eve"' in late.text.replace("\\", "")
        client.patch(at, json={"author": "Eve", "year": 1900, "before": seen}).raise_for_status()  # as it is
        assert undo(mine) == (2, ["author"])
        assert undo(mine) == (0, ["author", "speed", "title"])
        nothing = {"before": {"title": "Book", "pause": 9}, "after": {"title": "Book", "pause": 9}}
        undone = client.post(f"{at}/undo", json={"settings": nothing}).json()
        assert (undone["undone"], undone["left"]) == (0, [])
        now = client.get(at).json()
        assert (now["title"], now["settings"]["speed"], now["parts"]["done"]) == ("Book", 1.0, 2)
        assert (now["settings"]["author"], now["settings"]["year"]) == ("Eve", 1900)

        renamed = change(served, project, part, chapter="First")
        change(served, project, part, pause=2)  # which the undo leaves
        assert undo(renamed) == (1, [])
        now = parts_of(served, project)[0]
        assert (now["chapter"], now["text"], now["pause"], now["state"]) == ("One", "One.", 2, "done")
        titled = create_project(served, input="Untitled.")
        [first] = parts_of(served, titled)
        named = change(served, titled, first, chapter="A title").json()["replaced"]
        assert client.post(f"{PROJECTS}/{titled['id']}/undo", json=named).json()["undone"] == 1
        assert parts_of(served, titled)[0]["chapter"] == ""
        voiced = change(served, project, part, voice="bert", pause=3)
        change(served, project, part, voice="anna")
        assert undo(voiced) == (0, [part["id"]])


def test_undo_brings_back_the_take_that_a_person_has_chosen(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "One."}, {"input": "Two."}], start=True)
    until(served, project, "done")
    at = f"{PROJECTS}/{project['id']}"
    part, other = parts_of(served, project)
    with served.client() as client:

        def undo(answer: httpx.Response) -> Any:
            undone = client.post(f"{at}/undo", json=answer.json()["replaced"]).json()
            return undone["undone"], undone["left"]

        post_verb(served, project, "speak", parts=[part["id"]])
        until(served, project, "done")
        newer = parts_of(served, project)[0]["chosen"]
        chosen = change(served, project, part, take=part["chosen"])
        assert undo(chosen) == (1, []) and parts_of(served, project)[0]["chosen"] == newer != part["chosen"]
        change(served, project, part, text="Once.")
        post_verb(served, project, "speak", parts=[part["id"]])
        until(served, project, "done")
        change(served, project, part, text="One.", take=part["chosen"])  # not the newest of this text
        for changes in ({"text": "Once."}, {"voice": "anna"}, {"text": "Once.", "pause": 3}):
            changed = change(served, project, part, **changes)
            assert undo(changed) == (1, [])
            now = parts_of(served, project)[0]
            assert (now["chosen"], now["text"], now["state"]) == (part["chosen"], "One.", "done")
        changed = change(served, project, part, text="Once.")
        assert changed.json()["replaced"]["parts"][0]["before"] == {"chosen": part["chosen"], "text": "One."}
        change(served, project, part, take=newer)
        assert undo(changed) == (1, []), "the text comes back whatever take was chosen since"
        assert parts_of(served, project)[0]["chosen"] == newer
        stolen = {"ids": [part["id"]], "before": {"chosen": other["chosen"]}, "after": {"chosen": newer}}
        assert client.post(f"{at}/undo", json={"parts": [stolen]}).json()["left"] == [part["id"]]
        nothing = stolen | {"before": stolen["after"]}
        assert client.post(f"{at}/undo", json={"parts": [nothing]}).json()["undone"] == 0
        assert_envelope(client.post(f"{PROJECTS}/proj_none/undo", json={}), 404, "project")
        elsewhere = post(served, project, f"parts/{part['id']}/move", position=1, position_before=1)
        assert_envelope(elsewhere, 412, "position_before")
        deleted = post(served, project, "parts/delete", ids=[part["id"]], text_before="Another.")
        assert_envelope(deleted, 412, "text")
        stolen |= {"before": {"chosen": part["chosen"], "text": None}}
        assert_envelope(client.post(f"{at}/undo", json={"parts": [stolen]}), 400, "parts")


@pytest.mark.parametrize("seed", range(6))
def test_deleted_parts_are_restored_in_order_despite_insertions_and_moves(tmp_path: Path, seed: int) -> None:
    library, chance = ProjectLibrary(tmp_path), random.Random(seed)
    chapters = {0: "A", 3: "B", 7: "C"}
    wanted = [NewPart(f"Part {number}.", chapters.get(number, "")) for number in range(10)]
    project = library.projects.create("me", "Mine", "txt", wanted, ProjectSettings())

    def present() -> list[Part]:
        return library.projects.parts(project.id, "me")

    order = [part.id for part in present()]
    inserts = seed % 2 == 1
    deleted: list[str] = []
    for _ in range(40):
        ids = [part.id for part in present()]
        action = chance.choice(["delete", "delete", "restore", "insert", "move"])
        if action == "delete" and len(ids) > 1:
            library.arrangement.delete(project.id, "me", [gone := chance.choice(ids)])
            deleted.append(gone)
        elif action == "restore" and deleted:
            some = chance.sample(deleted, chance.randint(1, len(deleted)))
            library.arrangement.restore(project.id, "me", some)
            deleted = [part_id for part_id in deleted if part_id not in some]
        elif action == "insert" and inserts:
            after = chance.choice([None, *ids])
            library.arrangement.insert(project.id, "me", NewPart("New."), after)
        elif action == "move":
            library.arrangement.move(project.id, "me", [moved := chance.choice(ids)], chance.randrange(len(ids)))
            library.arrangement.move(project.id, "me", [moved], ids.index(moved))  # back
        held = [part.id for part in present() if part.text != "New."]
        assert held == [part_id for part_id in order if part_id in held]
        assert [part.position for part in present()] == list(range(len(present())))
    chance.shuffle(deleted)
    for part_id in deleted:
        library.arrangement.restore(project.id, "me", [part_id])
    back = [part for part in present() if part.text != "New."]
    assert [part.id for part in back] == order
    if not inserts:
        assert [(part.text, part.chapter) for part in back] == [(part.text, part.chapter) for part in wanted]


def test_deleted_parts_are_restored_in_place_after_insertions_and_splits(tmp_path: Path) -> None:
    library = ProjectLibrary(tmp_path)
    numbers = ["one", "two", "three", "four"]
    project = library.projects.create("me", "Mine", "txt", [NewPart(word) for word in numbers], ProjectSettings())
    first, *_, last = library.projects.parts(project.id, "me")
    for part in (last, first):
        library.arrangement.delete(project.id, "me", [part.id])
    library.arrangement.insert(project.id, "me", NewPart("Credits."), None)
    for part in (first, last):
        library.arrangement.restore(project.id, "me", [part.id])
    assert [part.text for part in library.projects.parts(project.id, "me")] == ["Credits.", *numbers]
    library.arrangement.delete(project.id, "me", [last.id])
    first_half, second_half = library.arrangement.split(
        project.id, "me", library.projects.parts(project.id, "me")[3].id, "three", 2
    )
    library.arrangement.restore(project.id, "me", [last.id])
    assert [part.text for part in library.projects.parts(project.id, "me")][3:] == ["th", "ree", "four"]
    assert first_half.position + 1 == second_half.position


def test_invalid_arrangements_of_parts_are_refused_and_change_nothing(
    steered: Steer, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "a" * 2000}, {"input": "b" * 2000}, {"input": "One two."}])
    first, second, third = parts_of(served, project)
    before = texts(served, project)
    changed = {"text": "One three.", "at": 3}
    split, merge = f"parts/{third['id']}/split", f"parts/{first['id']}/merge"
    assert_envelope(post(served, project, split, **changed), 412, "text")
    for at in (0, 8, 99):
        assert_envelope(post(served, project, split, text="One two.", at=at), 400, "at")
    assert_envelope(post(served, project, merge, following=second["id"]), 400, "following")
    assert_envelope(post(served, project, merge, following=third["id"]), 412, "following")
    assert_envelope(post(served, project, merge, following=first["id"]), 412, "following")
    assert_envelope(post(served, project, merge, following="none"), 404, "part")
    assert_envelope(post(served, project, f"parts/{first['id']}/move", position=3), 400, "position")
    for body, field in (
        ({"text": " ", "after": None}, "text"),
        ({"text": "Hi.", "after": None, "voice": "nobody"}, "voice"),
        ({"text": "Hi."}, "after"),
        ({"text": "a" * 4001, "after": None}, "text"),
    ):
        assert_envelope(post(served, project, "parts", **body), 400, field)
    assert_envelope(post(served, project, "parts", text="Hi.", after="none"), 404, "part")
    monkeypatch.setattr(part_arrangement, "MAX_PARTS", 3)
    assert_envelope(post(served, project, "parts", text="Hi.", after=None), 400, "parts")
    assert_envelope(post(served, project, split, text="One two.", at=4), 400, "parts")
    assert texts(served, project) == before
    alone = create_project(served, input="Hi.")
    with served.client() as client:
        [part] = parts_of(served, alone)
        assert_envelope(client.delete(f"{PROJECTS}/{alone['id']}/parts/{part['id']}"), 400, "part")


def test_one_of_two_concurrent_splits_succeeds_and_a_part_can_be_deleted_while_running(steered: Steer) -> None:
    served, engine = steered()
    engine.first_frame_gate.clear()
    project = create_project(served, items=[{"input": "One two."}, {"input": "Three."}, {"input": "Four."}], start=True)
    until(served, project, speaking=1)
    served.until(running=1)
    first = parts_of(served, project)[0]

    def split(_: int) -> int:
        return post(served, project, f"parts/{first['id']}/split", text="One two.", at=4).status_code

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(split, range(2))) == [200, 412]
    halves = parts_of(served, project)[:2]
    assert [(part["text"], part["state"]) for part in halves] == [("One", "queued"), ("two.", "queued")]
    post(served, project, f"parts/{first['id']}/merge", following=halves[1]["id"])
    with served.client() as client:
        client.delete(f"{PROJECTS}/{project['id']}/parts/{first['id']}")
    engine.first_frame_gate.set()
    assert until(served, project, "done")["parts"]["total"] == 2
    assert [part["text"] for part in parts_of(served, project)] == ["Three.", "Four."]


def test_words_are_counted_replaced_in_all_parts_and_restored(steered: Steer) -> None:
    served, _ = steered()
    words = ["Ann met Anna. ANN left.", "Nobody here.", "Ann"]
    project = create_project(served, items=[{"input": text} for text in words], start=True)
    until(served, project, "done")

    def replace(**body: object) -> Any:
        answer = post(served, project, "replace", **body).json()
        return answer["count"], answer["parts"]

    assert replace(find="ann", dry_run=True) == (4, 2)
    assert replace(find="ann", whole_words=True, dry_run=True) == (3, 2)
    assert replace(find="Ann", match_case=True, whole_words=True, dry_run=True) == (2, 2)
    assert replace(find="A.n", dry_run=True) == (0, 0)
    assert [state for _, _, state in texts(served, project)] == ["done"] * 3
    assert replace(find="ann", replace=r"\1 Eve", whole_words=True) == (3, 2)
    assert texts(served, project) == [
        (0, r"\1 Eve met Anna. \1 Eve left.", "stale"), (1, "Nobody here.", "done"), (2, r"\1 Eve", "stale"),
    ]  # fmt: skip
    change(served, project, parts_of(served, project)[2], text="Mine.")
    undone = post(served, project, "replace/undo")
    assert undone.json() == {"object": "project.replacement.undone", "parts": 1, "left": 1}
    assert [(text, state) for _, text, state in texts(served, project)] == [
        (words[0], "done"), (words[1], "done"), ("Mine.", "stale"),
    ]  # fmt: skip
    assert_envelope(post(served, project, "replace/undo"), 404, "project")
    for body, field in (
        ({"find": ""}, "find"),
        ({"find": "a" * 201}, "find"),
        ({"find": "a\0"}, "find"),
        ({"find": "a", "replace": "b" * 1001}, "replace"),
        ({"find": "n", "replace": "b" * 1000}, "replace"),  # part 1 would be too long
        ({"find": "Mine.", "replace": " "}, "replace"),
    ):
        assert_envelope(post(served, project, "replace", **body), 400, field)
    assert (
        "part 3 cannot be changed like this: a part needs text"
        in (post(served, project, "replace", find="mine.").json()["error"]["message"])
    )
    assert [text for _, text, _ in texts(served, project)] == [words[0], words[1], "Mine."]


def test_undoing_a_replacement_restores_the_texts_of_deleted_parts_too_and_no_other_replacement(steered: Steer) -> None:
    served, _ = steered()
    words = ["Ann left.", "Ann stayed.", "Nobody came."]
    project = create_project(served, items=[{"input": text} for text in words])
    first = post(served, project, "replace", find="Ann", replace="Eve").json()["id"]
    post(served, project, "replace", find="Nobody", replace="Bob")  # by somebody else
    deleted = {"ids": [parts_of(served, project)[0]["id"]]}
    post(served, project, "parts/delete", **deleted)
    undone = {"object": "project.replacement.undone", "parts": 2, "left": 0}
    assert_envelope(post(served, project, "replace/undo?replacement=repl_else"), 404, "project")
    assert post(served, project, f"replace/undo?replacement={first}").json() == undone
    assert [text for _, text, _ in texts(served, project)] == ["Ann stayed.", "Bob came."]
    assert post(served, project, "replace/undo").json() == undone | {"parts": 1}
    post(served, project, "parts/restore", **deleted)
    assert [text for _, text, _ in texts(served, project)] == words


def test_only_the_owner_may_arrange_a_project(tmp_path: Path) -> None:
    library = ProjectLibrary(tmp_path)
    project = library.projects.create("me", "Mine", "txt", [NewPart("One two.")], ProjectSettings())
    [part] = library.projects.parts(project.id, "me")
    for action in (
        lambda: library.arrangement.insert(project.id, "you", NewPart("Hi."), None),
        lambda: library.arrangement.split(project.id, "you", part.id, "One two.", 4),
        lambda: library.arrangement.merge(project.id, "you", part.id, part.id),
        lambda: library.arrangement.move(project.id, "you", [part.id], 0),
        lambda: library.arrangement.delete(project.id, "you", [part.id]),
        lambda: library.replacements.count(project.id, "you", TextReplacement("One")),
        lambda: library.replacements.replace(project.id, "you", TextReplacement("One", "Two")),
        lambda: library.replacements.undo(project.id, "you"),
    ):
        with pytest.raises(Exception, match="no project"):
            action()
    assert library.projects.parts(project.id, "me") == [part]
    matches = library.replacements.replace(project.id, "me", TextReplacement("ONE", "Two"))
    assert matches == Matches(1, 1, id=matches.id)
    library.projects.delete(project.id, "me")
    assert library.trash.empty(None, "project") == 1
    assert library.trash.page(None) == []
    with pytest.raises(InvalidRequest):
        TextReplacement("").pattern()


def test_nested_merges_are_undone_from_the_last_one(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": f"Word {n}."} for n in range(3)], start=True)
    until(served, project, "done")
    before = parts_of(served, project)
    first, second, third = (part["id"] for part in before)
    post(served, project, f"parts/{second}/merge", following=third)
    post(served, project, f"parts/{first}/merge", following=second)
    refused = post(served, project, "parts/restore", ids=[third])
    assert refused.status_code == 412 and "'Word 1. Word 2.'" in refused.json()["error"]["message"]
    for part_id in (second, third):
        assert post(served, project, "parts/restore", ids=[part_id]).status_code == 200
    assert parts_of(served, project) == before
    for following in (second, third):  # both into the first: in any order
        post(served, project, f"parts/{first}/merge", following=following)
    for part_id in (second, third):
        assert post(served, project, "parts/restore", ids=[part_id]).status_code == 200
    assert parts_of(served, project) == before

    last = post(served, project, "parts", text="Last.", after=third).json()["id"]
    post(served, project, f"parts/{second}/merge", following=third)
    post(served, project, f"parts/{first}/merge", following=second)
    with served.client() as client:
        client.delete(f"{PROJECTS}/{project['id']}/parts/{first}").raise_for_status()
        client.delete("/v1/trash", params={"ids": f"{first},{second}"}).raise_for_status()
    post(served, project, "parts/restore", ids=[third]).raise_for_status()
    kept = [(part["id"], part["takes"], part["state"]) for part in parts_of(served, project)]
    assert kept == [(third, before[2]["takes"], "done"), (last, [], "new")]

    second, first = (post(served, project, "parts", text=text, after=None).json()["id"] for text in ("Two.", "One."))
    post(served, project, f"parts/{second}/merge", following=third)
    post(served, project, f"parts/{first}/merge", following=second)
    with served.client() as client:
        client.delete("/v1/trash", params={"ids": second}).raise_for_status()
    post(served, project, "parts/restore", ids=[third]).raise_for_status()
    assert [part["text"] for part in parts_of(served, project)] == ["One. Two.", before[2]["text"], "Last."]
    assert parts_of(served, project)[1]["takes"] == before[2]["takes"]

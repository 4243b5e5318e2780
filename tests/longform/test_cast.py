"""The cast of a project over HTTP: stored, recast, merged, split, confirmed and restored."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from longform.library.cast_repository import CharacterChanges
from longform.library.project_records import NewPart, ProjectSettings
from longform.library.project_repository import ProjectLibrary
from manuscript.passages import NewCharacter
from studio.errors import InvalidRequest
from studio.library.schema import Database
from studio.library.store import Store
from studio.library.trash import TrashKind
from tests.longform.test_projects import PROJECTS, Json, Steer, change, create_project, parts_of, until
from tests.studio.answers import assert_envelope
from tests.studio.server import Served

NOVEL = (
    "“Come in,” said Eleanor. “She is waiting.”\n\n"
    "Mr Thornton wiped his boots. “Is she angry?” he asked.\n\n"
    "“Very.”\n\n"
    "“Then I wait, too,” said Mr Thornton.\n\n"
    "The rain went on. It had rained for a week, and for another.\n\n"
    "It went on.\n\n* * *\n\nThe kitchen was dark.\n\n"
    "“Somebody is here.”"
)


def novel(served: Served, **body: Any) -> tuple[Json, str, dict[str, Json]]:
    """The project, its address, and its characters by name."""
    cast = {"Eleanor": "bert"}
    project = create_project(served, input=NOVEL, speakers=True, cast=cast, voice="anna", **body)
    return project, f"{PROJECTS}/{project['id']}", cast_of(served, project)


def cast_of(served: Served, project: Json) -> dict[str, Json]:
    with served.client() as client:
        answer = client.get(f"{PROJECTS}/{project['id']}/cast").json()
    return {one["name"]: one for one in [answer["narrator"], *answer["data"]]}


def voices_and_states(served: Served, project: Json) -> dict[str, tuple[str | None, str]]:
    """Voice and state of each part, by its text."""
    return {part["text"]: (part["voice"], part["state"]) for part in parts_of(served, project)}


def test_undoing_a_new_voice_leaves_a_line_its_own_that_is_the_same(steered: Steer) -> None:
    served, _ = steered()
    items = [{"input": "One.", "character": "Ann"}, {"input": "Two.", "character": "Ann"}]
    project = create_project(served, items=items)
    at, ann = f"{PROJECTS}/{project['id']}", cast_of(served, project)["Ann"]
    [_, own] = parts_of(served, project)
    with served.client() as client:

        def recast() -> Json:
            answer: Json = client.post(f"{at}/cast/recast", json={}).raise_for_status().json()
            return answer["replaced"]

        def edited() -> Json:
            answer: Json = client.patch(f"{at}/cast/{ann['id']}", json={"voice": voice}).raise_for_status().json()
            return answer["replaced"]

        [proposed] = (first := recast())["characters"]
        assert client.post(f"{at}/undo", json=first).json()["undone"] == 1
        voice = proposed["after"]
        change(served, project, own, voice=voice).raise_for_status()
        for step in (recast, edited):
            replaced = step()
            assert [part["voice"] for part in parts_of(served, project)] == [voice, voice]
            assert client.post(f"{at}/undo", json=replaced).json() == {
                "object": "project.undone", "undone": 1, "left": []
            }  # fmt: skip
            assert [part["voice"] for part in parts_of(served, project)] == [None, voice]


@pytest.mark.parametrize("voice", ["anna", None])
def test_undoing_that_a_character_narrates_or_no_longer_does(steered: Steer, voice: str | None) -> None:
    served, _ = steered()
    people = [{"name": "Ann"} | ({"voice": voice} if voice else {})]
    project = create_project(served, items=[{"input": "One.", "character": "Ann"}], people=people)
    at, ann = f"{PROJECTS}/{project['id']}", cast_of(served, project)["Ann"]

    def now() -> tuple[str | None, bool, str | None]:
        one = cast_of(served, project)["Ann"]
        return one["voice"], one["narrator"], parts_of(served, project)[0]["voice"]

    with served.client() as client:

        def edited(**fields: Any) -> Json:
            answer: Json = client.patch(f"{at}/cast/{ann['id']}", json=fields).raise_for_status().json()
            return answer["replaced"]

        def undone(replaced: Json) -> int:
            return int(client.post(f"{at}/undo", json=replaced).raise_for_status().json()["undone"])

        assert now() == (voice, False, voice)
        narrates = edited(narrator=True)
        assert now() == (None, True, None)
        speaks = edited(voice="bert")
        assert now() == ("bert", False, "bert")
        assert undone(narrates) == 0, "somebody has given it a voice since"
        assert undone(speaks) == 1 and now() == (None, True, None)
        assert undone(speaks) == 0
        assert undone(narrates) == 1 and now() == (voice, False, voice)
        assert undone(narrates) == 0


def test_changing_a_characters_voice_makes_only_its_lines_stale(steered: Steer) -> None:
    served, _ = steered()
    project, at, cast = novel(served, start=True)
    until(served, project, "done")
    eleanor = cast["Eleanor"]
    assert (eleanor["voice"], eleanor["lines"], eleanor["words"], cast["Mr Thornton"]["gender"]) == (
        "bert",
        4,
        9,
        "male",
    )
    first, *_ = parts_of(served, project)
    assert (first["character"], first["reason"], first["confirmed"]) == (eleanor["id"], "tag", False)
    with served.client() as client:
        assert_envelope(client.patch(f"{at}/cast/{eleanor['id']}", json={"voice": "nobody"}), 400, "voice")
        own = next(part for part in parts_of(served, project) if part["text"] == "“Very.”")
        client.patch(f"{at}/parts/{own['id']}", json={"voice": "alloy"})
        renamed = client.patch(
            f"{at}/cast/{eleanor['id']}",
            json={"name": "Miss Ashby", "aliases": ["Eleanor"], "gender": "female", "voice": "anna"},
        ).json()
        read = {"name": "Eleanor", "voice": "anna"}
        late = client.patch(f"{at}/cast/{eleanor['id']}", json={"name": "Nell", "before": read})
        assert_envelope(late, 412, "name")
        assert late.json()["error"]["message"] == 'somebody has changed name meanwhile: it is now "Miss Ashby"'
        lost = client.patch(f"{at}/cast/{eleanor['id']}", json={"aliases": ["Eleanor"], "before": {"aliases": []}})
        assert lost.json()["aliases"] == ["Eleanor"], "it was saved, and the answer did not arrive"
    assert (renamed["name"], renamed["aliases"], renamed["voice"]) == ("Miss Ashby", ["Eleanor"], "anna")
    now = voices_and_states(served, project)
    assert now["“Come in,”"] == ("anna", "stale") and now["said Eleanor."] == (None, "done")
    assert now["“Very.”"] == ("alloy", "stale"), "a line with a voice of its own keeps it"
    sample = cast_of(served, project)[""]["sample"]
    assert sample["take"] and "rain" in sample["text"]

    def speak(parts: str | list[str]) -> None:
        client.post(f"{at}/speak", json={"parts": parts}).raise_for_status()
        until(served, project, "done")

    with served.client() as client:
        speak("stale")
        preferred = parts_of(served, project)[0]["chosen"]
        speak([first["id"]])
        change(served, project, first, take=preferred).raise_for_status()
        before = parts_of(served, project)
        assert before[0]["takes"][0]["id"] != preferred == before[0]["chosen"]
        recast = client.post(f"{at}/cast/recast", json={}).json()["replaced"]
        speak("stale")
        assert parts_of(served, project)[0]["voice"] != "anna"
        assert client.post(f"{at}/undo", json=recast).json()["left"] == []
        settings = client.patch(at, json={"speed": 1.5}).json()["replaced"]["settings"]
        speak("stale")
        client.post(f"{at}/undo", json={"settings": settings}).raise_for_status()
    again = parts_of(served, project)
    assert [part["chosen"] for part in again] == [part["chosen"] for part in before], "the takes that were chosen"


def test_merged_characters_share_their_lines_until_the_merge_is_undone(steered: Steer) -> None:
    served, _ = steered()
    project, at, cast = novel(served)
    thornton, eleanor = cast["Mr Thornton"]["id"], cast["Eleanor"]["id"]
    before = voices_and_states(served, project)
    with served.client() as client:
        assert_envelope(client.post(f"{at}/cast/{thornton}/merge", json={"into": thornton}), 400, "into")
        assert_envelope(client.post(f"{at}/cast/{thornton}/merge", json={"into": "char_x"}), 404, "character")
        merged = client.post(f"{at}/cast/{thornton}/merge", json={"into": eleanor}).json()
        assert (merged["aliases"], merged["lines"]) == (["Mr Thornton"], 6)
        assert voices_and_states(served, project)["“Is she angry?”"] == ("bert", "new")
        [item] = client.get("/v1/trash").json()["data"]
        assert (item["kind"], item["title"], item["parts"]) == ("character", "Mr Thornton", 2)
        body = {"items": [{"kind": "character", "id": thornton}]}
        assert client.post("/v1/trash/restore", json=body).status_code == 200
        assert client.post("/v1/trash/restore", json=body).status_code == 404
    assert voices_and_states(served, project) == before and cast_of(served, project)["Eleanor"]["aliases"] == []
    with served.client() as client:
        client.post(f"{at}/cast/{thornton}/merge", json={"into": eleanor})
        angry = next(part["id"] for part in parts_of(served, project) if part["text"] == "“Is she angry?”")
        client.patch(f"{at}/parts", json={"ids": [angry], "confirmed": True})
        assert client.post("/v1/trash/restore", json=body).status_code == 200
        lines = {name: one["lines"] for name, one in cast_of(served, project).items()}
        assert (lines["Eleanor"], lines["Mr Thornton"]) == (5, 1), "what a person has decided since stays"
        client.patch(f"{at}/parts", json={"ids": [angry], "character": thornton, "confirmed": False})
    with served.client() as client:
        assert client.delete(f"{at}/cast/{eleanor}").json()["deleted"] is True
        assert voices_and_states(served, project)["“Very.”"] == (None, "new")
        added = client.post(f"{at}/cast", json={"name": "Eleanor"})
        assert added.status_code == 201
        body["items"][0]["id"] = eleanor
        assert_envelope(client.post("/v1/trash/restore", json=body), 400, "name")
        client.patch(f"{at}/cast/{added.json()['id']}", json={"name": "Another"})
        assert client.post("/v1/trash/restore", json=body).status_code == 200
        client.delete(at)
        assert_envelope(client.get(f"{at}/cast"), 404, "project")
    assert before["“Very.”"] == ("bert", "new")


def test_unsure_lines_are_listed_until_confirmed(steered: Steer) -> None:
    served, _ = steered()
    _, at, cast = novel(served)
    with served.client() as client:
        listed = client.get(f"{at}/cast/lines?unsure=true").json()
        [line] = listed["data"]
        assert (line["text"], listed["total"]) == ("“Somebody is here.”", 1)
        assert line["before"].endswith("\nThe kitchen was dark.\n") and line["people"]
        samples = [one["sample"]["text"] for one in cast.values()]
        assert line["character"] and line["text"] not in samples, "a sample's speaker is sure"
        parts, eleanor = f"{at}/parts", cast["Eleanor"]["id"]
        assert client.patch(parts, json={"ids": [line["id"]], "character": eleanor}).json()["count"] == 1
        assert client.get(f"{at}/cast/lines?unsure=true").json()["total"] == 0
        undone = {"ids": [line["id"]], "character": line["character"] or "", "confirmed": False}
        assert client.patch(parts, json=undone).status_code == 200
        assert client.get(f"{at}/cast/lines?unsure=true").json()["data"] == [line]
        client.patch(parts, json={"ids": [line["id"]], "confirmed": True})
        assert client.get(f"{at}/cast").json()["unsure"] == 0


def test_a_decision_decides_its_scene_again(steered: Steer) -> None:
    served, _ = steered()
    spoken = ["“Come,” said Anna.", "“Why?” said Ben.", "“It is late.”", "“Not yet.”", "“It is.”", "“Is it?”", "“Yes.”"]
    letter = ["“The house is let at last.", "“It was let on Monday.”"]
    text = "\n\n".join([*spoken, *["It rained."] * 9, *letter])
    project = create_project(served, input=text, speakers=True, cast={"Anna": "anna", "Ben": "bert"})
    at = f"{PROJECTS}/{project['id']}"
    ids = {one["name"]: one["id"] for one in cast_of(served, project).values()}
    who = {part["text"]: (part["character"], part["voice"]) for part in parts_of(served, project)}
    anna, ben = (ids["Anna"], "anna"), (ids["Ben"], "bert")
    assert [who[text] for text in spoken[2:]] == [anna, ben, anna, ben, anna] and who[letter[1]][0]
    part = {part["text"]: part["id"] for part in parts_of(served, project)}
    with served.client() as client:
        client.patch(f"{at}/parts", json={"ids": [part["“It is late.”"]], "confirmed": True})
        body = {"ids": [part["“It is.”"]], "character": ids["Ben"]}
        decision = client.patch(f"{at}/parts", json=body).json()
        followed, replaced = decision["followed"], decision["replaced"]
        read = client.patch(f"{at}/parts", json={"ids": [part[letter[0]]], "character": ""}).json()["followed"]
    assert read == [{"part": part[letter[1]], "character": None, "confidence": 1.0, "unsure": False}]
    assert {one["part"]: one["character"] for one in followed}[part["“Is it?”"]] == ids["Anna"]
    who = {part["text"]: (part["character"], part["voice"]) for part in parts_of(served, project)}
    assert [who[text] for text in spoken[4:]] == [ben, anna, ben] and who["“It is late.”"] == anna
    assert who[letter[1]] == (None, None), "what the narrator reads goes on to the end of the quotation"
    before = {one["ids"][0]: one["before"] for one in replaced["followed"]}
    assert len(before) > 1
    with served.client() as client:
        client.patch(f"{at}/parts", json={"ids": [part["“Yes.”"]], "confirmed": True})
        later = client.patch(f"{at}/parts", json={"ids": body["ids"], "confirmed": True}).json()["replaced"]
        assert client.post(f"{at}/undo", json=replaced).json()["undone"] == 0  # somebody else decided the same
        undone = {"object": "project.undone", "undone": 1, "left": []}
        assert client.post(f"{at}/undo", json=later).json() == undone
        undone = {"object": "project.undone", "undone": len(before), "left": [part["“Yes.”"]]}
        assert client.post(f"{at}/undo", json=replaced).json() == undone
        lines = {one["id"]: one for one in client.get(f"{at}/cast/lines").json()["data"]}
        assert not lines[body["ids"][0]]["confirmed"]
        replaced["followed"] = []
        replaced["parts"][0] |= {"before": replaced["parts"][0]["before"] | {"character": "char_x"}}
        assert client.post(f"{at}/undo", json=replaced).json()["undone"] == 0
    del before[part["“Yes.”"]]
    assert all(lines[one]["confidence"] == values["confidence"] for one, values in before.items())
    who = {part["text"]: (part["character"], part["voice"]) for part in parts_of(served, project)}
    assert [who[text] for text in spoken[4:]] == [anna, ben, ben], "a line that was decided meanwhile stays as it is"


def test_range_of_lines_is_assigned_to_a_new_character_and_all_are_recast(steered: Steer) -> None:
    served, _ = steered()
    project, at, _ = novel(served)
    listed = parts_of(served, project)
    with served.client() as client:
        new = client.post(f"{at}/cast", json={"name": "The Cook", "voice": "bert"}).json()
        ends = {"first": listed[-1]["id"], "last": listed[-2]["id"]}
        assert client.patch(f"{at}/parts", json=ends | {"character": new["id"]}).json()["count"] == 2
        one = {"first": ends["first"], "last": ends["first"], "pause": 1}
        assert client.patch(f"{at}/parts", json=one).json()["count"] == 1
        assert [part["voice"] for part in parts_of(served, project)[-2:]] == ["bert", "bert"]
        for character in (new["id"], ""):
            wanted = [part["id"] for part in parts_of(served, project) if (part["character"] or "") == character]
            assert client.get(f"{at}/parts/ids", params={"character": character}).json()["data"] == wanted
        assert_envelope(client.patch(f"{at}/parts", json=ends | {"character": "char_x"}), 404, "character")
        assert_envelope(client.patch(f"{at}/parts", json={"ids": ["part_x"], "pause": 1}), 404, "part")
        assert_envelope(client.patch(f"{at}/parts", json={"pause": 1}), 400, "ids")
        assert_envelope(client.post(f"{at}/cast", json={"name": "the cook"}), 400, "name")
        assert_envelope(client.post(f"{at}/cast", json={"name": "x" * 201}), 400, "name")
        narrated = client.patch(f"{at}/cast/{new['id']}", json={"narrator": True}).json()
        assert (narrated["narrator"], narrated["voice"]) == (True, None)
        assert_envelope(client.patch(f"{at}/cast/{new['id']}", json={"narrator": True, "voice": "bert"}), 400, "voice")
        recast = client.post(f"{at}/cast/recast", json={"missing": True}).json()
        voices = {one["name"]: one["voice"] for one in recast["data"]}
        assert voices == {"Eleanor": "bert", "Mr Thornton": "bert", "The Cook": None}
        for one in recast["data"]:
            client.patch(f"{at}/cast/{one['id']}", json={"voice": "anna"})
        answer = client.post(f"{at}/cast/recast", json={}).json()["replaced"]
        first, *rest = [one["id"] for one in answer["characters"]]
        client.patch(f"{at}/cast/{first}", json={"voice": ""})  # by somebody else
        undone = client.post(f"{at}/undo", json=answer).json()
        assert undone == {"object": "project.undone", "undone": len(rest), "left": [first]}
        voices = {one["id"]: one["voice"] for one in client.get(f"{at}/cast").json()["data"]}
        assert rest and {voices[one] for one in rest} == {"anna"} and voices[first] is None
        assert client.post(f"{at}/undo", json=answer).json()["undone"] == 0
        items = [{"input": "One."}, {"input": "Two.", "voice": "Grandpa"}]  # a voice that does not exist
        at = f"{PROJECTS}/{create_project(served, items=items)['id']}"
        ids = client.get(f"{at}/parts/ids").json()["data"]
        replaced = client.patch(f"{at}/parts", json={"ids": ids, "voice": "bert"}).json()["replaced"]
        undone = {"object": "project.undone", "undone": 2, "left": []}
        assert client.post(f"{at}/undo", json=replaced).json() == undone
        assert [part["voice"] for part in client.get(f"{at}/parts").json()["data"]] == [None, "Grandpa"]


def test_manifest_of_the_zip_has_the_cast_and_recreates_the_project(steered: Steer) -> None:
    served, _ = steered()
    project, at, _ = novel(served, start=True, scene_pause=2)
    until(served, project, "done")
    with served.client() as client:
        archive = zipfile.ZipFile(io.BytesIO(client.get(f"{at}/zip").content))
        manifest = archive.read("manifest.csv")
        again = client.post(PROJECTS, files={"file": ("manifest.csv", manifest)}).json()
    assert [row["character"] for row in csv.DictReader(io.StringIO(manifest.decode()))][:2] == ["Eleanor", ""]
    names = [{one["id"]: one["name"] for one in cast_of(served, book).values()} for book in (project, again)]
    same = [
        [(part["text"], part["voice"], part["pause"], part["scene"], own.get(part["character"])) for part in parts]
        for own, parts in zip(names, (parts_of(served, project), parts_of(served, again)), strict=True)
    ]
    assert same[0] == same[1] and any(part[3] for part in same[0])
    assert cast_of(served, again)["Eleanor"]["voice"] == "bert"


def test_split_parts_keep_their_character_which_other_projects_cannot_use(steered: Steer) -> None:
    served, _ = steered()
    project, at, cast = novel(served)
    part = next(row for row in parts_of(served, project) if row["text"] == "“She is waiting.”")
    other = create_project(served, items=[{"input": "One.", "character": "Ann"}, {"input": "Two."}])
    with served.client() as client:
        halves = client.post(f"{at}/parts/{part['id']}/split", json={"text": part["text"], "at": 4}).json()["data"]
        assert [half["character"] for half in halves] == [cast["Eleanor"]["id"]] * 2
        foreign = {"character": cast["Eleanor"]["id"]}
        assert_envelope(
            client.patch(f"{PROJECTS}/{other['id']}/cast/{foreign['character']}", json={"voice": ""}), 404, "character"
        )
        [first, _] = parts_of(served, other)
        assert_envelope(client.patch(f"{PROJECTS}/{other['id']}/parts/{first['id']}", json=foreign), 404, "character")
    assert list(cast_of(served, other)) == ["", "Ann"]


def test_undoing_a_merge_of_characters_keeps_what_the_other_had_before_or_got_since(tmp_path: Path) -> None:
    library = ProjectLibrary(tmp_path)
    tom, other = (
        NewCharacter("Tom Reed", ("Tom",), voice="anna"),
        NewCharacter("Thomas", ("Tom", "Tommy"), "male", "bert"),
    )
    parts = [NewPart("One.", character=other.id, voice="bert"), NewPart("Two.", character=other.id, voice="anna")]
    project = library.projects.create("me", "Mine", "txt", parts, ProjectSettings(), cast=[tom, other]).id

    def survivor() -> tuple[tuple[str, ...], str]:
        [member] = [one for one in library.cast.members(project, "me") if one.id == tom.id]
        return member.aliases, member.gender

    def merge_and_undo(changes: CharacterChanges) -> tuple[tuple[str, ...], str]:
        library.cast.merge(project, "me", other.id, tom.id)
        assert survivor() == (("Tom", "Thomas", "Tommy"), "male")
        library.cast.edit(project, "me", tom.id, changes)
        library.trash.restore([("character", other.id)], "me")
        return survivor()

    assert merge_and_undo(CharacterChanges()) == (("Tom",), "")
    assert [part.voice for part in library.projects.parts(project, "me")] == ["bert", "anna"]
    changed = merge_and_undo(CharacterChanges(gender="female", aliases=["Tom", "Mr Reed", "Tommy"]))
    assert changed == (("Tom", "Mr Reed"), "female")


def test_characters_merged_one_after_the_other_are_restored_in_any_order(tmp_path: Path) -> None:
    library = ProjectLibrary(tmp_path)
    cast = [NewCharacter(name, voice=name.lower()) for name in ("Ann", "Ben", "Carl")]
    parts = [NewPart(f"{one.name} spoke.", character=one.id, voice=one.voice) for one in cast]
    project = library.projects.create("me", "Mine", "txt", parts, ProjectSettings(), cast=cast).id
    ann, ben, carl = (one.id for one in cast)

    def now() -> tuple[dict[str, tuple[str, ...]], list[tuple[str | None, str | None]]]:
        members = {one.name: one.aliases for one in library.cast.members(project, "me") if one.id}
        return members, [(part.character, part.voice) for part in library.projects.parts(project, "me")]

    before = now()
    for order in ((carl, ben), (ben, carl)):
        library.cast.merge(project, "me", carl, ben)
        library.cast.merge(project, "me", ben, ann)
        for character in order:
            library.trash.restore([("character", character)], "me")
        assert now() == before
    library.cast.merge(project, "me", ben, ann)
    library.cast.merge(project, "me", ann, None)
    for character in (ben, ann):
        library.trash.restore([("character", character)], "me")
    assert now() == before
    deleted: list[tuple[TrashKind, str]] = [("character", ben), ("character", carl), ("character", ann)]
    for into in (ann, None):
        library.cast.merge(project, "me", carl, ben)
        library.cast.merge(project, "me", ben, into)
        library.cast.merge(project, "me", ann, None)
        library.trash.restore(deleted, "me")
        assert now() == before
    library.cast.merge(project, "me", ben, None)
    namesake = library.cast.add(project, "me", NewCharacter("BEN")).id
    library.cast.merge(project, "me", str(namesake), None)
    with pytest.raises(InvalidRequest, match="already has"):
        library.trash.restore([("character", str(namesake)), ("character", ben)], "me")
    library.trash.restore([("character", ben)], "me")
    assert now() == before


def test_a_line_of_several_characters_merged_one_into_another_is_restored_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, written = ProjectLibrary(tmp_path), list[int]()
    cast = [NewCharacter(f"Name {number}", voice=f"voice {number}") for number in range(9)]
    parts = [NewPart(f"{one.name} spoke.", character=one.id, voice=one.voice) for one in cast for _ in range(20)]
    project = library.projects.create("me", "Mine", "txt", parts, ProjectSettings(), cast=cast).id
    before = library.projects.parts(project, "me")
    for one, other in pairwise(cast):
        library.cast.merge(project, "me", one.id, other.id)
    writing = Store.writing

    @contextmanager
    def counted(store: Store, frees_room: bool = False) -> Iterator[Database]:
        with writing(store, frees_room) as db:
            changes = db.conn.total_changes
            yield db
            written.append(db.conn.total_changes - changes)

    monkeypatch.setattr(Store, "writing", counted)
    library.trash.restore([("character", one.id) for one in cast[:-1]], "me")
    assert library.projects.parts(project, "me") == before and written == [written[0]]
    assert written[0] < 2 * len(parts), "a line is written once, however many characters had it"

"""A table as a project: its columns, ids as file names, a new version of it, and zips of changed lines."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import zipfile
from collections.abc import Callable
from contextlib import closing
from typing import Any
from unittest.mock import Mock

import pytest

from longform import zip_export
from manuscript.documents import read_document
from manuscript.passages import InvalidDocument
from manuscript.table import read_csv
from tests.longform.test_projects import PROJECTS, Json, create_project, parts_of, until
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.server import Served

LINES = """Key,Speaker,Dialogue,Emotion,Sex,Notes
mira_01,Mira,Who goes there?,whisper,f,=1+1
bren/02,Old Bren,Only me.,,m,door
mira_03,Mira,Come in.,,,
bren_04,Old Bren,Cold night.,,,"""


def import_table(served: Served, text: str, **fields: str) -> Json:
    with served.client() as client:
        answer = client.post(PROJECTS, files={"file": ("lines.csv", text)}, data=fields)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def update(served: Served, project: Json, text: str, apply: bool) -> Json:
    with served.client() as client:
        data = {"apply": str(apply).lower()}
        answer = client.post(f"{PROJECTS}/{project['id']}/update", files={"file": ("lines.csv", text)}, data=data)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def unzipped(served: Served, project: Json, query: str = "") -> tuple[list[str], list[dict[str, str]]]:
    """The names of the sounds in a zip, and the rows of its manifest."""
    with served.client() as client:
        answer = client.get(f"{PROJECTS}/{project['id']}/zip{query}")
    assert answer.status_code == 200, answer.text
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".wav")]
        return names, list(csv.DictReader(io.StringIO(archive.read("manifest.csv").decode())))


def assert_counted_once_it_has_arrived(served: Served, project: Json) -> None:
    """``project``: of four lines, of which a zip with the receipt "first" was sent."""
    with served.client() as client:
        at = f"{PROJECTS}/{project['id']}/zip"
        assert client.post(f"{at}/other").status_code == 404
        assert len(unzipped(served, project, "?changed=true")[0]) == 4, "sent, but nobody has said that it arrived"
        assert client.post(f"{at}/first").json()["parts"] == 4
        refused = client.get(f"{at}?changed=true")
        assert (refused.status_code, refused.json()["error"]["param"]) == (400, "changed")


def test_a_changed_line_keeps_all_names_and_is_exported_alone(steered: Callable[..., Steered]) -> None:
    served, _ = steered()
    project = import_table(served, LINES, start="true")
    until(served, project, "done")
    parts = parts_of(served, project)
    assert [part["name"] for part in parts] == ["mira_01", "bren/02", "mira_03", "bren_04"]
    assert parts[0]["columns"] == {"Notes": "=1+1"}
    with served.client() as client:
        cast = client.get(f"{PROJECTS}/{project['id']}/cast").json()["data"]
    assert {member["name"]: member["gender"] for member in cast if member["id"]} == {
        "Mira": "female",
        "Old Bren": "male",
    }
    with served.client() as client:
        listed = client.post(f"{PROJECTS}/characters", files={"file": ("lines.csv", LINES)}).json()["data"]
    assert [(one["name"], one["gender"], one["lines"]) for one in listed] == [
        ("Mira", "female", 2),
        ("Old Bren", "male", 2),
    ]
    files, rows = unzipped(served, project, "?receipt=first")
    assert_counted_once_it_has_arrived(served, project)
    assert files == ["mira_01.wav", "bren 02.wav", "mira_03.wav", "bren_04.wav"]
    assert (rows[0]["id"], rows[0]["Notes"], rows[0]["Emotion"]) == ("mira_01", "'=1+1", "whisper")

    with served.client() as client:  # an edit here, of a line of which the new table says the same
        client.patch(f"{PROJECTS}/{project['id']}/parts/{parts[2]['id']}", json={"speed": 1.5})
    lines = LINES.splitlines()
    new = "\n".join([lines[0], "new_00,Anna,Hush.,,,", lines[3], lines[1].replace("goes", "is"), lines[2]])
    plan = update(served, project, new, apply=False)
    expected = {"same": 2, "added": 1, "changed": 1, "gone": 1, "applied": False}
    assert {name: plan[name] for name in expected} == expected
    assert [(line["name"], line["change"], line["columns"]) for line in plan["lines"]] == [
        ("new_00", "added", []),
        ("mira_01", "changed", ["text"]),
        ("bren_04", "gone", []),
    ]
    assert parts_of(served, project)[0]["text"] == parts[0]["text"]  # nothing has changed yet
    assert update(served, project, new, apply=True)["applied"]
    after = parts_of(served, project)
    assert [part["name"] for part in after] == ["new_00", "mira_03", "mira_01", "bren/02"]
    assert [part["state"] for part in after] == ["new", "stale", "stale", "done"]
    assert after[1]["speed"] == 1.5
    assert update(served, project, new, apply=False)["same"] == 4

    with served.client() as client:
        client.post(f"{PROJECTS}/{project['id']}/speak", json={})
    until(served, project, "done")
    files, rows = unzipped(served, project, "?changed=true")
    assert files == ["new_00.wav", "mira_03.wav", "mira_01.wav"]
    assert [row["file"] for row in rows] == [*files, ""]
    # An exported manifest, edited in a spreadsheet, is a new version of the table too.
    with served.client() as client:
        answer = client.get(f"{PROJECTS}/{project['id']}/zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        manifest = archive.read("manifest.csv").decode().replace("Hush.", "Hush now.")
    plan = update(served, project, manifest, apply=True)
    assert [(line["name"], line["after"]) for line in plan["lines"]] == [("new_00", "Hush now.")]


def test_a_line_that_is_gone_is_put_back_with_its_takes(steered: Callable[..., Steered]) -> None:
    served, _ = steered()
    project = import_table(served, LINES, start="true")
    until(served, project, "done")
    gone = parts_of(served, project)[1]
    update(served, project, "\n".join(line for line in LINES.splitlines() if "bren/02" not in line), apply=True)
    with served.client() as client:
        assert client.post(f"{PROJECTS}/{project['id']}/parts/restore", json={"ids": [gone["id"]]}).status_code == 200
    assert parts_of(served, project)[1] == gone


def test_columns_get_the_roles_that_the_request_says(
    steered: Callable[..., Steered], monkeypatch: pytest.MonkeyPatch
) -> None:
    served, _ = steered()
    table = "what,who says,number\nHello.,Mira,caf\u00e9\nGoodbye.,Bren,cafe\u0301\n"
    with served.client() as client:
        refused = client.post(PROJECTS + "/preview", files={"file": ("t.csv", table)})
        assert refused.json()["error"]["param"] == "columns"
        assert "what, who says, number" in refused.json()["error"]["message"]
        roles = {"what": "text", "who says": "character", "number": "file"}
        data = {"columns": json.dumps(roles)}
        preview = client.post(PROJECTS + "/preview", files={"file": ("t.csv", table)}, data=data).json()
        assert {column["name"]: column["role"] for column in preview["columns"]} == roles
        assert (preview["rows"], preview["columns"][0]["sample"]) == (2, ["Hello.", "Goodbye."])
        project = client.post(PROJECTS, json={"preview": preview["id"], "start": True}).json()
    until(served, project, "done")
    assert unzipped(served, project)[0] == ["caf\u00e9.wav", "cafe\u0301 2.wav"], "which macOS takes for equal"
    lines, normalize = "".join(f"{number},Hi.,scene\n" for number in range(12)), Mock(wraps=zip_export.normalize)
    project = import_table(served, f"id,text,asset\n{lines}", start="true")
    until(served, project, "done")
    monkeypatch.setattr(zip_export, "normalize", normalize)
    names = unzipped(served, project)[0]
    assert names == ["scene.wav", *(f"scene {number}.wav" for number in range(2, 13))]
    assert normalize.call_count <= 3 * 12, "in proportion to the lines with one name"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("id,text\na,One\nA,Two\n", "the id 'A' is already that of line 2"),
        ("id,text\n" + ",".join("x" * 200) + "\n", "this row has 200 fields"),
        ("sep=,\nid,text,note,text\na,One,,Two\n", "line 2: two columns are named 'text'"),
        (",".join(f"c{n}" for n in range(200)) + "\nx\n", "at most 100"),
    ],
)
def test_bad_tables_are_refused_with_the_line(table: str, words: str) -> None:
    with pytest.raises(InvalidDocument, match=words.replace("(", r"\(")):
        read_document(table.encode(), "csv", columns={"id": "id", "text": "text"})


def test_guessed_ids_that_repeat_are_no_ids() -> None:
    document = read_document(b"id,text\n1,One\n1,Two\n", "csv")
    assert [passage.name for passage in document.passages] == ["", ""]
    assert [column.role for column in document.columns] == ["", "text"]


def test_a_direction_becomes_a_tag_once(steered: Callable[..., Steered]) -> None:
    served, _ = steered()
    rows: list[dict[str, Any]] = parts_of(served, import_table(served, "text,emotion\nHello there. Come in.,whisper\n"))
    assert rows[0]["text"].startswith("[whisper] Hello there.")
    manifest = io.StringIO()
    csv.writer(manifest).writerows([("text", "emotion"), (rows[0]["text"], "whisper")])
    assert parts_of(served, import_table(served, manifest.getvalue()))[0]["text"] == rows[0]["text"]


TABLE = """id,text,character,voice,pause,scene,direction,chapter
a,Alpha one. Alpha two.,Anna,,1,,,One
b,Beta one.,Ben,,,,,One
c,Gamma one.,Anna,,,,,Two
d,Delta one.,,,,,,Two
"""


def send(served: Served, method: str, project: Json, path: str, **body: object) -> Json:
    with served.client() as client:
        answer = client.request(method, f"{PROJECTS}/{project['id']}/{path}", json=body or None)
    assert answer.status_code in (200, 201), answer.text
    return dict(answer.json())


def texts(served: Served, project: Json) -> list[str]:
    return [part["text"] for part in parts_of(served, project)]


def speakers(served: Served, project: Json) -> dict[str, int]:
    """The numbers of the characters' lines by their names."""
    return {one["name"]: one["lines"] for one in send(served, "GET", project, "cast")["data"] if one["id"]}


def manifest_of(served: Served, project: Json) -> str:
    with served.client() as client:
        answer = client.get(f"{PROJECTS}/{project['id']}/zip?partial=true")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        return archive.read("manifest.csv").decode()


def test_ids_genders_and_rows_that_cannot_be_used_are_told() -> None:
    lines = [f"line_{number},Hi.,Anna,mujer" for number in range(20)]
    table = "\n".join(["id,text,character,gender", *lines, "x,,,"])
    document = read_csv(table.encode())
    assert document.skipped == ("Rows without text are left out: line 22.",)
    assert [one.gender for one in document.cast] == ["female"]
    with pytest.raises(InvalidDocument, match="line 7: the id 'line_4' is already that of line 6"):
        read_csv(table.replace("line_5", "line_4").encode())
    scenes = read_csv(b"id,text,character,gender\n1,Hi.,Bo,n/a\n1,Bye.,Bo,\n")
    assert [passage.name for passage in scenes.passages] == ["", ""] and not scenes.cast
    assert scenes.skipped == ("“id” is not taken for the ids of the lines, as many of them are the same.",)


def test_scenes_of_tables_and_items_end_with_any_pause(steered: Callable[..., Steered]) -> None:
    served, _ = steered()
    table = "id,text,scene,pause\na,One. And one.,1,0.5\nb,Two.,TRUE,\nc,Three.,no,\nd,Four.,1.0,\ne,Five.,,\n"

    def scenes(project: Json) -> list[tuple[bool, float | None]]:
        return [(part["scene"], part["pause"]) for part in parts_of(served, project)]

    project = import_table(served, table)
    assert scenes(project) == [(True, 0.5), (True, None), (False, None), (True, None), (False, None)]
    update(
        served, project, table.replace("Two.,TRUE,", "Two.,TRUE,0.7").replace("Three.,no,", "Three.,1,2"), apply=True
    )
    assert scenes(project) == [(True, 0.5), (True, 0.7), (True, 2), (True, None), (False, None)]
    update(served, project, table, apply=True)
    assert scenes(project) == [(True, 0.5), (True, None), (False, None), (True, None), (False, None)]
    items = [{"input": "One.", "pause": 0.5, "scene": True}, {"input": "Two."}]
    project = create_project(served, items=items, start=True)
    until(served, project, "done")
    for same in (project, import_table(served, manifest_of(served, project))):
        assert scenes(same) == [(True, 0.5), (False, None)]


def test_what_was_deleted_merged_split_or_moved_here_stays_so(steered: Callable[..., Steered]) -> None:
    served, _ = steered()
    project = import_table(served, TABLE, start="true", closing_credits="The end.")
    until(served, project, "done")
    a, b, c, d, end = (part["id"] for part in parts_of(served, project))
    send(served, "POST", project, f"parts/{a}/split", text="Alpha one. Alpha two.", at=11)
    send(served, "POST", project, f"parts/{b}/merge", following=c)
    send(served, "POST", project, "parts/move", ids=[d], position=0)
    send(served, "PATCH", project, f"parts/{b}", text="Beta one. And gamma one.")
    here = texts(served, project)
    assert here == ["Delta one.", "Alpha one.", "Alpha two.", "Beta one. And gamma one.", "The end."]
    assert update(served, project, manifest_of(served, project), apply=False)["lines"] == []
    assert (update(served, project, TABLE, apply=True)["lines"], texts(served, project)) == ([], here)
    # What the table itself changes applies to the whole row, and a row at its end comes before the closing credits.
    new = TABLE.replace("Alpha two.", "Alpha three.").replace("Gamma one.", "Gamma two.") + "e,Epsilon.,Cleo,,,,,Two\n"
    new, cast = new.replace("one.,Ben", "one.,Dora"), speakers(served, project)
    states = [part["state"] for part in parts_of(served, project)]
    applied = update(served, project, new, apply=True)
    lines, replaced = applied["lines"], applied["replaced"]
    assert [(line["name"], line["change"], line["before"]) for line in lines] == [
        ("a", "changed", "Alpha one. Alpha two."), ("b", "changed", here[3]), ("c", "added", ""), ("e", "added", ""),
    ]  # fmt: skip
    assert speakers(served, project) == cast | {"Cleo": 1, "Dora": 1, "Ben": 0}
    expected = [
        "Delta one.",
        "Epsilon.",
        "Alpha one. Alpha three.",
        "Beta one. And gamma one.",
        "Gamma two.",
        "The end.",
    ]
    assert texts(served, project) == expected
    parts = parts_of(served, project)
    assert (parts[4]["id"], len(parts[4]["takes"]), parts[-1]["id"]) == (c, 1, end)
    # Undone, all is as it was here, but for what somebody has changed since; the table then changes the same again.
    undone = send(served, "POST", project, "undo", **replaced)
    assert (undone["undone"], undone["left"], texts(served, project)) == (5, [], here)
    assert send(served, "POST", project, "undo", **replaced)["undone"] == 0, "sent again, as after a failure at its end"
    assert speakers(served, project) == cast
    assert [part["state"] for part in parts_of(served, project)] == states
    assert update(served, project, TABLE, apply=False)["lines"] == []
    applied = update(served, project, new, apply=True)
    assert (applied["lines"], texts(served, project)) == (lines, expected)
    newer = update(served, project, TABLE, apply=True)["replaced"]
    with served.client() as client:
        at = f"{PROJECTS}/{project['id']}/undo"
        assert_envelope(client.post(at, json=replaced), 404, "table")
        assert_envelope(client.post(at, json=applied["replaced"]), 412, "table")
    assert (send(served, "POST", project, "undo", **newer)["left"], texts(served, project)) == ([], expected)
    send(served, "PATCH", project, f"parts/{parts[1]['id']}", text="Epsilon!")
    undone = send(served, "POST", project, "undo", **applied["replaced"])
    assert (undone["undone"], undone["left"]) == (4, [parts[1]["id"]])
    here.insert(1, "Epsilon!")
    assert texts(served, project) == here
    assert speakers(served, project) == cast | {"Cleo": 1}


def test_undoing_updates_restores_merges_titles_and_the_order_that_a_person_made(
    steered: Callable[..., Steered],
) -> None:
    served, _ = steered()
    project = import_table(served, TABLE, start="true")
    until(served, project, "done")
    a, b, c, d = (part["id"] for part in parts_of(served, project))
    send(served, "POST", project, f"parts/{b}/merge", following=c)
    send(served, "POST", project, f"parts/{a}/merge", following=b)
    send(served, "POST", project, "parts/move", ids=[d], position=0)
    send(served, "PATCH", project, f"parts/{a}", chapter="Eins")
    here = parts_of(served, project)
    assert [part["text"] for part in here] == ["Delta one.", "Alpha one. Alpha two. Beta one. Gamma one."]
    # The same ids may be written otherwise; the latest update is undone first.
    head, *rows = TABLE.replace("One", "First").replace("Gamma one.", "Gamma two.").splitlines(keepends=True)
    database = served.app.state.studio.library.home / "library.db"
    with served.client() as client, closing(sqlite3.connect(database)) as disk:  # full once lines have come back
        full = "select raise(abort, 'database or disk is full')"
        disk.execute(f"create trigger full before insert on tables begin {full}; end")
        files = {"file": ("lines.csv", head + "".join(rows))}
        refused = client.post(f"{PROJECTS}/{project['id']}/update", files=files, data={"apply": "true"})
        assert_envelope(refused, 503)
        disk.execute("drop trigger full")
    assert parts_of(served, project) == here
    updates = [
        update(served, project, head + "".join(order).replace("b,", "B,"), apply=True)["replaced"]
        for order in (rows[::-1], rows)
    ]
    assert texts(served, project) == ["Alpha one. Alpha two.", "Beta one.", "Gamma two.", "Delta one."]
    for replaced in reversed(updates):
        assert send(served, "POST", project, "undo", **replaced)["left"] == []
    assert parts_of(served, project) == here
    send(served, "POST", project, "parts/restore", ids=[b, c])
    assert texts(served, project) == ["Delta one.", "Alpha one. Alpha two.", "Beta one.", "Gamma one."]

    project = import_table(served, TABLE)  # a line that comes back and goes again keeps its chapter in the trash
    here = parts_of(served, project)
    for renamed, typed in (("Three", ""), ("Two", ""), ("Two", "Zwei")):
        send(served, "DELETE", project, f"parts/{here[2]['id']}")
        new = TABLE.replace("Gamma one.,Anna,,,,,Two", f"Gamma two.,Anna,,,,,{renamed}")
        replaced = update(served, project, new, apply=True)["replaced"]
        assert parts_of(served, project)[2]["chapter"] == renamed
        if typed:
            send(served, "PATCH", project, f"parts/{here[2]['id']}", chapter=typed)
        send(served, "POST", project, "undo", **replaced)
        assert [part["chapter"] for part in parts_of(served, project)] == ["One", "", "Two"]
        send(served, "POST", project, "parts/restore", ids=[here[2]["id"]])
        assert [part["chapter"] for part in parts_of(served, project)] == ["One", "", typed or "Two", ""]


def test_a_new_line_that_is_restored_after_an_undo_begins_its_chapter_no_second_time(
    steered: Callable[..., Steered],
) -> None:
    served, _ = steered()
    project = import_table(served, TABLE)
    here = {part["id"] for part in parts_of(served, project)}
    new = TABLE.replace("c,Gamma", "x,Extra,Anna,,,,,Added\ny,First one.,Anna,,,,,Two\nc,Gamma")
    replaced = update(served, project, new, apply=True)["replaced"]
    added = [part["id"] for part in parts_of(served, project) if part["id"] not in here]
    send(served, "POST", project, "undo", **replaced)
    assert [part["chapter"] for part in parts_of(served, project)] == ["One", "", "Two", ""]
    send(served, "POST", project, "parts/restore", ids=added)
    assert [part["chapter"] for part in parts_of(served, project)] == ["One", "", "Added", "", "Two", ""]


def test_titles_voices_pauses_and_texts_given_here_survive_other_cells(steered: Callable[..., Steered]) -> None:
    served, _ = steered()
    project = import_table(served, TABLE, opening_credits="{title}.")
    opening, a, b, c, _ = (part["id"] for part in parts_of(served, project))
    send(served, "PATCH", project, f"parts/{c}", chapter="Zwei", text="Gamma edited.")
    send(served, "PATCH", project, f"parts/{a}", pause=5, voice="bert")
    new = TABLE.replace("two.,Anna,,1,,,", "two.,Ben,,1,1,,").replace("one.,Anna,,,,,", "one.,Anna,,,,whisper,")
    new = new.replace("\na,", "\nz,Zeta.,,,,,,One\na,") + "e,Epsilon.,,,,,,Two\n"
    before = parts_of(served, project)
    applied = update(served, project, new, apply=True)
    lines = {line["name"]: line for line in applied["lines"]}
    columns = {name: line["columns"] for name, line in lines.items()}
    assert columns == {"z": [], "a": ["character", "scene"], "c": ["direction"], "e": []}
    assert lines["a"]["cells"] == {"character": ["Anna", "Ben"], "scene": ["", "1"]}
    parts = {part["name"] or part["id"]: part for part in parts_of(served, project)}
    assert [*parts] == [opening, "z", "a", "b", "c", "d", "e"]
    assert [(part["chapter"]) for part in parts.values()][1:] == ["One", "", "", "Zwei", "", ""]
    assert (parts["a"]["voice"], parts["a"]["pause"], parts["a"]["character"]) == ("bert", 5, parts["b"]["character"])
    assert parts["c"]["text"] == "[whisper] Gamma edited."
    assert parts["b"]["id"] == b
    assert send(served, "POST", project, "undo", **applied["replaced"])["left"] == []
    assert parts_of(served, project) == before


def test_the_cast_of_unchanged_rows_is_not_added_again(steered: Callable[..., Steered]) -> None:
    served, _ = steered()
    project = import_table(served, TABLE)
    cast = {member["name"]: member["id"] for member in send(served, "GET", project, "cast")["data"] if member["id"]}
    send(served, "PATCH", project, f"cast/{cast['Anna']}", name="Annabel")
    send(served, "DELETE", project, f"cast/{cast['Ben']}")
    update(served, project, TABLE + "e,Epsilon.,Anna,,,,,Two\n", apply=True)
    assert speakers(served, project) == {"Annabel": 3}
    with served.client() as client:
        items = {"items": [{"kind": "character", "id": cast["Ben"]}]}
        assert client.post("/v1/trash/restore", json=items).status_code == 200


def test_table_with_an_id_twice_is_refused_with_the_id(steered: Callable[..., Steered]) -> None:
    served, _ = steered()
    project = import_table(served, TABLE)
    with served.client() as client:
        files = {"file": ("lines.csv", TABLE + "A,Again.,,,,,,\n")}
        refused = client.post(f"{PROJECTS}/{project['id']}/update", files=files)
    assert refused.status_code == 400 and "the id 'A' is already that of line 2" in refused.json()["error"]["message"]


def test_a_chapter_whose_beginning_is_deleted_moves_with_the_line_that_begins_it(
    steered: Callable[..., Steered],
) -> None:
    served, _ = steered()
    project = import_table(served, TABLE)
    a, b, _, _ = (part["id"] for part in parts_of(served, project))
    send(served, "DELETE", project, f"parts/{a}")
    head, *rows = TABLE.splitlines(keepends=True)
    update(served, project, "".join([head, *rows[2:], rows[0], rows[1]]), apply=True)
    before = parts_of(served, project)
    assert [(part["text"], part["chapter"]) for part in before][-1] == ("Beta one.", "One")
    send(served, "DELETE", project, f"parts/{b}")
    send(served, "POST", project, "parts/restore", ids=[b])
    assert parts_of(served, project) == before

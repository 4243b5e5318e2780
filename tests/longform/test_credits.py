"""Opening and closing credits: parts like all others, written from templates."""

from __future__ import annotations

import io
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import av
import pytest

from tests.longform.test_arrangement import post
from tests.longform.test_files import fetch
from tests.longform.test_finished import settings
from tests.longform.test_projects import PROJECTS, Json, change, create_project, parts_of, post_verb, until
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.server import Served

Steer = Callable[..., Steered]
OPENING, CLOSING = "{title}, by {author}. Read by {narrator}.", "The end. © {year} {author}."


def texts(served: Served, project: Json) -> list[tuple[str, str]]:
    return [(part["chapter"], part["text"]) for part in parts_of(served, project)]


def test_credits_are_parts_and_follow_the_project_metadata(steered: Steer) -> None:
    served, _ = steered()
    about = {"author": "Ann", "opening_credits": OPENING, "closing_credits": CLOSING}
    project = create_project(
        served, items=[{"input": "Hello."}, {"input": "Bye."}], title="A Book", start=True, **about
    )
    until(served, project, "done", done=4)
    assert texts(served, project) == [
        ("Opening credits", "A Book, by Ann."),
        ("A Book", "Hello."),
        ("", "Bye."),
        ("Closing credits", "The end."),
    ]
    settings(served, project, narrator="Zoë", year=2026)
    opening, *_, closing = parts_of(served, project)
    assert (opening["text"], opening["state"]) == ("A Book, by Ann. Read by Zoë.", "stale")
    assert (closing["text"], closing["state"]) == ("The end. © 2026 Ann.", "stale")
    assert "credits" not in opening, "what it was given is for the studio alone"
    settings(served, project, title="Another")
    assert texts(served, project)[0][1] == "Another, by Ann. Read by Zoë."
    assert len(parts_of(served, project)) == 4
    post_verb(served, project, "speak")
    until(served, project, "done")
    with av.open(io.BytesIO(fetch(served, project, "audio?format=m4b")), "r") as file:
        names = [chapter["metadata"]["title"] for chapter in file.chapters()]
        assert names == ["Opening credits", "A Book", "Closing credits"]
        assert (file.metadata["composer"], file.metadata["date"]) == ("Zoë", "2026")
    genres = []
    for standard in ("none", "podcast"):
        settings(served, project, loudness=standard)
        with av.open(io.BytesIO(fetch(served, project, "audio?format=mp3")), "r") as file:
            assert (file.metadata["composer"], file.metadata["date"]) == ("Zoë", "2026")
            genres.append(file.metadata["genre"])
    assert genres == ["Audiobook", "Podcast"]


def test_a_last_part_that_comes_back_stands_before_the_closing_credits(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "Hello."}, {"input": "Bye."}])
    last = [parts_of(served, project)[1]["id"]]
    for template, expected in (("The end.", [("Closing credits", "The end.")]), ("", [])):
        post(served, project, "parts/delete", ids=last).raise_for_status()
        settings(served, project, closing_credits=template)
        post(served, project, "parts/restore", ids=last).raise_for_status()
        assert texts(served, project) == [("", "Hello."), ("", "Bye."), *expected]


def test_credits_change_nothing_that_somebody_has_written(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "Hallo.", "chapter": "Eins"}], title="Buch", language="de")
    settings(served, project, opening_credits="{title}.")
    assert texts(served, project) == [("Vorspann", "Buch."), ("Eins", "Hallo.")]
    change(served, project, parts_of(served, project)[0], text="By hand.").raise_for_status()
    settings(served, project, pause=2, title="Das Buch", opening_credits="Neu: {title}.", closing_credits="Ende.")
    settings(served, project, title="Buch")
    assert texts(served, project) == [("Vorspann", "By hand."), ("Eins", "Hallo."), ("Abspann", "Ende.")]
    settings(served, project, opening_credits="")
    assert texts(served, project) == [("Eins", "Hallo."), ("Abspann", "Ende.")]
    with served.client() as client:
        closing = parts_of(served, project)[1]
        client.delete(f"{PROJECTS}/{project['id']}/parts/{closing['id']}").raise_for_status()
        client.delete("/v1/trash").raise_for_status()
    settings(served, project, opening_credits="Again: {title}.", author="Eva")  # what somebody deleted stays so
    assert texts(served, project) == [("Vorspann", "Again: Buch."), ("Eins", "Hallo.")]
    settings(served, project, closing_credits="Aus.")
    opening, body, closing = parts_of(served, project)
    assert closing["text"] == "Aus."
    with served.client() as client:  # nor is what was merged into credits overwritten or deleted with them
        merge = f"{PROJECTS}/{project['id']}/parts/{opening['id']}/merge"
        client.post(merge, json={"following": body["id"]}).raise_for_status()
    settings(served, project, opening_credits="{title} by {author}.")
    assert parts_of(served, project)[0]["text"].split() == ["Buch", "by", "Eva.", "Hallo."]
    settings(served, project, opening_credits="")
    assert [part["text"] for part in parts_of(served, project)] == ["Hallo.", "Aus."]

    settings(served, project, opening_credits="{title} by {author}.")
    opening, body, _ = parts_of(served, project)
    with served.client() as client:  # nor once the part has missed a change in the trash
        post(served, project, f"parts/{opening['id']}/merge", following=body["id"]).raise_for_status()
        client.delete(f"{PROJECTS}/{project['id']}/parts/{opening['id']}").raise_for_status()
        settings(served, project, title="Band 1")
        post(served, project, "parts/restore", ids=[opening["id"]]).raise_for_status()
        settings(served, project, title="Band 2")
    assert parts_of(served, project)[0]["text"].split() == ["Band", "2", "by", "Eva.", "Hallo."]
    settings(served, project, opening_credits="")

    settings(served, project, opening_credits="Von {author}.", closing_credits="Von {narrator}.", narrator="Zoë")
    opening, *_ = parts_of(served, project)
    settings(served, project, author="", narrator="")  # which deletes both
    assert [part["text"] for part in parts_of(served, project)] == ["Hallo."]
    settings(served, project, author="Ida", narrator="Tom")
    assert [part["text"] for part in parts_of(served, project)] == ["Von Ida.", "Hallo.", "Von Tom."]
    assert parts_of(served, project)[0]["id"] == opening["id"]
    with served.client() as client:
        client.delete(f"{PROJECTS}/{project['id']}/parts/{opening['id']}").raise_for_status()
    settings(served, project, author="")
    settings(served, project, author="Eva")
    assert [part["text"] for part in parts_of(served, project)] == ["Hallo.", "Von Tom."]
    settings(served, project, opening_credits="Autorin: {author}.")
    assert [part["text"] for part in parts_of(served, project)] == ["Autorin: Eva.", "Hallo.", "Von Tom."]


def test_undo_brings_back_credits_typed_by_hand(steered: Steer) -> None:
    served, _ = steered()
    about = {"title": "A", "author": "Ann", "narrator": "Zoë", "opening_credits": OPENING}
    project = create_project(served, items=[{"input": "Hello."}], **about)
    at = f"{PROJECTS}/{project['id']}"
    [first, _] = parts_of(served, project)
    typed = "A, by Ann. By hand. Read by Zoë."
    change(served, project, first, text=typed).raise_for_status()
    post_verb(served, project, "speak")
    until(served, project, "done")
    before = parts_of(served, project)
    with served.client() as client:

        def changed(**changes: object) -> Json:
            replaced: Json = client.patch(at, json=changes).json()["replaced"]
            return replaced

        def left_by_undo(replaced: Json) -> list[str]:
            left: list[str] = client.post(f"{at}/undo", json=replaced).json()["left"]
            return left

        renamed = changed(title="B")
        assert left_by_undo(renamed) == [] and parts_of(served, project) == before

        cleared = changed(opening_credits="", author="Eve")
        assert texts(served, project) == [("A", "Hello.")]
        assert left_by_undo(cleared) == [] and parts_of(served, project) == before

        change(served, project, first, text="A, by Ann. Read by Zoë.").raise_for_status()
        renamed = changed(title="B")
        changed(author="Eve")  # the template says both
        assert left_by_undo(renamed) == [] and texts(served, project)[0][1] == "A, by Eve. Read by Zoë."
        renamed = changed(title="B")
        change(served, project, first, text="By hand, since.").raise_for_status()
        assert left_by_undo(renamed) == [first["id"]] and texts(served, project)[0][1] == "By hand, since."

        post(served, project, f"parts/{first['id']}/split", text="By hand, since.", at=8).raise_for_status()
        cleared = changed(opening_credits="")
        changed(opening_credits="{title}.")
        assert left_by_undo(cleared) == ["opening_credits"]  # and no second credits
        assert [text for _, text in texts(served, project)] == ["A.", "since.", "Hello."]

        changed(opening_credits="{title}. By {author}.")
        added = parts_of(served, project)[0]
        post(served, project, f"parts/{added['id']}/split", text=added["text"], at=3).raise_for_status()
        halves = parts_of(served, project)
        cleared = changed(opening_credits="")
        assert [part["text"] for part in parts_of(served, project)] == ["since.", "Hello."]
        assert left_by_undo(cleared) == [] and parts_of(served, project) == halves
        added = changed(closing_credits="The end.")
        assert left_by_undo(added) == [] and parts_of(served, project) == halves


def test_undone_credits_leave_the_parts_that_were_there_before(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "Hello."}], title="A")
    at = f"{PROJECTS}/{project['id']}"
    with served.client() as client:

        def changed(**changes: object) -> Json:
            replaced: Json = client.patch(at, json=changes).json()["replaced"]
            return replaced

        def undo(replaced: Json) -> list[tuple[str, str]]:
            assert client.post(f"{at}/undo", json=replaced).json()["left"] == []
            return texts(served, project)

        added = changed(opening_credits="{title}.")
        assert texts(served, project) == [("Opening credits", "A."), ("A", "Hello.")]
        assert undo(added) == [("", "Hello.")]

        changed(opening_credits="{title}.")
        [first, _] = parts_of(served, project)
        change(served, project, first, text="By hand.").raise_for_status()
        before = parts_of(served, project)
        cleared, other = changed(opening_credits=""), changed(opening_credits="Other.")
        assert undo(other) == [("A", "Hello.")]
        undo(cleared)
        assert parts_of(served, project) == before, "not credits of their own"

        client.delete(f"{at}/parts/{first['id']}").raise_for_status()
        for template in ("Other.", "By {author}."):  # the second one has no text
            assert undo(changed(opening_credits=template)) == [("A", "Hello.")], "somebody had deleted the credits"

        changed(opening_credits="{title}. {author}.")
        as_before = texts(served, project)
        emptied, named = changed(opening_credits="By {author}."), changed(author="Jo")  # the same part comes back
        assert texts(served, project) == [("Opening credits", "By Jo."), ("A", "Hello.")]
        assert undo(named) == [("A", "Hello.")] and undo(emptied) == as_before


def test_credits_that_were_split_say_nothing_twice(steered: Steer) -> None:
    served, _ = steered()
    about = {"author": "Ann", "narrator": "Zoë", "opening_credits": OPENING}
    project = create_project(served, items=[{"input": "Hello."}], title="A Book", **about)

    def spoken() -> list[str]:
        return [part["text"] for part in parts_of(served, project)]

    def split() -> None:
        first = parts_of(served, project)[0]
        at = first["text"].index("Read")
        post(served, project, f"parts/{first['id']}/split", text=first["text"], at=at).raise_for_status()

    split()
    assert spoken() == ["A Book, by Ann.", "Read by Zoë.", "Hello."]
    settings(served, project, author="Eva")
    assert spoken() == ["A Book, by Eva.", "Read by Zoë.", "Hello."]
    settings(served, project, narrator="Tom")
    assert spoken() == ["A Book, by Eva. Read by Tom.", "Hello."]
    split()
    settings(served, project, opening_credits="")
    assert spoken() == ["Hello."]


@pytest.mark.parametrize("template", ["{titel}.", "{", "By {author", "{title}}", "x" * 1001])
def test_invalid_template_is_refused(untouched: Steered, template: str) -> None:
    served, _ = untouched
    project = create_project(served, items=[{"input": "Hello."}])
    with served.client() as client:
        url = f"{PROJECTS}/{project['id']}"
        assert_envelope(client.patch(url, json={"opening_credits": template}), 400, "opening_credits")
        assert_envelope(client.patch(url, json={"year": 0}), 400, "year")
    assert texts(served, project) == [("", "Hello.")]


def test_too_long_credits_are_refused_and_nothing_changes(steered: Steer) -> None:
    served, _ = steered()
    long, items = {"title": "x" * 200, "opening_credits": "{title}. " * 30}, [{"input": "Hello."}]
    with served.client() as client:
        assert_envelope(client.post(PROJECTS, json={"items": items} | long), 400, "opening_credits")
        assert client.get(PROJECTS).json()["data"] == []
    project = create_project(served, items=items, title="A Book", opening_credits=long["opening_credits"])
    with served.client() as client:
        url = f"{PROJECTS}/{project['id']}"
        assert_envelope(client.patch(url, json={"title": long["title"]}), 400, "opening_credits")
        assert client.get(url).json()["title"] == "A Book"
        [opening, body] = parts_of(served, project)
        change(served, project, body, text="x" * 3600).raise_for_status()
        post(served, project, f"parts/{opening['id']}/merge", following=body["id"]).raise_for_status()
        assert_envelope(client.patch(url, json={"title": "x" * 100}), 400, "opening_credits")
        assert client.get(url).json()["title"] == "A Book"


def test_credits_that_a_full_disk_left_out_come_with_the_next_change(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "Hello."}], title="A Book", author="Ann")
    url, both = f"{PROJECTS}/{project['id']}", {"opening_credits": "{title}.", "closing_credits": "The end."}
    database = served.app.state.studio.library.home / "library.db"

    def half_done(event: str, **changes: object) -> None:
        refusal = "begin select raise(abort, 'database or disk is full'); end"
        with served.client() as client, closing(sqlite3.connect(database)) as disk:
            disk.execute(f"create trigger full before {event} {refusal}")
            assert_envelope(client.patch(url, json=changes), 503)
            disk.execute("drop trigger full")

    half_done("insert on all_parts when new.text = 'The end.'", **both)
    assert [text for _, text in texts(served, project)] == ["A Book.", "Hello."]
    settings(served, project, **both)
    assert [text for _, text in texts(served, project)] == ["A Book.", "Hello.", "The end."]
    half_done("update of text on all_parts", title="Another", opening_credits="{title}, by {author}.")
    undone = settings(served, project, speed=1.1)["replaced"]
    assert [text for _, text in texts(served, project)] == ["Another, by Ann.", "Hello.", "The end."]
    renamed = settings(served, project, title="Third")["replaced"]
    opening = parts_of(served, project)[0]
    for replaced in (renamed, undone):
        post(served, project, "undo", **replaced).raise_for_status()
    change(served, project, opening, text="Third, by Ann.").raise_for_status()  # by hand
    settings(served, project, speed=1.2)
    assert texts(served, project)[0][1] == "Third, by Ann."


def test_concurrent_settings_changes_are_all_kept(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(
        served, items=[{"input": "Hello."}], title="A Book", opening_credits="{title}, {author}, {narrator}, {year}."
    )
    changes = {"author": "Ann", "narrator": "Zoë", "year": 2026, "bitrate": 192, "loudness": "acx", "language": "en"}
    with ThreadPoolExecutor(len(changes)) as pool:
        list(pool.map(lambda name: settings(served, project, **{name: changes[name]}), changes))
    updated = settings(served, project)
    assert {name: updated["settings"][name] for name in changes} == changes
    assert texts(served, project)[0][1] == "A Book, Ann, Zoë, 2026."

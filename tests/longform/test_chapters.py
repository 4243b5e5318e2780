"""The chapters of a project over HTTP: summarised, generated alone, renamed."""

from __future__ import annotations

import pytest

from tests.longform.test_projects import PROJECTS, Json, Steer, change, create_project, parts_of, post_verb, until
from tests.studio.answers import assert_envelope
from tests.studio.server import Served

CHAPTERS = [
    {"input": "Before it all."},
    {"input": "One.", "chapter": "One"},
    {"input": "Two words\nand three.", "voice": "nobody"},
    {"input": "Two.", "chapter": "Two"},
]


def outline(served: Served, project: Json) -> list[Json]:
    with served.client() as client:
        return client.get(f"{PROJECTS}/{project['id']}/outline").json()["data"]


def test_outline_summarises_chapters_and_one_can_be_generated_alone(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=CHAPTERS)
    before, one, two = outline(served, project)
    assert [(chapter["title"], chapter["position"], chapter["parts"]["total"]) for chapter in (before, one, two)] == [
        ("", 0, 1),
        ("One", 1, 2),
        ("Two", 3, 1),
    ]
    assert (one["words"], one["characters"], one["parts"]["new"], one["seconds"]) == (5, 24, 2, 0)
    assert one["expected_s"] == pytest.approx(24 / 16, abs=0.1)

    post_verb(served, project, "speak", chapter=one["id"])
    until(served, project, "incomplete", done=1, failed=1)
    before, one, two = outline(served, project)
    assert (before["parts"]["new"], two["parts"]["new"], one["parts"]["done"], one["parts"]["failed"]) == (1, 1, 1, 1)
    assert one["seconds"] > 0
    assert one["expected_s"] == pytest.approx(one["seconds"] + 20 / 16, abs=0.2)

    parts = parts_of(served, project)
    with served.client() as client:
        at = f"{PROJECTS}/{project['id']}"
        queries: list[tuple[Json, list[Json]]] = [
            ({}, parts),
            ({"offset": 1, "limit": 2}, parts[1:3]),
            ({"state": "failed"}, [parts[2]]),
            ({"audio": False}, [parts[0], parts[2], parts[3]]),
        ]
        for query, wanted in queries:
            listed = client.get(f"{at}/parts/ids", params=query).json()["data"]
            assert listed == [part["id"] for part in wanted]
        silent = client.get(f"{at}/parts", params={"audio": False, "limit": 2}).json()
        assert (silent["total"], silent["has_more"]) == (3, True)
        assert [part["id"] for part in silent["data"]] == [parts[0]["id"], parts[2]["id"]]
        matches = client.post(f"{at}/replace", json={"find": "wo", "dry_run": True}).json()
        assert (matches["count"], matches["positions"]) == (3, [2, 3])
        within: dict[str, object] = {"chapter": parts[2]["id"]}
        both: dict[str, object] = {"chapter": one["id"], "parts": [parts[0]["id"]]}
        for body, status in ((within, 404), (both, 400)):
            assert_envelope(client.post(f"{at}/speak", json=body), status, "chapter")
        assert client.get(f"{PROJECTS}/proj_gone/outline").status_code == 404


def test_a_chapter_is_renamed_with_its_heading(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(
        served, input="# 1\n\n## The End\n\nIt was late.\n\n# 2\n\nIt was early.", kind="md", start=True
    )
    until(served, project, "done")
    heading, text, *_ = before = parts_of(served, project)

    renamed = change(served, project, heading, chapter=" The  Beginning ").json()
    assert (renamed["chapter"], renamed["text"], renamed["state"]) == ("The Beginning", "The Beginning", "stale")
    assert [chapter["title"] for chapter in outline(served, project)] == ["The Beginning", "2"]
    assert parts_of(served, project)[1:] == before[1:]
    with served.client() as client:
        client.patch(f"{PROJECTS}/{project['id']}", json={"read_titles": False}).raise_for_status()
        timeline = client.get(f"{PROJECTS}/{project['id']}/timeline").json()["parts"]
    assert (timeline[0]["part"], timeline[0]["chapter"]) == (text["id"], "The Beginning"), "the heading is left out"
    change(served, project, heading, chapter=heading["chapter"], text=heading["text"]).raise_for_status()
    assert parts_of(served, project) == before, "undone, with its take"

    for part, title, message in (
        (heading, " ", "needs a title"),
        (heading, "a" * 201, "200"),
        (heading, "a\1", "control characters"),
        (text, "New", "no chapter begins"),
    ):
        answer = change(served, project, part, chapter=title)
        assert_envelope(answer, 400, "chapter")
        assert message in answer.text
    assert parts_of(served, project) == before


def test_chapter_title_is_renamed_alone_if_its_first_part_is_prose(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "Before it all."}, {"input": "It was late.", "chapter": "One"}])
    parts = parts_of(served, project)
    for number, title in ((0, "Preface"), (1, "Un")):
        change(served, project, parts[number], chapter=title)
        parts[number]["chapter"] = title
    assert parts_of(served, project) == parts


def test_a_title_that_somebody_else_has_given_a_chapter_is_not_overwritten(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=CHAPTERS)
    part = parts_of(served, project)[0]
    for before, title in (("", "One"), ("", "One"), ("One", "Two")):
        assert change(served, project, part, chapter=title, chapter_before=before).json()["chapter"] == title
    late = change(served, project, part, chapter="Three", pause=3, chapter_before="One")
    assert_envelope(late, 412, "chapter")
    assert 'it is now "Two"' in late.json()["error"]["message"]
    assert parts_of(served, project)[0]["pause"] is None


def test_a_chapter_renamed_while_its_first_part_is_deleted_stays_one_chapter(steered: Steer) -> None:
    served, _ = steered()
    items = [{"input": f"Word {n}.", "chapter": "One" if n < 2 else "Two"} for n in range(4)]
    project = create_project(served, items=items)
    third = parts_of(served, project)[2]
    with served.client() as client:
        client.delete(f"{PROJECTS}/{project['id']}/parts/{third['id']}").raise_for_status()
    change(served, project, parts_of(served, project)[2], chapter="Zwei").raise_for_status()
    post_verb(served, project, "parts/restore", ids=[third["id"]])
    assert [part["chapter"] for part in parts_of(served, project)] == ["One", "", "Zwei", ""]


def test_a_restored_part_gets_no_chapter_of_deleted_credits(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "One."}, {"input": "Two."}])
    before = parts_of(served, project)
    at = f"{PROJECTS}/{project['id']}"
    with served.client() as client:
        client.delete(f"{at}/parts/{before[0]['id']}").raise_for_status()
        replaced = client.patch(at, json={"opening_credits": "Hello."}).json()["replaced"]
        client.post(f"{at}/undo", json=replaced).raise_for_status()
        client.post(f"{at}/parts/restore", json={"ids": [before[0]["id"]]}).raise_for_status()
    assert parts_of(served, project) == before

"""A document is read, shown and imported in part, without being sent or read twice."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from studio.projects import import_previews
from studio.projects.documents import Document, Passage
from studio.projects.documents.matter import sections_of
from studio.projects.import_previews import MAX_PER_CALLER, ImportPreviews
from tests.studio.answers import assert_envelope
from tests.studio.documents import epub, page, png
from tests.studio.projects.test_projects import PROJECTS, Steer, parts_of

BOOK = epub(
    {
        "a.xhtml": page("<h1>Dedication</h1><p>For Ann.</p>"),
        "b.xhtml": page("<h1>Chapter 1</h1><p>" + "A dog barked. " * 40 + "</p>"),
        "c.xhtml": page("<h1>Chapter 2</h1><p>It was late.</p><aside epub:type='footnote'><p>A note.</p></aside>"),
        "d.xhtml": page("<h1>About the Author</h1><p>She lives by the sea.</p>"),
    },
    "A Book",
    author=("Ann",),
    language="en",
    cover=png(),
)
FILE = {"file": ("book.epub", BOOK, "application/epub+zip")}


def previewed(client: httpx.Client, **fields: str) -> dict[str, Any]:
    answer = client.post(f"{PROJECTS}/preview", files=FILE, data=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_book_is_shown_by_chapters_and_imported_in_part(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        preview = previewed(client)
        assert (preview["title"], preview["author"], preview["language"]) == ("A Book", "Ann", "en")
        assert client.get(f"{PROJECTS}/previews/{preview['id']}/cover").content == png()
        shown = [(each["title"], each["matter"], each["included"]) for each in preview["chapters"]]
        assert shown == [
            ("Dedication", "front", False),
            ("Chapter 1", "body", True),
            ("Chapter 2", "body", True),
            ("About the Author", "back", False),
        ]
        assert preview["chapters"][1]["words"] == 122
        assert preview["chapters"][1]["expected_s"] == pytest.approx(preview["chapters"][1]["characters"] / 16, abs=0.1)
        assert client.get(PROJECTS).json()["data"] == []

        body = {
            "preview": preview["id"],
            "chapters": [2, 3],
            "title": "Mine",
            "with_cover": False,
            "split_by": "sentence",
        }
        project = client.post(PROJECTS, json=body).json()
        assert (project["title"], project["settings"]["author"], project["cover"]) == ("Mine", "Ann", None)
        texts = [part["text"] for part in parts_of(served, project)]
        assert texts == ["Chapter 2", "It was late.", "About the Author", "She lives by the sea."]

        noted = previewed(client, notes="true")
        assert noted["notes"] and noted["chapters"][2]["words"] == preview["chapters"][2]["words"] + 2
        whole = client.post(PROJECTS, files=FILE, data={"chapters": "0,2", "with_cover": "false"}).json()
        assert (whole["parts"]["total"], whole["cover"]) == (4, None)


def test_what_cannot_be_imported_is_refused_by_name(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        preview = previewed(client)["id"]
        refused: list[tuple[dict[str, Any], int, str]] = [
            ({"preview": "prev_gone"}, 404, "preview"),
            ({"preview": preview, "chapters": [9]}, 400, "chapters"),
            ({"preview": preview, "input": "Both."}, 400, "input"),
        ]
        for body, status, param in refused:
            assert_envelope(client.post(PROJECTS, json=body), status, param)
        both = client.post(PROJECTS, files=FILE, data={"preview": preview})
        assert_envelope(both, 400, "preview")
        bad = client.post(f"{PROJECTS}/preview", files={"file": ("x.epub", b"no book", "application/epub+zip")})
        assert_envelope(bad, 400, "file")


def test_previews_are_few_and_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    document = Document((Passage("Hello."),), prose=True)
    sections = sections_of(document)
    previews = ImportPreviews()
    theirs = previews.keep("bob", document, sections, "txt", "", False)
    mine = [previews.keep("ann", document, sections, "txt", "", False) for _ in range(MAX_PER_CALLER + 1)]

    def is_kept(preview_id: str, caller: str) -> bool:
        try:
            return previews.get(preview_id, caller) is not None
        except import_previews.NotFound:
            return False

    assert [is_kept(each.id, "ann") for each in mine] == [False] + MAX_PER_CALLER * [True]
    assert is_kept(theirs.id, "bob") and not is_kept(theirs.id, "ann")
    monkeypatch.setattr(import_previews.time, "time", lambda: theirs.expires + 1)
    assert not is_kept(theirs.id, "bob")

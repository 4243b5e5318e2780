"""Books from the preview to the exported files: chapters selected before the import, correct chapters of odd books, and
no marks in sentences."""

from __future__ import annotations

import asyncio
import io
import itertools
import pickle
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from engine import EngineConfig
from longform import import_previews
from longform.import_previews import MAX_PER_CALLER, ImportPreviews
from manuscript.documents import Document, Passage
from manuscript.parts import sections_of
from studio import work as work_queue
from studio.errors import TooManyRequests
from studio.settings import Settings
from studio.speech import script_stream
from tests.longform.odd_books.annotated_epubs import ANNOTATED_EPUBS, endnotes_of_epub_3
from tests.longform.odd_books.epubs import EPUBS
from tests.longform.odd_books.odd_book import OddBook
from tests.longform.odd_books.pdfs import PDFS
from tests.longform.odd_books.texts import TEXTS
from tests.longform.odd_books.word_documents import WORD_DOCUMENTS, footnotes, no_title
from tests.longform.test_projects import PROJECTS, Steer, parts_of, until
from tests.studio.answers import assert_envelope
from tests.studio.documents import epub, page, png
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve

KINDS = EPUBS, ANNOTATED_EPUBS, WORD_DOCUMENTS, TEXTS, PDFS
BOOKS = tuple(itertools.chain(*KINDS))


@pytest.fixture(scope="module")
def served(voices_folder: Path) -> Iterator[Served]:
    """The engine generates one frame per word, because no test depends on the audio."""

    def start(config: EngineConfig, progress: object) -> FakeEngine:
        engine = FakeEngine(config)
        engine.frames_a_word = 1
        return engine

    settings = Settings(model="test/model", voices=str(voices_folder))
    with pytest.MonkeyPatch.context() as patch, serve(settings, start) as served:
        patch.setattr(script_stream, "LETTERS_A_SECOND", 1000.0)
        yield served


async def read_in_thread(
    job: object, memory: int, allowed: tuple[type, ...], function: Callable[..., Any], *values: object, threads: object
) -> Any:
    """In place of `in_child`, whose processes take longer to start than to read a book."""
    answer = await asyncio.to_thread(lambda: pickle.dumps(function(*values)))
    return work_queue._Unpickler(answer, allowed).load()


@pytest.mark.parametrize("build", BOOKS, ids=lambda build: f"{build.__module__.rpartition('.')[2]}-{build.__name__}")
def test_odd_book_is_imported_with_its_chapters(
    served: Served, build: Callable[[], OddBook], monkeypatch: pytest.MonkeyPatch
) -> None:
    book = build()
    if build not in [kind[0] for kind in KINDS]:
        monkeypatch.setattr(work_queue, "in_child", read_in_thread)
    with served.client() as client:
        answer = client.post(
            PROJECTS, files={"file": (book.file_name, book.data)}, data={"start": "true"} | (book.fields or {})
        )
        assert answer.status_code == 201, answer.text
        project = answer.json()
        parts = client.get(f"{PROJECTS}/{project['id']}/parts", params={"limit": 200}).json()["data"]
        assert tuple(part["chapter"] for part in parts if part["chapter"]) == book.chapters
        text = "\n".join(part["text"] for part in parts)
        at = 0
        for words in book.texts:
            assert words in text[at:], text
            at = text.index(words, at) + len(words)
        assert len(project["skipped"]) == book.skipped, project["skipped"]
        sentences = " ".join(project["skipped"])
        for reason in book.reasons:
            assert reason in sentences, sentences
            sentences = sentences.partition(reason)[2]
        assert project["title"] == (book.title or project["title"])
        read = client.post("/v1/audio/speech/reading", json={"input": text, "voice": "anna"})
        assert read.status_code == 200, read.text
        for mark in book.absent:
            assert mark not in text and mark not in read.json()["text"]
        until(served, project, "done")
        exported = client.get(f"{PROJECTS}/{project['id']}/chapters", params={"format": "wav"})
    with zipfile.ZipFile(io.BytesIO(exported.content)) as files:
        assert len(files.namelist()) == max(1, len(book.chapters))


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


def create_preview(client: httpx.Client, **fields: str) -> dict[str, Any]:
    answer = client.post(f"{PROJECTS}/preview", files=FILE, data=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_preview_lists_chapters_and_selected_ones_are_imported(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        preview = create_preview(client)
        assert (preview["title"], preview["author"], preview["language"]) == ("A Book", "Ann", "en")
        assert client.get(f"{PROJECTS}/previews/{preview['id']}/cover").content == png()
        shown = [(chapter["title"], chapter["matter"], chapter["included"]) for chapter in preview["chapters"]]
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

        noted = create_preview(client, notes="true")
        assert noted["notes"] and noted["chapters"][2]["words"] == preview["chapters"][2]["words"] + 2
        whole = client.post(PROJECTS, files=FILE, data={"chapters": "0,2", "with_cover": "false"}).json()
        assert (whole["parts"]["total"], whole["cover"]) == (4, None)


def test_notes_are_counted_in_the_preview_and_included_on_request(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:

        def preview_of(book: OddBook, notes: str) -> dict[str, Any]:
            answer = client.post(
                f"{PROJECTS}/preview", files={"file": (book.file_name, book.data)}, data={"notes": notes}
            )
            return answer.json()

        for book, count in ((endnotes_of_epub_3(), 2), (footnotes(), 3), (no_title(), 0)):
            assert preview_of(book, "false")["notes_left_out"] == count
        chapters = preview_of(endnotes_of_epub_3(), "true")["chapters"]
        assert [(chapter["title"], chapter["included"]) for chapter in chapters] == [("One", True), ("Notes", True)]


def test_invalid_imports_are_refused_by_name(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        preview = create_preview(client)["id"]
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


def test_previews_are_limited_per_caller_and_expire(monkeypatch: pytest.MonkeyPatch) -> None:
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

    assert [is_kept(document.id, "ann") for document in mine] == [False] + MAX_PER_CALLER * [True]
    assert is_kept(theirs.id, "bob") and not is_kept(theirs.id, "ann")
    later = theirs.expires + 1
    monkeypatch.setattr(time, "time", lambda: later)  # the clock has jumped, which may be an error
    assert is_kept(theirs.id, "bob")
    monkeypatch.setattr(import_previews, "now", lambda: later)
    assert not is_kept(theirs.id, "bob")


def test_many_others_push_out_no_short_document_and_the_longest_go_first() -> None:
    previews = ImportPreviews()

    def keep(caller: str, characters: int) -> str:
        document = Document((Passage("x" * characters),), prose=True)
        return previews.keep(caller, document, sections_of(document), "txt", "", False).id

    mine = keep("ann", 10_000)
    for number in range(100):
        keep(f"address {number}", 1_000)
    long_ones = [keep(f"reader {number}", import_previews.MAX_KEPT_CHARACTERS // 4) for number in range(6)]
    assert previews.get(mine, "ann").document
    with pytest.raises(import_previews.NotFound):
        previews.get(long_ones[0], "reader 0")
    assert previews.get(long_ones[-1], "reader 5")
    with pytest.raises(TooManyRequests):
        keep("eve", import_previews.MAX_KEPT_CHARACTERS)
    assert previews.get(mine, "ann").document

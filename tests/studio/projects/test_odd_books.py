"""Odd books from the import to the finished files: the right chapters, and no marks in sentences."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from studio.settings import Settings
from tests.studio.fake_engine import FakeEngine
from tests.studio.odd_books.annotated_epubs import ANNOTATED_EPUBS
from tests.studio.odd_books.epubs import EPUBS
from tests.studio.odd_books.odd_book import OddBook
from tests.studio.odd_books.pdfs import PDFS
from tests.studio.odd_books.texts import TEXTS
from tests.studio.odd_books.word_documents import WORD_DOCUMENTS
from tests.studio.projects.test_projects import PROJECTS, until
from tests.studio.server import Served, serve

BOOKS = (*EPUBS, *ANNOTATED_EPUBS, *WORD_DOCUMENTS, *TEXTS, *PDFS)


@pytest.fixture(scope="module")
def served(voices_folder: Path) -> Iterator[Served]:
    settings = Settings(model="test/model", voices=str(voices_folder))
    with serve(settings, FakeEngine.start) as served:
        yield served


@pytest.mark.parametrize("build", BOOKS, ids=lambda build: f"{build.__module__.rpartition('.')[2]}-{build.__name__}")
def test_an_odd_book_becomes_the_chapters_that_it_has(served: Served, build: Callable[[], OddBook]) -> None:
    book = build()
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

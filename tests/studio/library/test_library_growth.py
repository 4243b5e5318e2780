"""Cost of a library of twice the size: at most three times the work, and none where it is not read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from longform.library.project_records import NewPart, Project, ProjectSettings
from longform.library.project_repository import ProjectLibrary
from manuscript.passages import MAX_PART_TEXT
from studio.library import Library, TakeFilter, VoiceFields
from studio.library.records import GLOBAL, DictionaryScope, Pronunciation
from studio.library.schema import Database
from studio.library.store import Store
from studio.library.take import NewTake, Take
from studio.library.take_repository import insert_take
from studio.library.trash import mark
from tests.growth import TIMES, check, end_of, least
from tests.studio.clips import new_sample


def test_search_time_does_not_grow_with_the_query(tmp_path: Path) -> None:
    library = ProjectLibrary(tmp_path)
    words = "the same few words again and again " * 400
    for number in range(20):
        library.takes.add(Take(f"req_{number}", float(number), "random", 1, text=words))
    for sought in (words, words[:-1] + "x"):
        check(lambda query: library.takes.page(TakeFilter(query)), end_of(sought), 1024)


def project_of(library: ProjectLibrary, parts: int, text: str) -> Project:
    """A project whose parts have all been spoken; their rows are inserted directly."""
    settings = ProjectSettings()
    project = library.projects.create("", "Book", "txt", [NewPart(text)] * parts, settings)
    with library.store.writing() as db:
        ids = [row[0] for row in db.execute("select id from parts where project_id = ?", [project.id]).fetchall()]
        take = Take("", 1.0, "anna", 1, audio="0" * 64, recipe=settings.recipe(text, None), seconds=1.0, sample_rate=1)
        insert_take(db, NewTake(take), None)
        [row] = db.table("takes").rows_where("id = ''")
        db.table("takes").insert_all(row | {"n": None, "id": f"take_of_{part}", "part_id": part} for part in ids)
        db.execute("delete from takes where id = ''")
        db.execute("update all_parts set chosen = 'take_of_' || id, state = 'done' where project_id = ?", [project.id])
    return library.projects.get(project.id, None)


def test_polling_a_project_does_not_read_its_texts(tmp_path: Path) -> None:
    library = ProjectLibrary(tmp_path)
    short, long = (project_of(library, 1000, "a" * size).id for size in (10, MAX_PART_TEXT))
    assert library.projects.get(long, None).characters == 1000 * MAX_PART_TEXT
    costs = [least(partial(library.projects.get, project, None)) for project in (short, long)]
    assert costs[1] <= TIMES * max(costs[0], 0.001), costs


def test_number_of_statements_of_a_project_list_is_constant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, statements = ProjectLibrary(tmp_path), list[str]()
    execute = Database.execute

    def counted(self: Database, sql: str, *values: Any) -> Any:
        statements.append(sql)
        return execute(self, sql, *values)

    counts = []
    for _ in range(2):
        for number in range(10):
            project_of(library, 1, f"Number {number}.")
        with monkeypatch.context() as patched:
            patched.setattr(Database, "execute", counted)
            statements.clear()
            assert all(project.parts["done"] == 1 for project in library.projects.page(None))
            counts.append(len(statements))
    assert counts[0] == counts[1] < 10


@pytest.mark.parametrize("phrase", ["in no part", "words"])
def test_cost_of_a_pronunciation_does_not_grow_with_its_dictionary(tmp_path: Path, phrase: str) -> None:
    library = ProjectLibrary(tmp_path)
    project = project_of(library, 1000, "Some words of a book, as long as they are. " * 5)
    scope, costs = DictionaryScope("project", project.id), []

    def add_and_delete() -> None:
        library.pronunciations.delete(library.pronunciations.add(scope, Pronunciation(phrase, "said")).id)

    for entries in (1, 1000):
        library.pronunciations.merge(scope, [Pronunciation(f"word{n}x", "said") for n in range(entries)], True)
        costs.append(least(add_and_delete))
    listed = least(lambda: library.pronunciations.entries(scope))
    # Adding and deleting each read the dictionary twice before they have the write lock, and twice with it.
    assert costs[1] <= TIMES * (costs[0] + 8 * listed), costs


def test_changing_settings_without_effect_on_parts_reads_no_part(tmp_path: Path) -> None:
    library = ProjectLibrary(tmp_path)
    projects, costs = [project_of(library, count, "Some words. " * 20) for count in (10, 2000)], []
    for project in projects:
        for at in (0.1, 0.2, 0.3):  # a different value each time
            settings = replace(project.settings, pause=at)
            edit = partial(library.projects.edit, project.id, None, None, settings)
            costs.append(least(edit, 1))
    assert min(costs[3:]) <= TIMES * max(min(costs[:3]), 0.001), costs


def test_restoring_voices_costs_the_same_among_many_others(tmp_path: Path) -> None:
    library, costs = ProjectLibrary(tmp_path), list[float]()
    first = library.voices.create(VoiceFields(name="Voice"), [new_sample()])
    for count in (100, 5000):
        with library.store.writing() as db:
            [row] = db.table("voices").rows_where("id = ?", [first.id])
            db.table("voices").insert_all(
                row | {"id": f"voice_{count}_{n}", "slug": f"voice-{count}-{n}", "folded": f"voice {count} {n}"}
                for n in range(count)
            )
        ids = [f"voice_{count}_{n}" for n in range(20)]
        for _ in range(3):
            with library.trash.deleting() as db:
                mark(db, "voices", ids)
            restore = partial(library.trash.restore, [("voice", voice) for voice in ids], None)
            costs.append(least(restore, 1))
        assert library.voices.get(f"voice-{count}-3").version > first.version
    assert min(costs[3:]) <= TIMES * max(min(costs[:3]), 0.001), costs


def test_restored_dictionaries_are_read_without_the_write_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, holds, reads = Library(tmp_path), list[bool](), list[bool]()
    for said in "abc":
        library.pronunciations.merge(GLOBAL, [Pronunciation(f"word {n}", f"{said} {n}") for n in range(9)], True)
    writing, loads = Store.writing, json.loads

    @contextmanager
    def noted(store: Store, frees_room: bool = False) -> Iterator[Database]:
        with writing(store, frees_room) as db:
            holds.append(True)
            yield db
            holds.pop()

    def read(text: str) -> object:
        reads.append(bool(holds))
        return loads(text)

    items = [(item.kind, item.id) for item in library.trash.page(None)]
    monkeypatch.setattr(Store, "writing", noted)
    monkeypatch.setattr("studio.library.pronunciation_repository.json.loads", read)
    library.trash.restore(items, None)
    assert reads == [False] * len(items) and len(items) == 2
    assert {entry.said[0] for entry in library.pronunciations.show(GLOBAL)} == {"a"}

"""Every method of the library that takes a list: twice the list, in a project of twice the parts, costs twice as much.

The cost is CPU time and rows written. Methods are found by their signatures, so that a new one is missed here.
"""

from __future__ import annotations

import inspect
import re
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from longform.library import project_records
from longform.library.project_records import NewPart, PartChanges, ProjectSettings, ReplacedValues
from longform.library.project_repository import PartFilter, ProjectLibrary
from longform.library.proof_records import Checked
from longform.library.replacements import TextReplacement
from manuscript.documents import read_document
from manuscript.passages import Document, NewCharacter, Passage
from studio.library import TakeFilter, VoiceFields
from studio.library.records import DictionaryScope, Pronunciation
from studio.library.take import NewTake, Take
from studio.library.trash import now
from tests.growth import LEAST, TIMES, TRIES, cost
from tests.studio.clips import new_sample
from tests.studio.library.test_library_growth import project_of

COUNT = 300
"""Items in the shorter list; the project has twice as many parts."""
LISTS = re.compile(r"\b(Sequence|Collection|Iterable|list|dict)\[|\b(PartFilter|TakeFilter|PartSelection|Document)\b")
NO_LISTS_OF_ITEMS = {
    ("cast", "delete_unused"): "at most 2,000 characters, each in a transaction of its own",
    ("takes", "add"): "words of one take",
    ("takes", "keep_word_times"): "words of one take",
    ("voices", "create"): "at most 32 samples",
    ("voices", "page"): "tags that a voice must have",
}
Work = Callable[[], object]


@dataclass
class World:
    """A library with a project of ``2 * count`` parts, all with audio, and the ids of half of them, scattered."""

    library: ProjectLibrary
    count: int
    project: str = ""
    ids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.project = project_of(self.library, 2 * self.count, "Some words of a book.").id
        self.ids = self.library.projects.part_ids(self.project, None)[::2]

    def delete_parts(self) -> None:
        self.library.arrangement.delete(self.project, None, self.ids)

    def add_takes(self) -> list[str]:
        takes = [Take(f"req_{n}", 1.0, "anna", 1, "finished", text="Hi.") for n in range(self.count)]
        self.library.takes.add_all([NewTake(take) for take in takes])
        return [take.id for take in takes]

    def add_characters(self) -> dict[str, str | None]:
        characters = [NewCharacter(f"Name {n}") for n in range(self.count)]
        parts = [NewPart("Hi.", character=one.id) for one in characters]
        settings = ProjectSettings()
        self.project = self.library.projects.create("", "Cast", "txt", parts, settings, cast=characters).id
        return {one.id: "anna" for one in characters}


def restored(world: World) -> Work:
    world.delete_parts()
    return lambda: world.library.arrangement.restore(world.project, None, world.ids)


def restored_from_trash(world: World) -> Work:
    world.delete_parts()
    return lambda: world.library.trash.restore([("part", part_id) for part_id in world.ids], None)


def emptied(world: World) -> Work:
    world.delete_parts()
    return lambda: world.library.trash.empty(None, "part", world.ids)


def renewed(world: World) -> Work:
    queue, leases = world.library.part_queue, world.ids
    with world.library.store.writing() as db:
        rows = [(lease, lease) for lease in leases]
        db.conn.executemany("update all_parts set state = 'speaking', lease = ?, leased_until = 9e9 where id = ?", rows)
    return lambda: queue.renew(leases)


def recovered(world: World) -> Work:
    renewed(world)
    return lambda: world.library.part_queue.recover(world.ids)


def takes_deleted(world: World) -> Work:
    ids = world.add_takes()
    return lambda: world.library.takes.delete(TakeFilter(ids=tuple(ids)))


def takes_read(method: str) -> Callable[[World], Work]:
    def prepared(world: World) -> Work:
        ids = world.add_takes()
        given: Any = ids if method in ("numbers", "word_times") else TakeFilter(ids=tuple(ids))
        return lambda: getattr(world.library.takes, method)(given)

    return prepared


def recast(world: World) -> Work:
    voices = world.add_characters()
    return lambda: world.library.cast.recast(world.project, None, voices)


def created(world: World) -> Work:
    parts = [NewPart("Some words.", f"Chapter {number}") for number in range(world.count)]
    return lambda: world.library.projects.create("", "Book", "txt", parts, ProjectSettings())


def merged(world: World) -> Work:
    entries = [Pronunciation(f"word{number}", "said") for number in range(world.count)]
    return lambda: world.library.pronunciations.merge(DictionaryScope("project", world.project), entries, False)


def table(count: int, words: str) -> Document:
    """A table of so many lines with ids."""
    lines = "\n".join(f"L{number},{words} {number}." for number in range(count))
    return read_document(f"id,text\n{lines}\n".encode(), "csv")


def updated(method: str) -> Callable[[World], Work]:
    """Every line of the table has another text, and half of them return from the trash."""

    def prepared(world: World) -> Work:
        parts = [part_of_row(passage, None, ProjectSettings()) for passage in table(2 * world.count, "Line").passages]
        world.project = world.library.projects.create("", "Table", "csv", parts, ProjectSettings()).id
        world.ids = world.library.projects.part_ids(world.project, None)[::2]
        world.delete_parts()
        more = (part_of_row,) if method == "update" else ()
        document = table(2 * world.count, "Verse")
        return lambda: getattr(world.library.tables, method)(world.project, None, document, *more)

    return prepared


def part_of_row(passage: Passage, character: str | None, settings: ProjectSettings) -> NewPart:
    return NewPart(passage.text, character=character, name=passage.name, cells=passage.cells)


def on_parts(repository: str, method: str, *more: object) -> Callable[[World], Work]:
    return lambda world: partial(
        getattr(getattr(world.library, repository), method), world.project, None, world.ids, *more
    )


def filtered(method: str) -> Callable[[World], Work]:
    return lambda world: partial(
        getattr(world.library.projects, method), world.project, None, filters=PartFilter(ids=world.ids)
    )


CASES: dict[tuple[str, str], Callable[[World], Work]] = {
    ("arrangement", "delete"): on_parts("arrangement", "delete", "Some words of a book."),
    ("arrangement", "move"): on_parts("arrangement", "move", 7),
    ("arrangement", "restore"): restored,
    ("cast", "neighbours"): lambda world: partial(world.library.cast.neighbours, world.ids, 6),
    ("cast", "recast"): recast,
    ("cast", "with_names"): lambda world: partial(
        world.library.cast.with_names, [f"Name {number}" for number in range(world.count)], None
    ),
    ("part_edits", "edit_parts"): on_parts("part_edits", "edit_parts", PartChanges(voice="bert")),
    ("part_edits", "undo"): lambda world: partial(
        world.library.part_edits.undo,
        world.project,
        None,
        [
            ReplacedValues((one,), {"text": f"Words of {one}.", "speed": 1 + number / 1000}, {})
            for number, one in enumerate(world.ids)
        ],
    ),
    ("part_queue", "recover"): recovered,
    ("part_queue", "renew"): renewed,
    ("projects", "count_parts"): filtered("count_parts"),
    ("projects", "create"): created,
    ("projects", "part_ids"): filtered("part_ids"),
    ("projects", "parts"): filtered("parts"),
    ("projects", "queue_parts"): on_parts("projects", "queue_parts"),
    ("pronunciations", "merge"): merged,
    ("tables", "compare"): updated("compare"),
    ("tables", "update"): updated("update"),
    ("takes", "add_all"): lambda world: world.add_takes,
    ("takes", "count"): takes_read("count"),
    ("takes", "delete"): takes_deleted,
    ("takes", "numbers"): takes_read("numbers"),
    ("takes", "page"): takes_read("page"),
    ("takes", "word_times"): takes_read("word_times"),
    ("trash", "empty"): emptied,
    ("trash", "restore"): restored_from_trash,
}


def methods_with_lists(library: ProjectLibrary) -> Iterator[tuple[str, str]]:
    for name, repository in vars(library).items():
        if name in ("store", "files") or not type(repository).__module__.startswith(
            ("studio.library", "longform.library")
        ):
            continue
        for method, function in inspect.getmembers(type(repository), inspect.isfunction):
            parameters = inspect.signature(function).parameters.values()
            if not method.startswith("_") and any(LISTS.search(str(one.annotation)) for one in parameters):
                yield name, method


def test_every_method_that_takes_a_list_is_measured(tmp_path: Path) -> None:
    assert set(methods_with_lists(ProjectLibrary(tmp_path))) == CASES.keys() | NO_LISTS_OF_ITEMS.keys()


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[sqlite3.Connection]:
    """All connections opened since."""
    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def noted(*values: Any, **named: Any) -> sqlite3.Connection:
        opened.append(connect(*values, **named))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", noted)
    return opened


def rows_written(connections: list[sqlite3.Connection]) -> int:
    return sum(connection.total_changes for connection in connections if is_open(connection))


def count_steps(connections: list[sqlite3.Connection]) -> list[None]:
    """A list that gets an item for each ten instructions of SQLite."""
    noted = list[None]()
    for connection in filter(is_open, connections):
        connection.set_progress_handler(lambda: noted.append(None), 10)
    return noted


def is_open(connection: sqlite3.Connection) -> bool:
    try:
        return connection.total_changes >= 0
    except sqlite3.ProgrammingError:
        return False


@pytest.mark.parametrize("case", CASES, ids=".".join)
def test_twice_as_many_items_cost_twice_as_much(
    tmp_path: Path, connections: list[sqlite3.Connection], case: tuple[str, str]
) -> None:
    figures = []
    for attempt in range(TRIES):
        seconds, rows, steps = list[float](), list[int](), list[int]()
        for count in (COUNT, 2 * COUNT):
            connections.clear()
            work = CASES[case](World(ProjectLibrary(tmp_path / f"{attempt}-{count}"), count))
            before, noted = rows_written(connections), count_steps(connections)
            seconds.append(cost(lambda _, work=work: work(), ""))  # type: ignore[misc]
            rows.append(rows_written(connections) - before)
            steps.append(len(noted))
        assert rows[1] <= 2.2 * max(rows[0], 10), rows
        assert steps[1] <= 2.5 * max(steps[0], 10), steps
        figures.append(seconds)
        if seconds[1] <= TIMES * max(seconds[0], LEAST):
            return
    raise AssertionError(figures)


@pytest.mark.parametrize("owner", [None, ""])
def test_page_of_the_trash_costs_the_same_however_much_is_in_it(
    tmp_path: Path, connections: list[sqlite3.Connection], owner: str | None
) -> None:
    steps = []
    for count in (50, 500):
        connections.clear()
        world = World(ProjectLibrary(tmp_path / str(count)), count)
        world.delete_parts()
        takes_deleted(world)()
        noted = count_steps(connections)
        first = world.library.trash.page(owner, 20)
        assert [item.kind for item in first] == ["take"] * 20
        after = [item for item in world.library.trash.page(owner, count) if item.kind == "take"][-1]
        noted.clear()
        parts = world.library.trash.page(owner, 20, after.id)
        world.library.trash.page(owner, 20)
        assert [item.kind for item in parts] == ["part"] * 20
        steps.append(len(noted))
    assert 0 < steps[1] <= 1.2 * steps[0], steps


def whole_project_methods(library: ProjectLibrary) -> dict[str, Callable[[str, None], object]]:
    """Methods that need nothing but a project and an owner filter."""
    methods: dict[str, Callable[[str, None], object]] = {}
    for name, repository in vars(library).items():
        for method, function in inspect.getmembers(repository, inspect.ismethod):
            parameters = inspect.signature(function).parameters.values()
            needed = [one.name for one in parameters if one.default is inspect.Parameter.empty]
            if needed == ["project_id", "owner_filter"] and not method.startswith("_"):
                methods[f"{name}.{method}"] = function
    return methods


def test_whole_project_of_twice_the_parts_costs_twice_as_much(tmp_path: Path) -> None:
    costly: dict[str, list[float]] = {}
    for attempt in range(TRIES):
        small, large = (costs_of_whole_project(tmp_path / f"{attempt}-{count}", count) for count in (1000, 2000))
        assert {"projects.get", "projects.parts", "projects.chapters", "cast.members", "proofs.spots"} <= small.keys()
        costly = {name: [small[name], more] for name, more in large.items() if more > TIMES * max(small[name], LEAST)}
        if not costly:
            return
    raise AssertionError(costly)


def costs_of_whole_project(folder: Path, count: int) -> dict[str, float]:
    """CPU seconds of each of these methods, the least of three."""
    library = ProjectLibrary(folder)
    project = project_of(library, count, "Some words of a book.").id
    with library.store.writing() as db:
        columns = 'id, take, kind, weight, start, "end", first, last, heard'
        db.execute(f"insert into findings ({columns}) select id, n, 'changed', 50, 0, 1, 0, 4, '' from takes")
        columns = "take, version, recogniser, words, wrong, speech_s, checked"
        db.execute(f"insert into checked_takes ({columns}) select n, 1, '', 5, 0, 1.0, 1.0 from takes")
    methods = whole_project_methods(library)
    methods["proofs.figures"] = lambda project, owner: library.proofs.figures(project, owner, 1)
    methods["proofs.settle_drift"] = lambda project, _: library.proofs.settle_drift(project, {})
    methods["projects.delete"] = methods.pop("projects.delete")  # the last
    return {
        name: min(cost(lambda _, method=method: method(project, None), "") for _ in range(3))  # type: ignore[misc]
        for name, method in methods.items()
    }


def test_unusual_takes_are_found_without_the_write_lock(tmp_path: Path, connections: list[sqlite3.Connection]) -> None:
    library = ProjectLibrary(tmp_path)
    project = project_of(library, 40, "Some words of a book.").id
    ids = library.projects.part_ids(project, None)
    with library.store.writing() as db:
        columns = "take, version, recogniser, words, wrong, speech_s, level, checked"
        db.execute(
            f"insert into checked_takes ({columns}) select n, 1, '', 5, 0, 1, iif(n % 10, -20, -5), 1 from takes"
        )
    statements: list[str] = []
    for connection in filter(is_open, connections):
        connection.set_trace_callback(statements.append)

    def found(late: list[str], delay: float) -> tuple[list[tuple[str, str]], list[str]]:
        """The spots by now, and what was done with the write lock."""
        statements.clear()
        library.proofs.settle_drift(project, dict.fromkeys(late, delay))
        first = statements.index("begin immediate") + 1 if "begin immediate" in statements else len(statements)
        written = [one.split()[0] for one in statements[first:] if not one.startswith(("--", "COMMIT", "pragma"))]
        spots, _ = library.proofs.spots(project, None, limit=100)
        return sorted((spot.finding.kind, spot.finding.heard) for spot in spots), written

    levels = [("level", "+15.0 dB")] * 4
    assert found(ids[:2], 1.0) == ([*[("late", "+1.0 s")] * 2, *levels], ["insert"] * 6)
    assert found(ids[:2], 1.0)[1] == []
    assert found(ids[1:3], 1.0) == ([*[("late", "+1.0 s")] * 2, *levels], ["delete", "insert"])
    assert found(ids[1:3], 2.0) == ([*[("late", "+2.0 s")] * 2, *levels], ["update"] * 2)
    assert found([], 0.0) == (levels, ["delete"] * 2)
    [spot, *_], _ = library.proofs.spots(project, None)
    library.proofs.accept(project, None, spot.id, True)
    library.proofs.keep(spot.take_id, Checked(1, "", 5, 0, 1.0, -5.0, None))
    assert found([], 0.0) == (levels[1:], []), "an accepted finding stays accepted after another check"


def test_dictionaries_are_read_before_the_write_lock_is_taken(
    tmp_path: Path, connections: list[sqlite3.Connection], monkeypatch: pytest.MonkeyPatch
) -> None:
    library = ProjectLibrary(tmp_path)
    project = project_of(library, 40, "Some words of a book.").id
    ids, read, read_before = library.projects.part_ids(project, None), list[str](), list[int]()
    others = [("project", project, "Words", "words", "werds", "pron_other", 0, 1)]
    fold = project_records.fold_phrase

    def noted(text: str) -> str:
        read.append(text)
        return fold(text)

    def begin(statement: str) -> None:
        """Just before the lock is taken, end a take of a part, let somebody change a setting, and the first time add an
        entry."""
        if statement == "begin immediate":
            with sqlite3.connect(tmp_path / "library.db") as other:
                part, state = ids[len(read_before)], "iif(state = 'done', 'stale', 'done')"
                other.execute(f"update all_parts set state = {state} where id = ?", [part])
                columns, values = "scope, subject, phrase, key, said, id, match_case, created", ", ".join("?" * 8)
                other.executemany(f"insert into pronunciations ({columns}) values ({values})", others)
                temperature = "coalesce(json_extract(settings, '$.temperature'), 0) + 0.1"
                other.execute(f"update projects set settings = json_set(settings, '$.temperature', {temperature})")
                others.clear()
            other.close()
            read_before.append(len(read))

    def read_with_the_lock(work: Callable[[], object]) -> int:
        read.clear()
        read_before.clear()
        work()
        return len(read) - read_before[-1]

    monkeypatch.setattr(project_records, "fold_phrase", noted)
    for connection in filter(is_open, connections):
        connection.set_trace_callback(begin)
    scope = DictionaryScope("project", project)
    entries = [Pronunciation(f"book {number}", "tome") for number in range(5)] + [Pronunciation("book", "tome")]
    assert read_with_the_lock(lambda: library.pronunciations.merge(scope, entries, False)) <= 2 < read_before[-1]
    assert [part.id for part in library.projects.parts(project, None) if part.state == "stale"] == ids
    for entry in library.pronunciations.entries(scope):
        library.pronunciations.delete(entry.id)
    assert not library.pronunciations.entries(scope)
    items = [(item.kind, item.id) for item in library.trash.page(None)]
    assert read_with_the_lock(lambda: library.trash.restore(items, None)) <= 2 < read_before[-1]
    others.append(("project", project, "Some", "some", "sum", "pron_third", 0, 1))
    change = TextReplacement("book", "booklet")
    assert read_with_the_lock(lambda: library.replacements.replace(project, None, change)) <= 2 < read_before[-1]
    others.append(("project", project, "a", "a", "ay", "pron_fourth", 0, 1))
    items = [(item.kind, item.id) for item in library.trash.page(None)]
    assert read_with_the_lock(lambda: library.trash.restore(items, None)) <= 2 < read_before[-1]
    phrases = [entry.phrase for entry in library.pronunciations.entries(scope)]
    assert phrases == ["a", "book", *(f"book {number}" for number in range(5)), "Some", "Words"]


def test_voices_of_one_name_are_restored_in_proportion_to_their_number(
    tmp_path: Path, connections: list[sqlite3.Connection]
) -> None:
    library, counts = ProjectLibrary(tmp_path), []
    first = library.voices.create(VoiceFields(name="Voice"), [new_sample()])
    noted = count_steps(connections)
    for number in (100, 200):
        name = {"name": f"Hank {number}", "folded": f"hank {number}", "slug": f"hank-{number}", "deleted": now()}
        ids = [f"hank_{number}_{n}" for n in range(number)]
        with library.store.writing() as db:
            [row] = db.table("voices").rows_where("id = ?", [first.id])
            db.table("voices").insert_all(row | name | {"id": one} for one in ids)
        noted.clear()
        library.trash.restore([("voice", voice) for voice in ids], None)
        counts.append(len(noted))
        names = {(voice.name, voice.slug) for voice in map(library.voices.get, ids)}
        assert names == {(f"Hank {number}", f"hank-{number}")} | {
            (f"Hank {number} {n}", f"hank-{number}-{n}") for n in range(2, number + 1)
        }
    assert counts[1] <= TIMES * counts[0], counts


def test_texts_are_searched_before_the_write_lock_is_taken(
    tmp_path: Path, connections: list[sqlite3.Connection]
) -> None:
    world, statements = World(ProjectLibrary(tmp_path), 5), list[str]()
    ids = world.add_takes()
    for connection in filter(is_open, connections):
        connection.set_trace_callback(statements.append)
    assert world.library.takes.delete(TakeFilter(query="hi")) == ids[::-1]
    searches = [number for number, one in enumerate(statements) if "holds_query" in one]
    assert searches and searches[-1] < statements.index("begin immediate")


def test_lines_are_recast_by_voice_not_by_character(tmp_path: Path, connections: list[sqlite3.Connection]) -> None:
    written: list[list[str]] = []
    for count in (3, 30):
        connections.clear()
        world = World(ProjectLibrary(tmp_path / str(count)), count)
        voices = world.add_characters()
        statements: list[str] = []
        for connection in filter(is_open, connections):
            connection.set_trace_callback(statements.append)
        world.library.cast.recast(world.project, None, voices)
        written.append([one[:30] for one in statements if one.startswith("update all_parts")])
        assert {part.voice for part in world.library.projects.parts(world.project, None)} == {"anna"}
    assert written[0] == written[1] != []


ONE: dict[str, Callable[[ProjectLibrary, str, list[str]], object]] = {
    "delete": lambda library, project, ids: library.arrangement.delete(project, None, ids[3:4]),
    "restore": lambda library, project, ids: library.arrangement.restore(project, None, ids[3:4]),
    "insert first": lambda library, project, ids: library.arrangement.insert(project, None, NewPart("Hi."), None),
    "insert": lambda library, project, ids: library.arrangement.insert(project, None, NewPart("Hi."), ids[1]),
    "move to the end": lambda library, project, ids: library.arrangement.move(project, None, ids[:1], len(ids)),
    "move to the beginning": lambda library, project, ids: library.arrangement.move(project, None, ids[-1:], 0),
    "split": lambda library, project, ids: library.arrangement.split(project, None, ids[5], "Some words.", 5),
    "merge": lambda library, project, ids: library.arrangement.merge(project, None, ids[7], ids[8]),
}


def test_rows_written_for_one_part_do_not_grow_with_the_project(
    tmp_path: Path, connections: list[sqlite3.Connection]
) -> None:
    written: list[dict[str, int]] = []
    for count in (20, 400):
        connections.clear()
        library = ProjectLibrary(tmp_path / str(count))
        project = library.projects.create("", "Book", "txt", [NewPart("Some words.")] * count, ProjectSettings()).id
        ids = library.projects.part_ids(project, None)
        written.append({})
        for name, change in ONE.items():
            before = rows_written(connections)
            change(library, project, ids)
            written[-1][name] = rows_written(connections) - before
    assert written[0] == written[1] and max(written[0].values()) < 15


def test_parts_inserted_at_one_place_move_few_others(tmp_path: Path, connections: list[sqlite3.Connection]) -> None:
    library = ProjectLibrary(tmp_path)
    project = library.projects.create("", "Book", "txt", [NewPart("Some words.")] * 400, ProjectSettings()).id
    [first] = library.projects.part_ids(project, None, limit=1)
    before = rows_written(connections)
    inserted = [library.arrangement.insert(project, None, NewPart(f"Part {n}."), first).id for n in range(200)]
    assert rows_written(connections) - before < 200 * 15
    assert library.projects.part_ids(project, None, offset=1, limit=200) == inserted[::-1]

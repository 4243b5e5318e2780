"""The trash of a library: listed, restored, emptied and expired for every kind of item, with its audio."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from longform.library.project_records import NewPart, PartChanges, Project, ProjectSettings
from longform.library.project_repository import ProjectLibrary
from longform.library.replacements import TextReplacement
from manuscript.passages import NewCharacter
from studio.errors import EditConflict, InvalidRequest, LibraryUnavailable, NotFound
from studio.library import TakeFilter, Voice, VoiceFields
from studio.library.records import GLOBAL, DictionaryScope, Pronunciation
from studio.library.take import NewTake, Take
from studio.library.trash import TrashItem
from tests.studio.clips import new_sample
from tests.studio.library.worker import stored_take

DAY = 86_400


@pytest.fixture
def library(tmp_path: Path) -> ProjectLibrary:
    return ProjectLibrary(tmp_path)


def files(library: ProjectLibrary) -> set[str]:
    return {name for name, _ in library.files.everything()}


def take(library: ProjectLibrary, take_id: str, caller: str = "me") -> None:
    library.takes.add(dataclasses.replace(stored_take(take_id, f"words {take_id}", "anna"), caller=caller), b"take")


def project(library: ProjectLibrary, owner: str, *texts: str, takes: int = 0) -> Project:
    """Create a project whose first part has this many takes."""
    new_project = library.projects.create(owner, "A book", "txt", [NewPart(text) for text in texts], ProjectSettings())
    for number in range(takes):
        library.projects.queue_parts(new_project.id, owner, [library.projects.parts(new_project.id, owner)[0].id])
        claimed = library.part_queue.claim()
        assert claimed is not None
        spoken = Take(
            f"ptake_{new_project.id}_{number}",
            1.0,
            "anna",
            1,
            part_id=claimed.part.id,
            recipe=claimed.recipe,
            work_s=1.0,
        )
        library.part_queue.done(claimed, NewTake(spoken, [b"sound %d" % number]))
    return library.projects.get(new_project.id, owner)


def one_of_each(library: ProjectLibrary) -> tuple[Voice, Project]:
    """Put a take, voice, project, part, replacement, character and dictionary entry into the trash, in this order."""
    take(library, "req_1")
    library.takes.delete(TakeFilter(ids=("req_1",)))
    voice = library.voices.seen_by("me").create(VoiceFields(name="Anna"), [new_sample()])
    library.voices.delete("anna")
    gone = project(library, "me", "One.", "Two.", takes=2)
    library.projects.delete(gone.id, "me")
    kept = project(library, "me", "Cat.", "Cats.", "Dog.")
    [*_, dog] = library.projects.parts(kept.id, "me")
    library.arrangement.delete(kept.id, "me", [dog.id])
    library.replacements.replace(kept.id, "me", TextReplacement("cat", "cow"))
    ann = library.cast.add(kept.id, "me", NewCharacter("Ann"))
    library.part_edits.edit_parts(
        kept.id, "me", [library.projects.parts(kept.id, "me")[0].id], PartChanges(character=ann.id)
    )
    library.cast.merge(kept.id, "me", str(ann.id), None)
    words = library.pronunciations.add(DictionaryScope("project", kept.id), Pronunciation("GIF", "jif"))
    library.pronunciations.delete(words.id)
    return voice, kept


def age_trash(library: ProjectLibrary, seconds: float) -> None:
    """Make everything in the trash look deleted this much earlier."""
    with library.store.writing() as db:
        for table in {kept.table for kept in library.trash.kinds.values()}:
            db.execute(f"update {table} set deleted = deleted - ?", [seconds])


def all_items(library: ProjectLibrary, owner_filter: str | None = None) -> list[TrashItem]:
    """All items, fetched in pages of two."""
    items: list[TrashItem] = []
    while page := library.trash.page(owner_filter, 2, items[-1].id if items else None):
        items += page
    return items


def test_deleted_items_are_listed_and_restored_together_unchanged(library: ProjectLibrary) -> None:
    voice, kept = one_of_each(library)
    items = all_items(library)
    assert [item.kind for item in items] == [
        "dictionary",
        "character",
        "replacement",
        "part",
        "project",
        "voice",
        "take",
    ]
    assert [item.title for item in items] == ["GIF", "Ann", "A book", "Dog.", "A book", "Anna", "words req_1"]
    assert [(item.parts, item.project_id) for item in items] == [
        (1, kept.id), (1, kept.id), (2, kept.id), (None, kept.id), (2, None), (None, None), (None, None),
    ]  # fmt: skip
    with pytest.raises(NotFound, match="not in the trash"):
        library.trash.page(None, after="req_none")
    library.projects.delete(kept.id, "me")
    for item in items[:4]:
        with pytest.raises(NotFound, match="restore the project first"):
            library.trash.restore([(item.kind, item.id)], "me")
    restored = library.trash.restore([(item.kind, item.id) for item in all_items(library)], "me")
    assert sorted(kind for kind, _ in restored) == sorted([*library.trash.kinds, "project"])
    assert all_items(library) == []
    assert library.takes.get("req_1", "me").deleted is None
    assert library.voices.get("anna").samples == voice.samples
    assert [part.text for part in library.projects.parts(kept.id, "me")] == ["Cat.", "Cats.", "Dog."]
    book = library.projects.get(items[4].id, "me")
    assert (book.parts["done"], book.paused) == (1, False)
    assert [entry.phrase for entry in library.projects.get(kept.id, "me").settings.pronunciations] == ["GIF"]
    assert library.trash.restore([(item.kind, item.id) for item in items], "me") == []


def test_trash_of_another_owner_cannot_be_listed_restored_or_emptied(library: ProjectLibrary) -> None:
    one_of_each(library)
    items = all_items(library)
    assert all_items(library, "you") == []
    assert library.trash.restore([(item.kind, item.id) for item in items], "you") == []
    assert library.trash.empty("you") == 0 and library.trash.empty("you", "project") == 0
    assert library.trash.empty("you", ids=[items[0].id]) == 0 and all_items(library) == items
    assert library.trash.empty("me", "voice") == 1 and library.trash.empty("me") == 6
    assert all_items(library) == [] and files(library) == set()


def test_emptying_the_trash_deletes_all_data_of_an_item(library: ProjectLibrary) -> None:
    one_of_each(library)
    take(library, "req_2")
    [_, _, replacement, part, book, _, _] = all_items(library)
    assert len(files(library)) == 4
    assert library.trash.empty(None, "project", [part.id, replacement.id]) == 0, "no other kind is meant"
    assert library.trash.empty(None, ids=[book.id]) == 1
    assert len(files(library)) == 2, "two takes of its parts"
    assert library.trash.empty(None) == 6
    assert len(files(library)) == 1, "another take has the same sound"
    assert [library.takes.count(TakeFilter()), library.voices.count(), len(library.projects.page(None))] == [1, 0, 1]
    assert library.trash.empty(None) == 0


def test_audio_that_is_being_played_does_not_prevent_its_deletion(library: ProjectLibrary) -> None:
    take(library, "req_1")
    library.takes.delete(TakeFilter(ids=("req_1",)))
    [(_, path)] = library.store.files.everything()
    with path.open("rb") as played:
        assert library.trash.empty(None) == 1
        assert played.read() == b"take" and all_items(library) == []


def test_emptying_a_project_from_the_trash_deletes_its_parts_and_replacements(library: ProjectLibrary) -> None:
    book = project(library, "me", "Cat.", "Dog.", takes=2)
    [cat, _] = library.projects.parts(book.id, "me")
    library.replacements.replace(book.id, "me", TextReplacement("dog", "cow"))
    library.arrangement.delete(book.id, "me", [cat.id])
    voice = library.voices.create(VoiceFields(name="A"), [new_sample()])
    for dictionary in (DictionaryScope("project", book.id), DictionaryScope("voice", voice.id)):
        words = library.pronunciations.add(dictionary, Pronunciation("GIF", "jif"))
        library.pronunciations.delete(words.id)
    library.projects.delete(book.id, "me")
    with pytest.raises(NotFound, match="restore the project first"):
        library.trash.restore([("part", cat.id)], "me")
    assert library.trash.empty("me", "project") == 1
    library.voices.delete("A")
    assert library.trash.empty(None, "voice") == 1 and files(library) == set()
    with library.store.reading() as db:
        assert [db.table(kept.table).count for kept in library.trash.kinds.values()] == [0] * 7


def test_trash_larger_than_the_removal_batch_is_emptied(
    library: ProjectLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.library.trash.REMOVED_AT_ONCE", 2)
    monkeypatch.setattr("longform.library.project_repository._PARTS_AT_ONCE", 2)
    monkeypatch.setattr("studio.library.trash._MARKED_AT_ONCE", 2)
    for number in range(5):
        take(library, f"req_{number}")
        library.voices.create(VoiceFields(name=f"Anna {number}"), [new_sample()])
        library.voices.delete(f"anna-{number}")
    library.takes.delete(TakeFilter())
    library.projects.delete(project(library, "me", *["One."] * 5, takes=5).id, "me")
    assert len(all_items(library)) == 11
    assert library.trash.empty(None) == 11
    with library.store.reading() as db:
        tables = ("takes", "voices", "samples", "projects", "all_parts")
        assert [db.table(table).count for table in tables] == [0] * 5
    assert files(library) == set()


def test_trash_expires_after_its_days_or_at_once_if_zero(library: ProjectLibrary) -> None:
    one_of_each(library)
    age_trash(library, 7 * DAY - 60)
    library.trash.expire()
    assert len(all_items(library)) == 7
    age_trash(library, 120)
    items = [("take", "req_1"), ("voice", "anna")]
    assert all_items(library) == [] and library.trash.restore(items, None) == []  # type: ignore[arg-type]
    assert library.voices.page(deleted=True) == [] and files(library)
    library.trash.expire()
    assert files(library) == set()
    at_once = ProjectLibrary(library.home, trash_days=0)
    one_of_each(at_once)
    assert all_items(at_once) == [] and all_items(library) == [] and files(library) == set()


def test_deletion_succeeds_even_if_expired_items_cannot_be_removed(
    library: ProjectLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked() -> None:
        raise LibraryUnavailable("the library is locked")

    monkeypatch.setattr(library.trash, "expire", locked)
    take(library, "req_1")
    assert library.takes.delete(TakeFilter()) == ["req_1"] and len(all_items(library)) == 1
    library.pronunciations.delete(library.pronunciations.add(GLOBAL, Pronunciation("GIF", "jif")).id)
    book = project(library, "me", "Cat.")
    assert library.replacements.replace(book.id, "me", TextReplacement("cat", "cow")).parts == 1


def test_reading_the_library_does_not_empty_its_trash(library: ProjectLibrary) -> None:
    one_of_each(library)
    age_trash(library, DAY)
    other = ProjectLibrary(library.home, trash_days=0.5)
    assert all_items(other) == [] and len(all_items(library)) == 7


def test_voice_whose_name_is_taken_returns_with_a_number(library: ProjectLibrary) -> None:
    one_of_each(library)
    items = [(item.kind, item.id) for item in all_items(library)]
    taken = library.voices.seen_by("bob").create(VoiceFields(name="ANNA"), [new_sample()])  # which its owner cannot see
    assert sorted(library.trash.restore(items, None)) == sorted(items)
    assert {voice.name: voice.slug for voice in library.voices.page()} == {"ANNA": "anna", "Anna 2": "anna-2"}
    library.voices.delete(taken.id)
    library.voices.create(VoiceFields(name="anna"), [new_sample()])
    assert library.voices.restore(taken.id).name == "ANNA 3"
    for _ in range(2):
        library.voices.create(VoiceFields(name="a" * 100), [new_sample()])
        library.voices.delete("a" * 100)
    for items in [[(item.kind, item.id)] for item in all_items(library)]:
        library.trash.restore(items, None)
    assert {len(voice.name) for voice in library.voices.page("aaa")} == {100, 96}


def test_restored_project_is_paused_and_refused_beyond_the_project_limit(
    library: ProjectLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = project(library, "me", "One.")
    library.projects.queue_parts(book.id, "me", "all")
    library.projects.delete(book.id, "me")
    assert library.part_queue.claim() is None
    library.trash.restore([("project", book.id)], "me")
    assert library.part_queue.claim() is None and library.projects.get(book.id, "me").state == "paused"
    library.projects.pause(book.id, "me", False)
    assert library.part_queue.claim() is not None
    library.projects.delete(book.id, "me")
    monkeypatch.setattr("longform.library.project_repository.MAX_PROJECTS", 1)
    project(library, "me", "Two.")
    with pytest.raises(InvalidRequest, match="delete some first"):
        library.trash.restore([("project", book.id)], "me")


def test_replacements_are_undone_newest_first_or_individually(library: ProjectLibrary) -> None:
    book = project(library, "me", "Cat.", "Dog.")
    for find, replace in (("cat", "Cow"), ("dog", "Pig"), ("pig", "Hen")):
        library.replacements.replace(book.id, "me", TextReplacement(find, replace))

    def texts() -> list[str]:
        return [part.text for part in library.projects.parts(book.id, "me")]

    assert texts() == ["Cow.", "Hen."]
    [_, second, first] = [item.id for item in library.trash.page("me")]
    with pytest.raises(EditConflict, match="have changed since"):  # and nothing of it is lost
        library.trash.restore([("replacement", second)], "me")
    library.replacements.undo(book.id, "me")
    assert texts() == ["Cow.", "Pig."]
    library.trash.restore([("replacement", first)], "me")
    assert texts() == ["Cat.", "Pig."]
    library.replacements.undo(book.id, "me")
    assert texts() == ["Cat.", "Dog."]
    with pytest.raises(NotFound, match="no replacement to undo"):
        library.replacements.undo(book.id, "me")
    library.replacements.replace(book.id, "me", TextReplacement(".", "!"))
    library.replacements.replace(book.id, "me", TextReplacement("dog!", "Pig!"))
    [second, first] = [item.id for item in library.trash.page("me")]
    library.trash.restore([("replacement", first)], "me")  # where the text is still its own
    assert texts() == ["Cat.", "Pig!"] and [item.parts for item in library.trash.page("me")] == [1, 1]
    items = library.trash.page("me")
    assert len(items) == 2 and library.trash.restore([(item.kind, item.id) for item in items], "me")
    assert texts() == ["Cat.", "Dog."] and library.trash.page("me") == []
    swaps = 15 * [TextReplacement("g", "k"), TextReplacement("k", "g")]
    many = {library.replacements.replace(book.id, "me", swap).id for swap in swaps}
    assert {item.id for item in library.trash.page("me")} == many

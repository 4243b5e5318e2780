"""The library through its public names, on real SQLite files."""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import engine
from audio import Cut
from longform.library.project_records import NewPart, ProjectSettings
from longform.library.project_repository import ProjectLibrary
from studio import ROOT
from studio.errors import EditConflict, InvalidRequest, LibraryUnavailable, NameTaken, NotFound, StudioError
from studio.library import (
    Backup,
    Library,
    NewConsent,
    NewSample,
    Sample,
    TakeFilter,
    VoiceFields,
    audio_files,
    checks,
    store,
    voices,
)
from studio.library.records import GLOBAL, Pronunciation
from studio.library.take import Take
from tests.studio.clips import new_sample
from tests.studio.server import prepared
from tests.studio.sounds import tone, wav


@pytest.fixture
def library(tmp_path: Path) -> ProjectLibrary:
    return ProjectLibrary(prepared(tmp_path / "home"))


def files(library: Library) -> set[str]:
    return {name for name, _ in library.files.everything()}


def take(number: int, text: str = "hello", voice_id: str | None = None) -> Take:
    new_take = Take(f"req_{number}", 1e9 + number, "anna@1", 7, "finished", text=text, voice_id=voice_id)
    return replace(new_take, parameters={"top_k": 3}, finish_reason="stop", queue_ms=1.5, audio_s=1.0, seconds=1.0)


def test_voice_is_found_by_id_slug_and_name_in_any_case_with_its_clip_unchanged(library: Library) -> None:
    sample = new_sample()
    voice = library.voices.create(VoiceFields(name="Änne  Müller", tags=("warm", "warm", "de")), [sample])
    assert (voice.name, voice.slug, voice.tags) == ("Änne Müller", "anne-muller", ("warm", "de"))
    for reference in (voice.id, "anne-muller", "ANNE-MULLER", "änne müller", "ÄNNE MÜLLER", "ａ\u0308nne müller"):
        assert library.voices.get(reference) == voice
    assert library.files.read(voice.samples[0].clip) == sample.data


def test_voice_and_codes_survive_a_restart(library: Library) -> None:
    draft = VoiceFields(
        name="Anna", description="kind", tags=("a",), language="en", favourite=True, licence="CC0",
        defaults={"temperature": 0.5}, gender="Female ", accent=" north  Irish", colour="#0F766E",
    )  # fmt: skip
    voice = library.voices.create(draft, [new_sample(), new_sample(b"other", "two", Cut(0.5, 2.0, -3.0, 1), 1)])
    vector = np.array([0.1, -1e-9, 7], np.float32)
    library.codes.put(voice.samples[0].cut_key, "codec", np.arange(20, dtype=np.int16).reshape(10, 2), vector)
    reopened = Library(library.home)
    assert reopened.voices.get("anna") == voice
    assert (voice.gender, voice.accent, voice.colour) == ("female", "north Irish", "#0f766e")
    codes, stored_vector = reopened.codes.get(voice.samples[0].cut_key, "codec") or (None, None)
    assert codes is not None and codes.tolist() == np.arange(20).reshape(10, 2).tolist()
    assert stored_vector is not None and stored_vector.dtype == np.float32 and np.array_equal(stored_vector, vector)
    assert reopened.codes.get(voice.samples[0].cut_key, "another codec") is None


@pytest.mark.parametrize(
    "name", ["", "  ", "..", ".", "a/b", "a\\b", "a\x00b", "a\u202eb", "\ud800", "x" * 101, "anna@2", "Default", "!?"]
)
def test_path_blank_invisible_reserved_or_huge_names_are_refused(library: Library, name: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        library.voices.create(VoiceFields(name=name), [new_sample()])
    assert refusal.value.param == "name"
    assert files(library) == set()


def test_name_equal_to_another_after_case_folding_is_refused(library: Library) -> None:
    library.voices.create(VoiceFields(name="Straße"), [new_sample()])
    for name in ("STRASSE", "strasse", "ＳＴＲＡＳＳＥ", "stra\u200dße"):
        with pytest.raises(NameTaken):
            library.voices.create(VoiceFields(name=name), [new_sample()])


NAMES = ("Ana", "Aná", "安娜", "安那", "Łukasz", "ガラ", "डॉ राम")


def test_different_names_with_one_ascii_form_get_different_slugs(library: Library) -> None:
    slugs = [library.voices.create(VoiceFields(name=name), [new_sample()]).slug for name in NAMES]
    assert slugs == ["ana", "ana-2", "an-na", "an-na-2", "lukasz", "gara", "do-ram"]


def test_edited_transcript_creates_a_revision_and_keeps_the_old_one(library: Library) -> None:
    anna = library.voices.create(VoiceFields(name="Anna"), [new_sample()])
    edited = library.voices.revise("anna", lambda now: [dataclasses.replace(now[0], text="other words")])
    assert edited.address == "anna@2" and edited.samples[0].text == "other words"
    assert edited.samples[0].id == anna.samples[0].id
    assert edited.samples[0].cut_key == anna.samples[0].cut_key, "codes depend on the sound alone"
    assert library.voices.get("anna@1").samples == anna.samples
    assert library.voices.get(f"{anna.id}@2") == library.voices.get("Anna") == edited
    assert [voice.revision for voice in library.voices.revisions("anna")] == [2, 1]
    with pytest.raises(NotFound):
        library.voices.get("anna@3")


def test_unchanged_samples_create_no_revision(library: Library) -> None:
    voice = library.voices.create(VoiceFields(name="Anna"), [new_sample()])
    assert library.voices.revise("anna", lambda now: now) == voice


def test_editing_the_fields_of_a_voice_changes_its_version_but_not_its_revision(library: Library) -> None:
    voice = library.voices.create(VoiceFields(name="Anna", description="old"), [new_sample()])
    edited = library.voices.edit("anna", VoiceFields(name="Berta", favourite=True), voice.version)
    assert (edited.name, edited.slug, edited.description, edited.favourite) == ("Berta", "anna", "old", True)
    assert edited.revision == 1 and edited.version != voice.version
    with pytest.raises(EditConflict):
        library.voices.edit("berta", VoiceFields(name="Carla"), voice.version)
    with pytest.raises(NameTaken):
        library.voices.create(VoiceFields(name="Anna"), [new_sample()])
    assert library.voices.get("anna") == library.voices.get("berta") == edited


@pytest.mark.parametrize(
    "changes",
    [
        *({"defaults": {name: value}} for name, value in [("loudness", 3), ("temperature", float("nan"))]),
        *({"defaults": {name: value}} for name, value in [("top_k", 1.5), ("seed", True)]),
        *({"language": "english please"}, {"tags": ("x",) * 33}, {"description": "x" * 2001}, {"consent": "cons_none"}),
    ],
)
def test_a_bad_field_is_refused_and_changes_nothing(library: Library, changes: dict[str, Any]) -> None:
    voice = library.voices.create(VoiceFields(name="Anna"), [new_sample()])
    with pytest.raises(InvalidRequest):
        library.voices.edit("anna", VoiceFields(**changes))
    assert library.voices.get("anna") == voice


def test_voice_without_samples_or_transcripts_or_with_too_many_is_refused(library: Library) -> None:
    for samples in ([], [new_sample(text=" ")], [new_sample(text="<|im_end|>")], [new_sample()] * 9):
        with pytest.raises(InvalidRequest):
            library.voices.create(VoiceFields(name="Anna"), samples)
    assert library.voices.count() == 0 and files(library) == set()


def test_clip_shared_by_two_voices_is_kept_when_one_is_deleted(library: Library) -> None:
    first = library.voices.create(VoiceFields(name="Anna"), [new_sample()])
    second = library.voices.create(VoiceFields(name="Berta"), [new_sample()])
    assert len(files(library)) == 1
    library.voices.delete(first.id)
    library.trash.empty(None)
    assert library.files.read(second.samples[0].clip) == new_sample().data


def test_search_covers_name_tags_language_and_description_in_any_case(library: Library) -> None:
    anna = VoiceFields(name="Anna", description="Reads NEWS", tags=("calm",), language="en")
    baer = VoiceFields(name="Bärbel", description="reads tales", tags=("calm", "old"), language="de", favourite=True)
    for voice in (anna, baer):
        library.voices.create(voice, [new_sample()])

    def names(query: str = "", **filters: object) -> list[str]:
        return [voice.name for voice in library.voices.page(query, **filters)]  # type: ignore[arg-type]

    assert names() == ["Anna", "Bärbel"]
    assert names("news") == ["Anna"] and names("BÄR") == ["Bärbel"] and names("calm reads") == ["Anna", "Bärbel"]
    assert names("calm de") == ["Bärbel"] and names("%") == []
    assert names(tags=["old"]) == ["Bärbel"] and names(favourite=True) == ["Bärbel"]
    first = library.voices.page(limit=1)
    assert names(after=first[0].id) == ["Bärbel"]


def test_voices_are_filtered_by_gender_accent_and_language(library: Library) -> None:
    facts = {"Anna": ("female", "British", "en-GB"), "Bert": ("male", "british", "en"), "Cleo": ("", "", "eng")}
    for name, (gender, accent, language) in facts.items():
        draft = VoiceFields(name=name, description="a male part", language=language, gender=gender, accent=accent)
        library.voices.create(draft, [new_sample()])

    def names(query: str = "", **filters: str) -> list[str]:
        return [voice.name for voice in library.voices.page(query, **filters)]  # type: ignore[arg-type]

    assert names("male") == ["Bert", "Cleo"] and names("FEMALE") == ["Anna"] and names("brit") == ["Anna", "Bert"]
    assert names(gender=" ", accent=" ", language=" ") == ["Anna", "Bert", "Cleo"]
    assert names(gender="male") == ["Bert"] and names(accent="British") == ["Anna", "Bert"]
    assert names(language="EN") == ["Anna", "Bert"] and names(language="en-gb", gender="female") == ["Anna"]
    offered = library.voices.offered()
    assert (offered["genders"], offered["accents"]) == (["female", "male"], ["British"])
    assert (offered["tags"], offered["languages"]) == ([], ["en", "en-GB", "eng"])
    with pytest.raises(InvalidRequest, match="gender must be female, male, neutral or blank"):
        names(gender="m")


def test_take_search_ignores_case_and_unicode_normalisation(library: Library) -> None:
    for number, text in enumerate(["Да, Grüße, ÜBER", "e\u0301te\u0301 U\u0308ber", "unter"]):
        library.takes.add(take(number, text))

    def ids(query: str) -> list[str]:
        return [row.id for row in library.takes.page(TakeFilter(query))]

    assert ids("да") == ids("ДА,") == ids("ß") == ids("ru\u0308ße") == ["req_0"] and ids("üs") == []
    assert ids("üb") == ids("U\u0308B") == ids("über") == ids("U\u0308BER") == ["req_1", "req_0"]
    assert ids("Ét") == ids("éTé") == ids("e\u0301te\u0301 über") == ["req_1"]
    assert ids("été \u00dcber" + " " * 9) == ["req_1"] and ids("été über und noch mehr") == []
    assert library.takes.count(TakeFilter("üb")) == 2


def test_takes_are_found_by_any_part_of_their_text_newest_first(library: Library) -> None:
    for number, text in enumerate(["one fish", "two FISH", "Grüße 你好世界", "100% _sure_"]):
        library.takes.add(take(number, text, "voice_a" if number % 2 else None), b"sound" if number == 0 else None)

    def ids(query: str = "", after: str | None = None, **more: object) -> list[str]:
        return [row.id for row in library.takes.page(TakeFilter(query, **more), after=after)]  # type: ignore[arg-type]

    assert ids() == ["req_3", "req_2", "req_1", "req_0"]
    assert ids("fish") == ["req_1", "req_0"] and ids("好世") == ["req_2"] and ids("你好世") == ["req_2"]
    assert ids("%") == ["req_3"] and ids('"') == [] and ids("0% _") == ["req_3"]
    assert ids(voice="voice_a") == ["req_3", "req_1"] and ids(after="req_2") == ["req_1", "req_0"]
    assert ids("fish", after="req_1") == ["req_0"]
    library.takes.add(take(9, "The quick brown fox SPRANG over it"))
    assert ids("quick brown fox sprang OVER") == ["req_9"] and ids("quick brown fox springs") == []
    assert library.takes.delete(TakeFilter(ids=("req_9",))) == ["req_9"]
    stored_row = library.takes.get("req_0")
    assert stored_row.audio and library.files.read(stored_row.audio) == b"sound" and stored_row.queue_ms == 1.5
    library.takes.delete(TakeFilter(ids=("req_0",)))
    assert ids("fish") == ["req_1"] and len(files(library)) == 1
    assert library.trash.empty(None) == 2 and files(library) == set()
    assert library.takes.keep_newest(1) == 2 and ids() == ["req_3"]


def test_takes_are_filtered_starred_and_deleted(library: Library) -> None:
    for number in range(6):
        new_take = dataclasses.replace(take(number, f"number {number}"), caller="key b" if number % 2 else "key a")
        library.takes.add(dataclasses.replace(new_take, voice=f"anna-2@{number}" if number < 3 else "random"))

    def ids(**wanted: object) -> list[str]:
        return [row.id for row in library.takes.page(TakeFilter(**wanted))]  # type: ignore[arg-type]

    assert ids(voice="anna-2") == ["req_2", "req_1", "req_0"] and ids(voice="anna-2@1") == ["req_1"]
    assert ids(voice="anna") == [] and ids(voice="random", caller="key b") == ["req_5", "req_3"]
    assert ids(since=1e9 + 2, until=1e9 + 4) == ["req_3", "req_2"]
    assert library.takes.star("req_4", True).starred and ids(starred=True) == ["req_4"]
    assert ids(query="number", starred=False, caller="key a") == ["req_2", "req_0"]
    with pytest.raises(NotFound):
        library.takes.star("req_4", False, "key b")
    assert library.takes.delete(TakeFilter(caller="key b")) == ["req_5", "req_3", "req_1"]
    assert ids() == ["req_4", "req_2", "req_0"] and list(library.takes.numbers(["req_5", "no"])) == ["req_5"]


def test_retention_keeps_starred_takes_and_the_newest_by_count_and_bytes(library: Library) -> None:
    for number in range(8):
        library.takes.add(take(number), b"%d" % number * 100)
    library.takes.star("req_1", True)
    assert library.takes.keep_newest(5) == 2
    assert [row.id for row in library.takes.page()] == [f"req_{n}" for n in (7, 6, 5, 4, 3, 1)]
    assert library.takes.keep_newest(5, 500) == 0 and library.takes.keep_newest(5, 350) == 2
    assert [row.id for row in library.takes.page()] == ["req_7", "req_6", "req_5", "req_1"]
    assert len(files(library)) == 4


def test_consent_is_stored_and_its_deletion_removes_it_from_the_voice(library: Library) -> None:
    consent = library.consents.create(NewConsent("Anna A.", "en", "I agree.", b"recording", "audio/wav"))
    voice = library.voices.create(VoiceFields(name="Anna", consent=consent.id), [new_sample()])
    assert library.consents.get(consent.id) == consent and voice.consent == consent.id
    assert library.consents.rename(consent.id, "Anna B.").name == "Anna B."
    library.consents.delete(consent.id)
    assert library.voices.get("anna").consent is None
    assert len(files(library)) == 1
    with pytest.raises(NotFound):
        library.consents.get(consent.id)


def revise_often(library: Library, times: int) -> None:
    for number in range(times):
        library.voices.revise("anna", lambda now, n=number: [dataclasses.replace(now[0], text=f"words {n}")])  # type: ignore[misc]


def test_oldest_revisions_are_removed_but_no_recording(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voices, "MAX_REVISIONS", 3)
    library.voices.create(VoiceFields(name="Anna"), [new_sample()])
    revise_often(library, 2)
    other = new_sample(wav(tone(0.4)))
    library.voices.revise("anna", lambda _: [other])
    revise_often(library, 5)
    assert [voice.revision for voice in library.voices.revisions("anna")] == [9, 8, 7, 3]
    assert len(files(library)) == 2 and library.voices.get("anna@3").text == "words 1"
    assert [sample.text for sample in library.voices.samples_ever("anna").values()] == ["words 1", "words 4"]
    with pytest.raises(NotFound, match="no revision 4; its newest is 9; the last 3 are kept"):
        library.voices.get("anna@4")
    with pytest.raises(NotFound, match=r"its newest is 9$"):
        library.voices.get("anna@10")


def test_revisions_that_projects_name_are_kept(library: ProjectLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(voices, "MAX_REVISIONS", 2)
    library.voices.create(VoiceFields(name="Anna"), [new_sample()])
    revise_often(library, 1)
    parts = [NewPart("One.", voice="Anna@2"), NewPart("Two.", voice="bella@1")]
    library.projects.create("", "Book", "txt", parts, ProjectSettings(voice="anna@1"))
    revise_often(library, 4)
    assert [voice.revision for voice in library.voices.revisions("anna")] == [5, 4, 2, 1]


def test_page_of_revisions_needs_as_many_queries_as_one_revision(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.voices.create(VoiceFields(name="Anna"), [new_sample()])
    revise_often(library, 20)
    count = 0

    def counted(connection: sqlite3.Connection, *statement: Any) -> sqlite3.Cursor:
        nonlocal count
        count += 1
        return sqlite3.Connection.execute(connection, *statement)

    monkeypatch.setattr(store._Connection, "execute", counted)
    used = []
    for limit in (1, 20):
        count = 0
        page = library.voices.revisions("anna", limit, after=21)
        assert [voice.revision for voice in page] == list(range(20, 20 - limit, -1))
        assert [voice.text for voice in page][:1] == ["words 18"]
        used.append(count)
    assert used[0] == used[1]


def test_clips_and_consents_are_written_before_the_lock_is_taken(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []

    def write(path: Path, pieces: Sequence[bytes]) -> None:
        # Other threads of the library write for a moment at a time; a lock held while this waits never opens.
        with contextlib.closing(sqlite3.connect(library.home / "library.db", timeout=2)) as other:
            other.execute("begin immediate")
        path.write_bytes(b"".join(pieces))
        written.append(path)

    monkeypatch.setattr(audio_files, "_write_synced", write)
    consent = NewConsent("Anna", recording=b"I agree.")
    library.voices.create(VoiceFields(name="Anna"), [new_sample()], consent=consent)
    second = new_sample(wav(tone(0.4)))
    library.voices.revise("anna", lambda now: [*now, second])
    library.consents.create(NewConsent("Bert", recording=b"I agree too."))
    assert len(written) == 4 == len(files(library))
    for damage in (lambda path: path.unlink(), lambda path: path.write_bytes(b"noise")):
        damage(library.files.path(second.clip))
        assert library.voices.mend(second.data) and not library.voices.mend(second.data)
    assert len(written) == 6 and len(files(library)) == 4
    assert [len(library.voices.clip(sample)) for sample in library.voices.get("anna").samples] == [
        len(new_sample().data),
        len(second.data),
    ]


def test_revision_of_a_voice_that_is_changed_meanwhile_begins_again(library: Library) -> None:
    library.voices.create(VoiceFields(name="Anna"), [new_sample()])
    second, third = new_sample(wav(tone(0.4))), new_sample(wav(tone(0.5)))
    calls = 0

    def add(now: tuple[Sample, ...]) -> Sequence[Sample | NewSample]:
        nonlocal calls
        calls += 1
        if calls == 1:
            library.voices.revise("anna", lambda now: [*now, third])
        return [*now, second]

    assert [sample.size for sample in library.voices.revise("anna", add).samples] == [
        len(new.data) for new in (new_sample(), third, second)
    ]
    assert calls == 2 and len(files(library)) == 3


def test_audit_trail_records_every_change(library: Library) -> None:
    voice = library.voices.create(VoiceFields(name="Anna"), [new_sample()])
    library.voices.edit("anna", VoiceFields(description="x"))
    library.voices.revise("anna", lambda now: [dataclasses.replace(now[0], text="other")])
    library.voices.delete("anna")
    library.voices.restore(voice.id)
    events = [entry.event for entry in library.audit.entries(voice.id)]
    assert events == ["voice.create", "voice.edit", "voice.revise", "voice.delete", "voice.restore"]


def test_audit_trail_is_bounded_and_keeps_consents(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.library.consents.MAX_ENTRIES", 3)
    consent = library.consents.create(NewConsent("Anna"))
    library.voices.create(VoiceFields(name="Anna"), [new_sample()], "voice.bundled", bundled=True)
    for text in "abcde":
        library.voices.edit("anna", VoiceFields(description=text))
    entries = library.audit.entries()
    assert [entry.event for entry in entries] == ["consent.create", "voice.bundled", *["voice.edit"] * 3]
    assert entries[0].subject == consent.id and [entry.n for entry in entries] == [1, 2, 5, 6, 7]


def test_stored_codes_are_not_overwritten(library: Library) -> None:
    library.codes.put("cut", "codec", np.zeros((10, 2), np.int16))
    library.codes.put("cut", "codec", np.ones((10, 2), np.int16))
    cached = library.codes.get("cut", "codec")
    assert cached is not None and not cached[0].any() and cached[1] is None


def test_damaged_audio_file_is_detected_and_whole_once_it_is_stored_again(library: Library) -> None:
    voice = library.voices.create(VoiceFields(name="Anna"), [new_sample()])
    library.files.path(voice.samples[0].clip).write_bytes(b"something else")
    with pytest.raises(StudioError, match="damaged"):
        library.files.read(voice.samples[0].clip)
    again = library.voices.create(VoiceFields(name="Bert"), [new_sample()])
    assert again.samples[0].clip == voice.samples[0].clip and library.voices.clip(voice.samples[0])


@pytest.mark.posix  # Windows does not rename an open file
def test_library_with_a_missing_or_replaced_file_refuses_writes(library: Library) -> None:
    path = library.store.path
    path.rename(path.with_name("moved.db"))
    for _ in range(2):
        with pytest.raises(LibraryUnavailable, match="cannot be opened"):
            library.pronunciations.add(GLOBAL, Pronunciation("Nguyen", "win"))
        path.touch()
    path.unlink()
    path.with_name("moved.db").rename(path)
    library.pronunciations.add(GLOBAL, Pronunciation("Nguyen", "win"))


def test_read_view_is_consistent_and_does_not_wait_for_writers(library: Library) -> None:
    sample, store = new_sample(), library.store
    library.voices.create(VoiceFields(name="Eve"), [sample])

    def busy_timeout() -> int:
        with store.reading() as db:
            return int(db.execute("pragma busy_timeout").fetchone()[0])

    with store.one_view():
        assert library.voices.exists("eve") and busy_timeout() == 0
        with ThreadPoolExecutor(1) as thread:
            thread.submit(library.voices.create, VoiceFields(name="Ada"), [sample]).result()
            assert thread.submit(library.voices.exists, "ada").result()
        assert not library.voices.exists("ada")
    assert library.voices.exists("ada") and busy_timeout() == 60_000
    with pytest.raises(NotFound), store.one_view():
        library.voices.get("nobody")
    assert library.voices.get("ada").name == "Ada" and busy_timeout() == 60_000


def test_closed_library_is_one_file_and_can_be_opened_again(library: Library) -> None:
    voice = library.voices.create(VoiceFields(name="Anna"), [new_sample()])
    with library.store.one_view():
        assert library.voices.get("anna") == voice
    library.store.close()
    assert [path.name for path in library.home.glob("library.db*")] == ["library.db"]
    assert library.voices.get("anna") == voice


def test_voice_defaults_have_the_engines_limits() -> None:
    assert (checks.MAX_SEED, checks.MAX_TOP_K) == (engine.MAX_SEED, engine.MAX_TOP_K)


ALONE = """
import sys
from pathlib import Path
from studio.library import Backup, Library, TakeFilter
from studio.library.take import Take

home, copies = Path(sys.argv[1]), Path(sys.argv[2])
library, backup = Library(home), Backup(home, copies)
library.takes.add(Take("take_one", 1.0, "anna", 1, text="One."), b"sound")
assert library.takes.get("take_one").text == "One."
backup.snapshot()
library.takes.delete(TakeFilter())
assert library.trash.empty(None) == 1
assert not [name for name in sys.modules if name.startswith("longform")]
"""


def test_library_without_projects_stores_takes_and_gets_projects_later(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ALONE, str(tmp_path / "home"), str(tmp_path / "copies")]
    subprocess.run(command, cwd=ROOT, check=True)
    library = ProjectLibrary(tmp_path / "home")
    project = library.projects.create("me", "Book", "txt", [NewPart("One.")], ProjectSettings())
    assert [part.text for part in library.projects.parts(project.id, None)] == ["One."]
    assert not Backup(tmp_path / "home", tmp_path / "copies").restore()

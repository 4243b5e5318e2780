"""The bundled voices: imported once, updated with the studio, unchanged where somebody has edited them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from studio.errors import SettingsError
from studio.library import Library, VoiceFields
from studio.settings import Settings
from studio.voices.bundled import import_bundled, read_aliases, read_facts
from studio.voices.intake import take_in
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve
from tests.studio.sounds import tone, wav


def bundle(folder: Path, **hertz: float) -> Path:
    for name, pitch in hertz.items():
        (folder / f"{name}.wav").write_bytes(wav(tone(1.5, hertz=pitch)))
        (folder / f"{name}.txt").write_text(f"My name is {name}.\n")
    return folder


def test_new_bundled_recording_becomes_the_next_revision_and_the_old_one_stays(tmp_path: Path) -> None:
    library, folder = Library(tmp_path / "home"), bundle(tmp_path, anna=300)
    import_bundled(library, folder)
    old = library.voices.get("anna")
    library.voices.edit("anna", VoiceFields(name="Anna of the house"))
    for _ in range(2):  # once each
        import_bundled(library, bundle(folder, anna=200))
    voice = library.voices.get(old.id)
    assert (voice.name, voice.bundled, voice.revision) == ("Anna of the house", True, 2)
    assert voice.samples != old.samples and library.voices.get(f"{old.id}@1").samples == old.samples
    import_bundled(library, bundle(folder, anna=250))
    assert library.voices.get(old.id).revision == 3


@pytest.mark.posix
def test_pipe_in_place_of_a_clip_is_not_opened(tmp_path: Path) -> None:
    library, folder = Library(tmp_path / "home"), bundle(tmp_path, bert=150)
    os.mkfifo(folder / "anna.wav")
    (folder / "anna.txt").write_text("My name is Anna.\n")
    import_bundled(library, folder)
    assert [voice.name for voice in library.voices.page()] == ["Bert"]


def test_endless_files_are_refused_by_their_size(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    library, folder = Library(tmp_path / "home"), bundle(tmp_path, anna=300, bert=150, cleo=200)
    os.truncate(folder / "anna.wav", 2**28)  # sparse: they take no room
    os.truncate(folder / "cleo.txt", 2**28)
    import_bundled(library, folder)
    assert [voice.name for voice in library.voices.page()] == ["Bert"]
    assert "anna.wav has more than" in caplog.text and "cleo.txt has more than" in caplog.text
    for name, read in (("aliases.json", read_aliases), ("facts.json", read_facts)):
        (folder / name).write_bytes(b"")
        os.truncate(folder / name, 2**28)
        with pytest.raises(SettingsError, match=f"{name} has more than"):
            read(folder)


def test_a_folder_without_voices_is_named_and_endings_may_be_capitals(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library, folder = Library(tmp_path / "home"), tmp_path / "voices"
    bundle(tmp_path, anna=300)
    folder.mkdir()
    import_bundled(library, folder)
    assert f"{folder} has no bundled voices" in caplog.text
    for name in ("anna.wav", "anna.txt"):
        (tmp_path / name).rename(folder / name.replace("wav", "WAV"))
    import_bundled(library, folder)
    assert library.voices.get("anna").bundled


def test_missing_or_unreadable_file_refuses_only_its_voice(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    library, folder = Library(tmp_path / "home"), bundle(tmp_path, anna=300, bert=150)
    (folder / "anna.txt").write_bytes("Ich heiße Anna.".encode("latin-1"))
    (bundle(folder, cleo=200) / "cleo.txt").unlink()
    (folder / "facts.json").write_text('{"bert": {}, "dora": {}, "eve": {}}')
    import_bundled(library, folder)
    assert [voice.name for voice in library.voices.page()] == ["Bert"]
    assert "anna.wav cannot be used: the file anna.txt is not UTF-8" in caplog.text
    assert "cleo.wav cannot be used: cleo.txt is missing" in caplog.text
    assert "has no recordings of the bundled voices Dora, Eve" in caplog.text


@pytest.mark.linux
def test_files_that_cannot_be_read_refuse_only_their_voices_or_are_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library, folder = Library(tmp_path / "home"), bundle(tmp_path, anna=300, bert=150, cleo=200)
    for name in ("anna.wav", "cleo.txt", "aliases.json"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to("/proc/self/mem")  # which fails at its first byte, as a broken disk does
    import_bundled(library, folder)
    assert [voice.name for voice in library.voices.page()] == ["Bert"]
    assert "anna.wav cannot be read: Input/output error" in caplog.text
    assert "the file cleo.txt cannot be read: Input/output error" in caplog.text
    with pytest.raises(SettingsError, match=r"STUDIO_VOICES: .*aliases.json cannot be read"):
        read_aliases(folder)


def test_bundled_voice_with_the_owners_recording_is_not_updated(tmp_path: Path) -> None:
    library, folder = Library(tmp_path / "home"), bundle(tmp_path, anna=300)
    import_bundled(library, folder)
    mine = take_in(wav(tone(2.0, hertz=180)), "Mine.").sample("Mine.")
    library.voices.revise("anna", lambda _: [mine])
    import_bundled(library, bundle(folder, anna=200))
    voice = library.voices.get("anna")
    assert (voice.revision, voice.samples[0].text) == (2, "Mine.")


def test_deleted_voice_is_not_restored_by_a_new_recording(tmp_path: Path) -> None:
    library, folder = Library(tmp_path / "home"), bundle(tmp_path, anna=300, bert=150)
    import_bundled(library, folder)
    library.voices.delete("anna")
    import_bundled(library, bundle(folder, anna=200, carl=120))
    assert [voice.name for voice in library.voices.page()] == ["Bert", "Carl"]


def write_facts(folder: Path, **anna: object) -> Path:
    (folder / "facts.json").write_text(json.dumps({"anna": anna, "nobody": {"gender": "male"}}))
    return folder


def test_facts_of_a_bundled_voice_are_updated_except_those_the_owner_changed(tmp_path: Path) -> None:
    library, folder = Library(tmp_path / "home"), bundle(tmp_path, anna=300)
    import_bundled(library, folder)  # as an older studio without facts did
    library.voices.edit("anna", VoiceFields(name="Ann", tags=("mine",)))
    for _ in range(2):
        import_bundled(library, write_facts(folder, gender="female", accent="Irish", tags=["low"], description="Low."))
    voice = library.voices.get("ann")
    assert (voice.gender, voice.accent, voice.tags, voice.description) == ("female", "Irish", ("mine",), "Low.")
    assert voice.revision == 1 and voice.version == 3
    library.voices.edit("ann", VoiceFields(description="", accent="Scottish"))
    import_bundled(library, write_facts(folder, gender="neutral", accent="Welsh", tags=["high"], description="High."))
    voice = library.voices.get("ann")
    assert (voice.gender, voice.accent, voice.tags, voice.description) == ("neutral", "Scottish", ("mine",), "")
    library.voices.delete("ann")
    import_bundled(library, write_facts(folder, gender="female"))


def test_unknown_fact_stops_the_start_and_an_invalid_value_is_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    library, folder = Library(tmp_path / "home"), bundle(tmp_path, anna=300)
    with pytest.raises(SettingsError, match=r"facts\.json is wrong at anna\.sex"):
        import_bundled(library, write_facts(folder, sex="female"))
    import_bundled(library, write_facts(folder, gender="woman"))
    assert library.voices.get("anna").gender == ""
    assert "about Anna are invalid and ignored: gender must be female" in caplog.text


def test_every_voice_of_the_bundled_model_is_described(tmp_path: Path) -> None:
    folder, library = Path(Settings().voices), Library(tmp_path)
    assert read_facts(folder).keys() == {clip.stem for clip in folder.glob("*.wav")}
    import_bundled(library, folder)
    for voice in library.voices.page():
        assert voice.gender and voice.accent and voice.language and voice.description and voice.tags and voice.colour
    clara = {"name": "Clara", "gender": "female", "accent": "American", "language": "en-US"}
    assert {field: getattr(library.voices.get("clara"), field) for field in clara} == clara


@pytest.mark.parametrize(("starred", "first"), [(None, "bert"), ("carl", "carl")])
def test_page_starts_with_the_default_voice_or_a_favourite(tmp_path: Path, starred: str | None, first: str) -> None:
    folder = bundle(tmp_path, anna=300, bert=150, carl=120)
    (folder / "aliases.json").write_text(json.dumps({"default": ["bert"]}))
    if starred:
        library = Library(tmp_path / "home")
        import_bundled(library, folder)
        library.voices.edit(starred, VoiceFields(favourite=True))
    settings = Settings(model="test/model", voices=str(folder), home=str(tmp_path / "home"))
    with serve(settings, FakeEngine.start, page=True) as served, served.client() as client:
        parts = client.get("/config").json()["components"]
        assert client.get("/v1/audio/voices").json()["first_choice"] == first
    (value,) = [part["props"]["value"] for part in parts if part["props"].get("elem_id") == "voice"]
    assert value == first

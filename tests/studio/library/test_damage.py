"""A damaged library: a start reports it in one sentence, and errors name the damaged voice."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

from launch.startup import create_app
from studio.errors import SettingsError
from studio.library import Library, VoiceFields
from studio.settings import Settings, read_keys
from studio.voices.bundled import import_bundled
from tests.studio.answers import assert_envelope
from tests.studio.clips import new_sample
from tests.studio.conftest import Steered

Steer = Callable[..., Steered]


@pytest.mark.parametrize("table", ["audit", "voices", "samples", "takes", "projects"])
def test_damaged_database_page_stops_the_start_with_a_message(table: str, tmp_path: Path, voices_folder: Path) -> None:
    voices = shutil.copytree(voices_folder, tmp_path / "voices")
    (voices / "facts.json").write_text(
        '{"Anna": {"accent": "American"}}'
    )  # compared at the start with the voice's own facts
    home = tmp_path / "home"
    library = Library(home)
    import_bundled(library, voices)
    library.store.close()
    with sqlite3.connect(library.store.path) as db:
        [root] = db.execute("select rootpage from sqlite_master where name = ?", [table]).fetchone()
        [size] = db.execute("pragma page_size").fetchone()
    db.close()
    del library
    with (home / "library.db").open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    keys = read_keys("a key of sixteen signs")
    settings = Settings(home=str(home), voices=str(voices), page=False, api_keys=keys)
    with pytest.raises(SettingsError, match=r"the library is damaged; move .* \(STUDIO_HOME="):
        create_app(settings)


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_bytes(b"noise")])
def test_damaged_recording_of_a_bundled_voice_is_restored(
    damage: Callable[[Path], object], tmp_path: Path, voices_folder: Path, steered: Steer
) -> None:
    library = Library(tmp_path)
    import_bundled(library, voices_folder)
    damage(library.files.path(library.voices.get("anna").samples[0].clip))
    served, _ = steered(home=str(tmp_path))
    with served.client() as client:
        assert speak(client, "anna").status_code == 200
        assert client.get("/v1/voices/anna").json()["revision"] == 1
    assert library.files.read(library.voices.get("anna").samples[0].clip)


def test_error_names_the_damaged_voice(tmp_path: Path, steered: Steer) -> None:
    library = Library(tmp_path)
    voice = library.voices.create(VoiceFields(name="Eve"), [new_sample()])
    library.files.path(voice.samples[0].clip).write_bytes(b"noise")
    served, _ = steered(home=str(tmp_path))
    with served.client() as client:
        sample = f"/v1/voices/eve/samples/{voice.samples[0].id}"
        for refused in (speak(client, "eve"), client.get(f"{sample}/audio"), client.get("/v1/voices/eve/export")):
            assert_envelope(refused, 409, "voice")
            assert "a recording of the voice Eve cannot be used" in refused.text and "restore a backup" in refused.text
        assert speak(client, "anna").status_code == 200


def speak(client: httpx.Client, voice: str) -> httpx.Response:
    return client.post("/v1/audio/speech", json={"input": "Two words.", "voice": voice})

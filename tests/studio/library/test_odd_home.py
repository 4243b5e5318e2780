"""A studio's folder with something else under the names that the studio uses: it starts, or says what is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from launch.startup import create_app
from studio.errors import SettingsError
from studio.library import Library
from studio.models.catalogue import BUNDLED_FOLDER
from studio.models.model_choice import starting_model
from studio.settings import Settings


@pytest.mark.posix
def test_pipes_in_place_of_files_do_not_block_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("model.json", "reserve"):
        os.mkfifo(tmp_path / name)
    first = starting_model(Settings(home=str(tmp_path)))
    assert first.model == BUNDLED_FOLDER and "model.json in STUDIO_HOME names no model" in (first.problem or "")
    (tmp_path / "model.json").unlink()
    for choice, problem in (('""', "not found: ''"), ("null", "names no model"), ("7", "names no model")):
        (tmp_path / "model.json").write_text(f'{{"model": {choice}}}')
        first = starting_model(Settings(home=str(tmp_path)))
        assert first.model == BUNDLED_FOLDER and problem in (first.problem or "")
    (tmp_path / "model.json").unlink()
    library = Library(tmp_path)
    assert library.voices.page() == [] and f"{tmp_path / 'reserve'} is not a regular file" in caplog.text


@pytest.mark.parametrize("backup", [False, True])
def test_a_file_for_a_folder_or_a_folder_for_a_file_is_named(tmp_path: Path, backup: bool) -> None:
    for name, why in (
        ("audio", r"folder is needed here.*move that file away: '.*audio'"),
        ("library.db", "library.db"),
    ):
        home = tmp_path / name
        home.mkdir()
        if name == "audio":
            (home / name).write_bytes(b"")
        else:
            (home / name).mkdir()
        settings = Settings(home=str(home), backup_dir=str(tmp_path / "backup") if backup else None, page=False)
        with pytest.raises(SettingsError, match=why):
            create_app(settings)


@pytest.mark.posix
def test_link_to_a_disk_that_is_not_connected_is_named(tmp_path: Path) -> None:
    (tmp_path / "disk").symlink_to(tmp_path / "unmounted")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "audio").symlink_to(tmp_path / "unmounted" / "audio")
    for home in ("home", "disk", "disk/below"):
        with pytest.raises(OSError, match=r"(audio|disk) is a link to .*unmounted.*, which is missing"):
            Library(tmp_path / home)

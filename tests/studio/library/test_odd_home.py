"""A studio's folder with something else under the names that the studio uses: it starts, or says what is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from studio.library import Library
from studio.models.model_choice import read_choice


@pytest.mark.posix
def test_pipes_in_place_of_files_do_not_block_the_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("model.json", "reserve"):
        os.mkfifo(tmp_path / name)
    assert read_choice(str(tmp_path)) is None
    library = Library(tmp_path)
    assert library.voices.page() == [] and f"{tmp_path / 'reserve'} is not a regular file" in caplog.text


def test_file_in_place_of_the_audio_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "audio").write_bytes(b"")
    with pytest.raises(OSError, match=r"folder is needed here.*move that file away: '.*audio'"):
        Library(tmp_path)


@pytest.mark.posix
def test_link_to_a_disk_that_is_not_connected_is_named(tmp_path: Path) -> None:
    (tmp_path / "disk").symlink_to(tmp_path / "unmounted")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "audio").symlink_to(tmp_path / "unmounted" / "audio")
    for home in ("home", "disk", "disk/below"):
        with pytest.raises(OSError, match=r"(audio|disk) is a link to .*unmounted.*, which is missing"):
            Library(tmp_path / home)

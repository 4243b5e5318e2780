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

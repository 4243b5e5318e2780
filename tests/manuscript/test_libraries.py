"""The libraries' README examples and programs work, and the page's copy of their data is the same."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from studio import ROOT
from tests.studio.sounds import tone, wav


@pytest.mark.parametrize("library", ["audio", "manuscript", "speechtext"])
def test_the_example_in_the_readme_runs(library: str) -> None:
    [example] = re.findall(r"```python\n(.*?)```", (ROOT / library / "README.md").read_text("utf-8"), re.DOTALL)
    subprocess.run([sys.executable, "-c", example], cwd=ROOT, check=True, timeout=120)


def test_text_is_printed_as_it_is_said() -> None:
    command = [sys.executable, "-m", "speechtext", "**At 5 p.m.** he paid $3.50 [pause:1s] for tea."]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines() == [
        "At five PM he paid three dollars and fifty cents",
        "[1 s of silence]",
        "for tea.",
    ]


def test_chapters_and_speakers_of_a_document_are_printed(tmp_path: Path) -> None:
    book = tmp_path / "book.md"
    book.write_text('# One\n\n"Come in," said Mrs. Hale.\n\n# Two\n\n"Thank you," said Tom.')
    command = [sys.executable, "-m", "manuscript", str(book)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert all(name in done.stdout for name in ("One", "Two", "Mrs. Hale", "Tom"))
    command[-1] = str(tmp_path / "missing.md")
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert refused.returncode == 1 and "missing.md" in refused.stderr


def test_loudness_of_a_clip_is_printed(tmp_path: Path) -> None:
    clip = tmp_path / "clip.wav"
    clip.write_bytes(wav(tone(2.0)))
    command = [sys.executable, "-m", "audio", str(clip)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.startswith("wav, 2.00 s") and "LUFS" in done.stdout and "\nacx: " in done.stdout
    clip.write_bytes(b"no sound")
    refused = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert refused.returncode == 1 and "not readable audio" in refused.stderr


def test_page_guesses_genders_by_the_same_names() -> None:
    own = (ROOT / "manuscript" / "given-names.json").read_bytes()
    assert own == (ROOT / "assets" / "page" / "lib" / "given-names.json").read_bytes()

"""The libraries in the tree: built from these sources, loadable here, and explained where they are missing."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from engine.native import build, library
from tests.records import Record, digest

RECORD = Record(Path(__file__).with_name("built.json"))
"""By library, a digest of itself, its sources and its compiler. Building it again takes seconds and gives the same
bytes, so it is repeated only for another digest, and written here, to be committed with the library."""


def test_every_platform_has_a_small_library() -> None:
    files = {file.name: file.stat().st_size for file in library.FOLDER.iterdir()}
    assert files.keys() == {each.file for each in build.PLATFORMS}
    assert max(files.values()) < 400_000


def test_the_library_of_this_machine_is_loaded() -> None:
    name = library.file_name(sys.platform, platform.machine())
    assert name in {each.file for each in build.PLATFORMS}
    assert library.library() is not None and library.problem() is None


@pytest.mark.parametrize(
    ("system", "machine", "name"),
    [
        ("linux", "x86_64", "linux-x86_64.so"),
        ("linux", "aarch64", "linux-aarch64.so"),
        ("darwin", "arm64", "macos-arm64.dylib"),
        ("darwin", "x86_64", "macos-x86_64.dylib"),
        ("win32", "AMD64", "windows-x86_64.dll"),
        ("win32", "ARM64", None),
        ("linux", "riscv64", None),
        ("freebsd14", "amd64", None),
    ],
)
def test_platforms_and_their_files(system: str, machine: str, name: str | None) -> None:
    assert library.file_name(system, machine) == name


@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_a_library_that_cannot_be_loaded_is_explained(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = library.file_name(sys.platform, platform.machine())
    assert name is not None
    if damage == "damaged":
        (tmp_path / name).write_bytes(b"not a library")
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    native, problem = library._loaded.__wrapped__()
    assert native is None
    assert problem is not None and problem.startswith(f"{name} cannot be loaded: ")


def digest_of(file: Path) -> str:
    """Of the library, and of everything from which it is built: sources, commands and the compiler's version."""
    files = file, Path(build.__file__), *sorted(build.SOURCES.iterdir())
    return digest(version("ziglang"), *(path.read_bytes() for path in files))


@pytest.mark.parametrize(
    "each", [each for each in build.PLATFORMS if "windows" not in each.file], ids=lambda each: each.file
)
def test_sources_give_the_libraries_byte_for_byte(each: build.Platform, tmp_path: Path) -> None:
    """The release rebuilds all of them, and that for Windows, for which the compiler first builds its C library."""
    file = library.FOLDER / each.file
    if RECORD.has(each.file, digest_of(file)):
        return
    (built,) = build.build(tmp_path, [each])
    assert built.read_bytes() == file.read_bytes()
    RECORD.add(**{each.file: digest_of(file)})

"""Folders of fish-speech's references become voices: from the command line, as a zip and as files of a browser."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from launch.library_command import main
from studio.errors import InvalidPack, TooCostly
from studio.library import Library
from studio.voices import reference_folder
from studio.voices.intake import Intake, take_in
from studio.voices.reference_folder import import_archive, import_references
from tests.environment import unprivileged
from tests.studio.clips import WORDS, spoken
from tests.studio.conftest import Steered
from tests.studio.sounds import tone, wav

Steer = Callable[..., Steered]
CLIP = spoken()
GOOD = {
    "Cleo/1.wav": CLIP,
    "Cleo/1.lab": WORDS.encode(),
    "Cleo/2.WAV": wav(tone(2)),
    "Cleo/2.lab": b"\xef\xbb\xbfA tone.",
}
BAD = {
    "Cleo/3.mp3": b"nonsense",
    "Cleo/3.lab": b"Words.",
    "Cleo/4.wav": wav(tone(31)),
    "Cleo/4.lab": b"Words.",
    "Cleo/5.wav": CLIP,
    "Cleo/6.wav": CLIP,
    "Cleo/6.lab": b" ",
    "Cleo/7.wav": CLIP,
    "Cleo/7.lab": b"\xff",
    "Dora/1.wav": CLIP,
    "anna/1.wav": CLIP,
    "anna/1.lab": b"Words.",
    "default/1.wav": CLIP,
    "default/1.lab": b"Words.",
}
WHY = {
    "Cleo/3.mp3": "audio",
    "Cleo/4.wav": "30 s",
    "Cleo/5.wav": "the transcript is missing: 5.lab",
    "Cleo/6.wav": "blank",
    "Cleo/7.wav": "UTF-8",
    "Dora/1.wav": "the transcript is missing: 1.lab",
    "Dora": "none of its recordings",
    "anna": "already exists",
    "default": "reserved",
}
LEFT_ALONE = {"notes.txt": b"a", "__MACOSX/Cleo/1.wav": b"a", "Cleo/.hidden.wav": b"a", "Cleo/1.npy": b"a"}


def zipped(files: dict[str, bytes], above: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(above + name, data)
    return buffer.getvalue()


def written(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def check(voices: list[Any], refused: dict[str, str], above: str) -> None:
    (voice,) = voices
    assert voice["name"] == "Cleo"
    assert [sample["text"] for sample in voice["samples"]] == [WORDS, "A tone."]
    assert refused.keys() == {above + path for path in WHY}
    for path, words in WHY.items():
        assert words in refused[above + path], path


@pytest.mark.parametrize("kind", ["zip", "files"])
def test_folder_can_be_uploaded_as_a_zip_or_as_files(steered: Steer, kind: str) -> None:
    served, _ = steered()
    files = GOOD | BAD | LEFT_ALONE
    if kind == "zip":
        sent: Any = {"file": ("references.zip", zipped(files, "references/"))}
    else:
        sent = [("file", (f"references/{name}", data)) for name, data in files.items()]
    with served.client() as client:
        answer = client.post("/v1/voices/import", files=sent)
        assert answer.status_code == 200, answer.text
        refused = {refusal["name"]: refusal["message"] for refusal in answer.json()["refused"]}
        check(answer.json()["data"], refused, "references/")
        assert client.post("/v1/audio/speech", json={"input": "Hi.", "voice": "cleo"}).status_code == 200
        again = client.post("/v1/voices/import", files=sent)
        assert again.status_code == 400 and "already exists" in again.json()["error"]["message"]
        named = client.post("/v1/voices/import", files=sent, data={"name": "Other"})
        assert named.status_code == 400 and named.json()["error"]["param"] == "name"
        assert len(client.get("/v1/voices").json()["data"]) == 3


def run(home: Path, *arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(["voices", "import-references", "--home", str(home), "--json", *arguments])
    return status, out.getvalue(), err.getvalue()


@pytest.mark.posix
def test_command_line_reads_a_folder_of_one_or_many_voices(tmp_path: Path) -> None:
    folder = written(tmp_path / "references", GOOD | BAD | LEFT_ALONE)
    (folder / "anna").rename(folder / "cleo")  # another voice of that name
    os.mkfifo(folder / "Cleo" / "pipe.wav")
    (folder / "Cleo" / "pipe.lab").write_text("Words.")
    status, out, err = run(tmp_path / "home", str(folder))
    assert status == 0 and [voice["name"] for voice in json.loads(out)] == ["Cleo"]
    assert len(err.splitlines()) == len(WHY) + 1 and "references/cleo: a voice named 'cleo' already exists" in err
    assert "references/Cleo/pipe.wav: " in err
    status, out, _ = run(tmp_path / "other", str(folder / "Cleo"))
    assert status == 0 and [sample["text"] for sample in json.loads(out)[0]["samples"]] == [WORDS, "A tone."]
    assert run(tmp_path / "other", str(folder / "nothing"))[0] == 1
    assert "no folders with recordings" in run(tmp_path / "other", str(tmp_path / "home"))[2]


@pytest.mark.posix
def test_folders_that_cannot_be_opened_are_named() -> None:
    with unprivileged(), tempfile.TemporaryDirectory() as parent:
        folder = written(Path(parent, "references"), GOOD | {"Shut/1.wav": CLIP, "Listed/1.wav": CLIP})
        for name, mode in (("Shut", 0), ("Listed", 0o444)):
            (folder / name).chmod(mode)
        try:
            status, out, err = run(Path(parent, "home"), str(folder))
            alone = run(Path(parent, "home"), str(folder / "Shut"))
        finally:
            for name in ("Shut", "Listed"):
                (folder / name).chmod(0o755)
    assert status == 0 and [voice["name"] for voice in json.loads(out)] == ["Cleo"]
    for name, why in (("Shut", "it cannot be opened"), ("Listed", "none of its recordings can be used")):
        assert f"references/{name}: {why}" in err
    assert alone[0] == 1 and "Shut: it cannot be opened: Permission denied" in alone[2]


def test_voice_may_have_the_maximum_number_of_recordings(tmp_path: Path) -> None:
    many = {f"Cleo/{number}.{kind}": data for number in range(9) for kind, data in (("wav", CLIP), ("lab", b"Words."))}
    imported = import_archive(Library(tmp_path), zipped(many))
    assert len(imported.voices[0].samples) == 8 and "at most 8 recordings" in imported.refused["Cleo/8.wav"]
    long = {
        f"Eve/{number}.{kind}": data for number in range(4) for kind, data in (("wav", wav(tone(29))), ("lab", b"a"))
    }
    imported = import_archive(Library(tmp_path), zipped(long))
    assert len(imported.voices[0].samples) == 3 and "at most 90 s long in total" in imported.refused["Eve/3.wav"]


def test_slow_import_stops_only_between_voices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No voice is imported with only some of its recordings."""
    library = Library(tmp_path)
    clip = take_in(CLIP, "a")
    steps: Iterator[Intake | TooCostly] = iter([clip, clip, clip, TooCostly("it took too long")])

    def step(data: bytes, text: str) -> Intake:
        step = next(steps)
        if isinstance(step, TooCostly):
            raise step
        return step

    monkeypatch.setattr(reference_folder, "take_in", step)
    files = {f"{name}/{number}.{kind}": b"a" for name in "ABC" for number in (1, 2) for kind in ("wav", "lab")}
    imported = import_archive(library, zipped(files))
    assert [len(voice.samples) for voice in imported.voices] == [2]
    assert imported.refused == {"B": "it took too long", "C": "it took too long"}
    assert [voice.name for voice in library.voices.page()] == ["A"]


def test_oversized_archives_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = Library(tmp_path)
    zeros = {"Cleo/1.wav": bytes(11 * 2**20), "Cleo/1.lab": b"a"}
    with pytest.raises(InvalidPack, match="more than the allowed 10485760 bytes"):
        import_archive(library, zipped(zeros))
    monkeypatch.setattr(reference_folder, "MAX_UNPACKED", len(CLIP))
    imported = import_archive(library, zipped({"A/1.wav": CLIP, "A/1.lab": b"a", "B/1.wav": CLIP, "B/1.lab": b"b"}))
    assert [voice.name for voice in imported.voices] == ["A"] and "unpack to more" in imported.refused["B/1.wav"]
    with pytest.raises(InvalidPack, match="entries"):
        import_archive(library, zipped({f"A/{number}.wav": b"" for number in range(2001)}))
    with pytest.raises(InvalidPack, match="no folders with recordings"):
        import_references(library, {})
    assert len(library.voices.page()) == 1

"""The command line as used by scripts: fish-voice-studio voices …"""

from __future__ import annotations

import errno
import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from time import time
from typing import Any

import pytest

from launch import main as start_command
from launch.library_command import main
from longform.library.project_repository import ProjectLibrary
from studio import ROOT
from studio.library import Library
from studio.library.trash import DAY
from tests.studio.clips import WORDS, file_of, samples_of, spoken


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "eve.wav").write_bytes(spoken())
    return tmp_path


def run(home: Path, *arguments: str, topic: str = "voices") -> subprocess.CompletedProcess[str]:
    """Run the command in this process, because importing its modules takes longer than its work."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("STUDIO_HOME", str(home / "library"))
        patch.chdir(ROOT)
        try:
            status = main([topic, *arguments])
        except SystemExit as mistyped:
            status = int(mistyped.code or 0)
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


def run_apart(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a separate process, as a shell does, in which Python does not look for modules beside it."""
    command = [sys.executable, "app.py", "voices", *arguments]
    environment = os.environ | {"STUDIO_HOME": str(home / "library"), "PYTHONSAFEPATH": "1"}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)


def json_output(home: Path, *arguments: str, topic: str = "voices") -> Any:
    done = run(home, *arguments, "--json", topic=topic)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_voice_is_added_listed_shown_moved_deleted_and_restored(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(home))
    added = json_output(home, "add", "Eve", str(home / "eve.wav"), "--text", WORDS, "--language", "en", "--tag", "calm")
    assert added["sharing"] == "edit", "it belongs to no key yet"
    assert added["slug"] == "eve" and added["tags"] == ["calm"] and added["samples"][0]["text"] == WORDS
    assert [voice["slug"] for voice in json_output(home, "list", "calm", "--home=~/library")] == ["eve"]
    monkeypatch.setenv("STUDIO_HOME", str(home / "eve.wav" / "library"))  # which is not used with --home
    assert main(["voices", "show", "eve", "--home", str(home / "library")]) == 0
    monkeypatch.delenv("STUDIO_HOME")
    assert json_output(home, "show", "EVE@1") == added
    json_output(home, "export", "eve", str(home / "eve.fishvoice"))
    assert json_output(home, "import", str(home / "eve.fishvoice"), "--inspect")["name"] == "Eve"
    assert json_output(home, "import", str(home / "eve.fishvoice"), "--name", "Eva")["slug"] == "eva"
    library = ProjectLibrary(home / "library")
    with library.store.writing() as db:
        db.execute("update voices set deleted = ? where slug = 'eva'", [time() - 20 * DAY])
    json_output(home, "delete", "eve")
    items = json_output(home, "list", topic="trash")
    assert [item["title"] for item in items] == ["Eve", "Eva"], "a studio may keep them longer than this shell's days"
    json_output(home, "restore", "voice", items[1]["id"], topic="trash")
    assert [voice["slug"] for voice in json_output(home, "list")] == ["eva"]
    [item] = json_output(home, "list", topic="trash")
    assert (item["kind"], item["id"], item["title"]) == ("voice", added["id"], "Eve")
    json_output(home, "restore", "voice", added["id"], topic="trash")
    events = [entry["event"] for entry in json_output(home, "audit")]
    assert events == ["voice.create", "voice.export", "voice.import", "voice.delete", "voice.restore", "voice.restore"]
    assert run(home, "restore", "voice", added["id"], topic="trash").returncode == 1
    assert json_output(home, "empty", topic="trash") == {"count": 0}
    assert len(Library(home / "library").voices.page()) == 2


def test_fixes_are_applied_on_demand(home: Path) -> None:
    pcm, rate = samples_of(spoken())
    (home / "quiet.wav").write_bytes(file_of(0.02 * pcm, rate, subtype="FLOAT"))
    words = home / "words.txt"
    words.write_text(WORDS)
    plain = json_output(home, "add", "A", str(home / "quiet.wav"), "--text-file", str(words))
    fixed = json_output(home, "add", "B", str(home / "quiet.wav"), "--text-file", str(words), "--fix")
    assert fixed["samples"][0]["score"] > plain["samples"][0]["score"]


def test_console_that_lacks_the_letters_of_a_name_prints_their_numbers(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    json_output(home, "add", "Łukasz 中文", str(home / "eve.wav"), "--text", WORDS)
    monkeypatch.setenv("PYTHONIOENCODING", "cp1252")
    for name, value in {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}.items():
        monkeypatch.setenv(name, value)
    listed = run_apart(home, "list", "中文")  # which is understood although the locale lacks it too
    assert listed.returncode == 0, listed.stderr
    assert "\\u0141ukasz \\u4e2d\\u6587" in listed.stdout and "ukasz-zhong-wen@1" in listed.stdout


def test_certificates_may_be_named_as_for_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["fish-voice-studio", "--version"])
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", "/etc/own.pem")
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(SystemExit):
        start_command()
    assert os.environ.pop("SSL_CERT_FILE") == "/etc/own.pem"


@pytest.mark.posix
def test_output_that_nobody_reads_to_its_end_is_said_to_be_cut_off(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Library(home / "library")
    reason = "the program that reads the output has ended before it had all of it"
    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.setattr(sys, "argv", ["fish-voice-studio", "trash", "empty", "--home", str(home / "library")])
    for by_line in (True, False):  # the command's own print fails, or writing what is left at the end
        monkeypatch.setattr(sys, "stdout", os.fdopen(os.dup(writer), "w", encoding="utf-8"))
        sys.stdout.reconfigure(line_buffering=by_line)  # type: ignore[union-attr]
        assert start_command() == 1
        sys.stdout.close()
        assert capsys.readouterr().err == f"studio: {reason}\n"
    os.close(writer)


def test_reading_a_folder_without_a_library_does_not_create_one(home: Path) -> None:
    done = run(home, "list")
    assert done.returncode == 1 and "contains no library" in done.stderr
    assert not (home / "library").exists()


@pytest.mark.parametrize(
    ("arguments", "status", "reason"),
    [
        (["show", "nobody"], 1, "there is no voice 'nobody'"),
        (["add", "X", "nothing.wav", "--text", "x"], 1, "nothing.wav"),
        (["import", "pyproject.toml"], 1, "not a readable voice pack"),
        (["add", "X", "pyproject.toml", "--text", "x"], 1, "not readable audio"),
        (["add", "X", "pyproject.toml"], 2, "--text"),
        (["add", "X", "pyproject.toml", "--text-file", "{home}/latin.txt"], 1, "latin.txt is not UTF-8"),
        (["show", "\udcff"], 1, "voice is not valid Unicode"),
        (["add", "X", "pyproject.toml", "--text", "x", "--tag", "\udcff"], 1, "tag is not valid Unicode"),
        (["export", "nobody", "{home}"], 1, "is a folder"),
        (["sing"], 2, "invalid choice"),
        (["list", "--home", ""], 2, "it is blank; name a folder"),
    ],
)
def test_failures_are_reported_in_one_line_and_the_exit_status(
    home: Path, arguments: list[str], status: int, reason: str
) -> None:
    (home / "latin.txt").write_bytes("Grüße".encode("latin-1"))
    Library(home / "library")
    as_shell = run_apart if arguments == ["show", "\udcff"] else run  # from bytes that a process is given
    done = as_shell(home, *(argument.replace("{home}", str(home)) for argument in arguments))
    assert done.returncode == status and reason in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""


def test_export_to_a_full_disk_keeps_the_existing_file_and_names_it(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    json_output(home, "add", "Eve", str(home / "eve.wav"), "--text", WORDS)
    pack = home / "eve.fishvoice"
    pack.write_bytes(b"the last one")
    before = {path.name for path in home.iterdir()}

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    for path, reason in ((pack, "[Errno 28] No space left on device"), (home / "no" / "eve", "[Errno 2] No such file")):
        assert main(["voices", "export", "eve", str(path), "--home", str(home / "library")]) == 1
        error = capsys.readouterr().err
        assert error.startswith(f"studio: {reason}") and error.endswith(f": {str(path)!r}\n")
    assert pack.read_bytes() == b"the last one" and {path.name for path in home.iterdir()} == before

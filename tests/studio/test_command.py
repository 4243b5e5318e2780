"""`python app.py` as run by a person or a service: its output, when it fails, how it stops."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from launch import main as run_command
from launch import startup
from studio import ROOT
from tests.waiting import wait_until_true


@contextmanager
def command(without: str = "", **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command without bundled voices, which take a second to import, and without one of the variables."""
    with tempfile.TemporaryDirectory() as no_voices:
        variables = os.environ | {"STUDIO_VOICES": no_voices} | environment
        process = subprocess.Popen(
            [sys.executable, str(ROOT / "app.py")],
            env={name: value for name, value in variables.items() if name != without},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            assert process.stdout
            process.stdout.close()


def output_until(process: subprocess.Popen[str], word: str) -> str:
    """The output up to the line with this word; fails at the end of the output."""
    assert process.stdout
    output = ""
    for line in process.stdout:
        output += line
        if word in line:
            return output
    pytest.fail(f"it ended without {word!r}:\n{output}")


def is_closed(port: str) -> bool:
    """Whether nobody listens on a port any more."""
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", int(port))) != 0


@contextmanager
def stalled_reader(port: str) -> Iterator[None]:
    """Hold open a stream without reading it, so that a stop has to end it."""
    body = '{"input": "' + "word " * 800 + '", "response_format": "wav"}'
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(60)
        slow.connect(("127.0.0.1", int(port)))
        head = "POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        slow.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        assert slow.recv(15) == b"HTTP/1.1 200 OK"
        yield


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def output_of_refused_start(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], **environment: str
) -> str:
    """Output of a command that exits with 1 before opening anything, and so can run in this process."""
    monkeypatch.setattr(sys, "argv", ["app.py"])
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert startup.main() == 1
    return "".join(capfd.readouterr())


def test_a_bad_setting_stops_the_start_with_its_name(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    output = output_of_refused_start(monkeypatch, capfd, PORT="eighty")
    assert "PORT='eighty'" in output and "must be" in output and "Traceback" not in output
    monkeypatch.setattr(sys, "argv", ["app.py", "--port", "80"])
    with pytest.raises(SystemExit):
        startup.main()
    assert "--port 80; settings are variables, such as STUDIO_PORT=7861" in capfd.readouterr().err


def test_a_taken_port_stops_the_start_before_anything_is_opened(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = str(other.getsockname()[1])
        output = output_of_refused_start(monkeypatch, capfd, PORT=taken, STUDIO_HOME=str(tmp_path / "library"))
    assert f":{taken}: another" in output and "another program listens there" in output and "Traceback" not in output
    assert len(output.splitlines()) == 1, "nobody is sent to an address at which another program listens"
    assert not (tmp_path / "library").exists()


@pytest.mark.linux
def test_uncreatable_home_stops_the_start_before_loading(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    output = output_of_refused_start(monkeypatch, capfd, STUDIO_HOME="/proc/studio", PORT=free_port())
    assert "STUDIO_HOME='/proc/studio' cannot be used" in output and len(output.splitlines()) == 1


@pytest.mark.parametrize("trusted", ["10.0.0.0/33", "10.0.0.1, proxy", "*,::1"])
def test_a_trusted_proxy_that_is_no_address_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path, trusted: str
) -> None:
    home = str(tmp_path)
    output = output_of_refused_start(
        monkeypatch, capfd, STUDIO_HOME=home, PORT=free_port(), FORWARDED_ALLOW_IPS=trusted
    )
    assert "FORWARDED_ALLOW_IPS takes addresses and networks" in output and len(output.splitlines()) == 1


@pytest.mark.posix
def test_a_deleted_working_folder_is_named(tmp_path: Path) -> None:
    start = ["sh", "-c", 'cd "$0" && rmdir "$0" && exec "$1" "$2"', str(tmp_path), sys.executable, str(ROOT / "app.py")]
    ended = subprocess.run(start, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 1 and "the folder in which this program was started was deleted" in ended.stderr


@pytest.mark.posix
@pytest.mark.parametrize(
    ("writable", "reason"), [(True, "HF_ENDPOINT"), (False, "no folder for temporary files can be written")]
)
def test_a_start_without_a_usual_folder_for_temporary_files_takes_the_librarys(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path, writable: bool, reason: str
) -> None:
    def find() -> str:  # like the standard library on a full disk
        if writable and os.environ["TMPDIR"] == str(tmp_path):
            return str(tmp_path)
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setenv("TMPDIR", "/full")
    home = str(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "gettempdir", find)
        output = output_of_refused_start(monkeypatch, capfd, STUDIO_HOME=home, PORT=free_port(), HF_ENDPOINT="nowhere")
    assert reason in output and len(output.splitlines()) == 1
    assert not writable or os.environ["TMPDIR"] == home


@pytest.mark.posix
@pytest.mark.parametrize(("step", "number"), [("loading", signal.SIGINT), ("warming", signal.SIGTERM)])
def test_start_can_be_aborted(step: str, number: signal.Signals, tmp_path: Path) -> None:
    settings = {"STUDIO_PAGE": "0", "PORT": free_port(), "STUDIO_HOME": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    with command(**settings) as process:
        output_until(process, f"%  {step}")
        process.send_signal(number)
        output = process.communicate(timeout=120)[0]
    assert process.returncode == 0
    assert "terminate" not in output and "could not start" not in output
    assert step == "warming" or "Ready" not in output, "warming up may be over before the signal comes"


INTERRUPTED = """
import signal, sys, weakref
class Gone: pass
gone = Gone()
called_back = weakref.ref(gone, lambda _: signal.raise_signal(signal.SIGINT))
del gone, sys.modules["fastapi"]
sys.path.remove(__file__.rpartition("/")[0])
import fastapi
"""
"""Replaces FastAPI: exceptions in callbacks of weak references, which imports use a lot, are ignored."""


@pytest.mark.posix
def test_the_engine_starts_during_the_web_layers_imports_which_an_interrupt_ends(
    quick_checkpoint: Path, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    (tmp_path / "fastapi.py").write_text(f"open({str(gate)!r}).read()\n{INTERRUPTED}")
    settings = {"MODEL": str(quick_checkpoint), "STUDIO_PAGE": "0", "PORT": free_port(), "PYTHONPATH": str(tmp_path)}
    with command(**settings, STUDIO_HOME=str(tmp_path / "home"), PYTHONUNBUFFERED="1") as process:
        output_until(process, "ready")  # the engine's last step
        gate.write_text("")
        output = process.communicate(timeout=120)[0]
    assert process.returncode == 0
    assert "Ready" not in output and "terminate" not in output, (
        "the studio does not say that it is ready before it serves"
    )
    assert "Exception ignored" not in output, "the interrupt ends the start even where Python ignores exceptions"


def test_setting_refused_during_the_start_ends_it(tmp_path: Path) -> None:
    (tmp_path / "copy").write_text("no folder")
    settings = {"STUDIO_BACKUP_DIR": str(tmp_path / "copy"), "STUDIO_PAGE": "0", "PORT": free_port()}
    with command(**settings, STUDIO_HOME=str(tmp_path / "home")) as process:
        output = process.communicate(timeout=120)[0]
    assert process.returncode == 1
    assert "STUDIO_BACKUP_DIR=" in output and "Traceback" not in output and "Ready" not in output


def test_a_missing_model_stops_the_start_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with command(
        MODEL=str(tmp_path / "empty"), STUDIO_VOICES=str(tmp_path), PORT=free_port(), STUDIO_PAGE="0"
    ) as process:
        output = process.communicate(timeout=120)[0]
    assert process.returncode == 1
    assert "could not start" in output and "empty" in output and "Traceback" not in output
    assert "Without STUDIO_MODEL or MODEL the bundled model starts" in output


def _raise(reason: str) -> None:
    raise ValueError(reason)


HELPED = """
import os, sys
from launch import main
sys.argv[1:] = ["voices", "--help"]
try:
    main()
except SystemExit:
    files = [open(0), sys.stdout, sys.stderr]  # the log asks whether they are a terminal
    sys.exit(any(file.isatty() or file.fileno() != n or not os.get_inheritable(n) for n, file in enumerate(files)))
"""


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("GRADIO_SERVER_PORT", "eighty", int),
        ("TORCH_LOGS_OUT", "/nowhere/file", open),
        ("TORCH_LOGS", "nonsense", lambda value: _raise(f'\nInvalid log settings: {value}, try TORCH_LOGS="help"\n')),
    ],
)
def test_a_variable_that_a_library_cannot_use_is_named(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    name: str,
    value: str,
    read: Callable[[str], object],
) -> None:
    monkeypatch.setattr(sys, "argv", ["app.py"])
    monkeypatch.setattr(startup, "main", lambda: read(os.environ[name]))  # as libraries do while they are imported
    monkeypatch.setenv(name, value)
    assert run_command() == 1
    message = f"studio: the variable {name} cannot be used; correct or remove it: "
    assert capfd.readouterr().err.startswith(message)
    monkeypatch.setattr(startup, "main", lambda: int("other"))
    with pytest.raises(ValueError, match="other"):  # a defect keeps its traceback
        run_command()


@pytest.mark.posix
def test_standard_streams_that_are_closed_are_replaced() -> None:
    start = ["sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, HELPED]
    assert subprocess.run(start, cwd=ROOT, check=False, timeout=60).returncode == 0


@pytest.mark.posix
def test_an_output_that_nobody_reads_holds_up_nothing(quick_checkpoint: Path, tmp_path: Path) -> None:
    port = free_port()
    settings = {"MODEL": str(quick_checkpoint), "STUDIO_HOME": str(tmp_path), "STUDIO_PAGE": "0", "PORT": port}
    with command(**settings, STUDIO_LOG_LEVEL="info") as process:
        output_until(process, "curl ")
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            for _ in range(100):  # 200 kB of lines, and the pipe holds 64
                assert client.get("/health", params={"a": 2000 * "a"}).status_code == 200
            assert process.stdout
            process.stdout.close()  # now its reader has ended
            assert client.get("/health").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


FORKED = """
import os, time
from studio.output import background_output
with background_output():
    print("parent")
    child = os.fork()
    print("child" if not child else "both")
    if child:
        os.waitpid(child, 0)
"""


@pytest.mark.posix
def test_a_forked_process_has_an_output_too() -> None:
    output = subprocess.run(
        [sys.executable, "-c", FORKED], cwd=ROOT, check=True, timeout=60, capture_output=True
    ).stdout
    assert sorted(output.split()) == [b"both", b"child", b"parent"]


@pytest.mark.posix
def test_command_reports_readiness_prints_a_working_curl_line_and_stops(
    quick_checkpoint: Path, voices_folder: Path, tmp_path: Path
) -> None:
    port = free_port()
    short = "512"  # positions; random weights fill all of them, as they never end a take
    home = tmp_path / "home"
    settings = {"MODEL": str(quick_checkpoint), "STUDIO_VOICES": str(voices_folder), "STUDIO_HOME": str(home)}
    with command("PATH", **settings, PORT=port, STUDIO_MAX_CONTEXT=short) as process:  # as by some service managers
        output = output_until(process, "curl ")
        assert f"http://127.0.0.1:{port}" in output and "Ready" in output
        line = output.strip().splitlines()[-1]
        subprocess.run(["bash", "-c", f"{line} -s"], cwd=tmp_path, check=True, timeout=120)
        assert (tmp_path / "hello.mp3").read_bytes()[:2] in (b"\xff\xfb", b"\xff\xf3")
        page = httpx.get(f"http://127.0.0.1:{port}/", timeout=60)
        assert page.status_code == 200 and re.search("<html", page.text)
        with stalled_reader(port):
            is_ignored = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN  # if nohup runs the tests
            process.send_signal(signal.SIGTERM if is_ignored else signal.SIGHUP)
            wait_until_true(lambda: is_closed(port))
            process.send_signal(signal.SIGINT)  # does not wait for the stream
            output = process.communicate(timeout=120)[0]
    assert process.returncode == 0
    assert "Traceback" not in output
    copy = shutil.copy(home / "library.db", tmp_path / "alone.db")
    with sqlite3.connect(copy) as db:
        assert db.execute("select count(*) from takes").fetchone()[0] >= 1, "library.db alone has everything"


def test_studio_without_a_page_needs_no_gradio(quick_checkpoint: Path, voices_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "gradio.py").write_text("raise ImportError('Gradio is not installed')")
    for other in ("uvloop", "httptools"):
        (tmp_path / f"{other}.py").write_text(f"raise SystemExit('{other} was asked for')")
    port = free_port()
    hidden = {"PYTHONPATH": str(tmp_path), "STUDIO_PAGE": "0"}
    with command(MODEL=str(quick_checkpoint), STUDIO_VOICES=str(voices_folder), PORT=port, **hidden) as process:
        assert "Open" not in output_until(process, "curl ")
        answer = httpx.post(f"http://127.0.0.1:{port}/v1/audio/speech", json={"input": "a", "max_new_tokens": 4})
        assert answer.status_code == 200
        assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 404

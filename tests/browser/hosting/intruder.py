"""A caller who tries to make every gradio_client endpoint read a file that the caller has not uploaded."""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from studio import ROOT

MARK = "MARK-8f1d-of-a-file-that-nobody-uploaded"
META = {"_type": "gradio.FileData"}
REFUSED = re.compile("is not a file that you have uploaded here|cannot carry a file")
GIANT = 1 << 40
"""Apparent size of a sparse file, in bytes."""


@dataclass(frozen=True)
class Traps:
    """Files that must not be opened, and whose contents must not appear in any response."""

    folder: Path
    fifo: Path
    web: socket.socket
    """A loopback listener to which nothing may connect."""

    @property
    def web_address(self) -> str:
        return f"http://127.0.0.1:{self.web.getsockname()[1]}/clip.wav"

    def paths(self, uploads: Path | None) -> list[str]:
        """``uploads``: the folder where the studio keeps uploads, if the test can see it."""
        paths = ["secret.txt", "fifo", "giant.wav", "outside.txt", "inside.txt", "."]
        named = [str(self.folder / name) for name in paths]
        named += ["/dev/zero", "/proc/self/environ", "/etc/passwd", "../../../../etc/passwd", "~/.bashrc", ""]
        named += [f"file://{self.folder}/secret.txt", self.web_address, "data:text/plain;base64,aGk="]
        if uploads is not None:
            named += [str(path) for path in uploads.iterdir()]
        return named

    def assert_untouched(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self.web.accept()
            raise AssertionError("the studio fetched a web address")
        try:
            os.close(os.open(self.fifo, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return  # nothing reads from it
        raise AssertionError("the FIFO is being read")


@contextlib.contextmanager
def traps(folder: Path, uploads: Path | None = None) -> Iterator[Traps]:
    folder.mkdir(exist_ok=True)
    (folder / "secret.txt").write_text(MARK)
    os.mkfifo(folder / "fifo")
    with (folder / "giant.wav").open("wb") as giant:
        giant.truncate(GIANT)
    (folder / "outside.txt").symlink_to("/etc/passwd")
    (folder / "inside.txt").symlink_to(uploads or folder / "secret.txt")
    with socket.create_server(("127.0.0.1", 0)) as web:
        web.setblocking(False)
        yield Traps(folder, folder / "fifo", web)


def upload(client: httpx.Client, name: str, data: bytes) -> str:
    answer = client.post("/gradio_api/upload", files={"files": (name, data)})
    assert answer.status_code == 200, answer.text
    return str(answer.json()[0])


def parameters_of(client: httpx.Client) -> dict[str, list[dict[str, Any]]]:
    """The parameters of every endpoint, as described by the app."""
    endpoints = client.get("/gradio_api/info").json()["named_endpoints"]
    return {name: endpoint["parameters"] for name, endpoint in endpoints.items()}


def shapes(path: str, odd_ones: bool) -> list[object]:
    """Values with which a client can refer to a file; the odd ones do not depend on the path."""
    file = {"path": path, "meta": META}
    if not odd_ones or not path.endswith("secret.txt"):
        return [file]
    described = file | {"url": path, "is_stream": True, "orig_name": "a.wav", "size": 1}
    odd = [{"path": path, "meta": "x"}, {"path": path, "meta": {}}, {"path": path, "meta": [META]}]
    return [file, described, [file], {"a": {"b": [file]}}, [[[file]]], *odd]


def try_everything(
    client: httpx.Client, traps: Traps, foreign: list[str], uploads: Path | None = None, odd_ones: bool = False
) -> int:
    """Pass a path as every argument of every endpoint, assert that each is refused, and return the number of tries.

    File arguments get every path. ``foreign``: references to other callers' uploads and results; ``odd_ones``: also
    try all shapes and an unreadable path, which take most of the time. Otherwise, of an endpoint's other arguments,
    only the first and the last get a path. The first path in each argument comes without a session, as from curl; the
    others in one session, since Gradio takes 20 ms to set up each.
    """
    tries = 0
    paths = traps.paths(uploads) + foreign
    any_paths = paths[: 2 if odd_ones else 1]
    for name, parameters in parameters_of(client).items():
        usual = [parameter["parameter_default"] for parameter in parameters]
        for position, parameter in enumerate(parameters):
            is_file = parameter["component"] == "File"
            if not (odd_ones or is_file or position in (0, len(parameters) - 1)):
                continue
            values = [value for path in (paths if is_file else any_paths) for value in shapes(path, odd_ones)]
            for index, value in enumerate(values):
                data = [*usual[:position], value, *usual[position + 1 :]]
                body = {"data": data} if index == 0 else {"data": data, "session_hash": "intruder"}
                answer = client.post(f"/gradio_api/run{name}", json=body, timeout=60)
                what = f"{name} {parameter['parameter_name']}: {value}"
                assert answer.status_code in (422, 500), what
                assert REFUSED.search(answer.json()["error"]), f"{what}: {answer.text}"
                assert_no_path(answer.text, what)
                tries += 1
        if parameters:  # through the queue, as curl does
            data = [{"path": str(traps.folder / "secret.txt"), "meta": META}, *usual[1:]]
            text = called(client, name, data)
            assert text.startswith("event: error") and REFUSED.search(text), f"{name}: {text}"
            assert_no_path(text, name)
    for path in paths:
        for route in ("file=", "file/"):
            answer = client.get(f"/gradio_api/{route}{quote(path, safe='')}", timeout=60)
            assert answer.status_code in (400, 404), f"{route}{path}: {answer.status_code}"
            assert_no_path(answer.text, route)
    assert client.get("/ready").status_code == 200
    traps.assert_untouched()
    return tries


def called(client: httpx.Client, name: str, data: list[Any]) -> str:
    """The complete response of an endpoint."""
    event = client.post(f"/gradio_api/call{name}", json={"data": data}).json()["event_id"]
    return client.get(f"/gradio_api/call{name}/{event}").text


def result(client: httpx.Client, name: str, data: list[Any]) -> list[Any]:
    text = called(client, name, data)
    assert text.startswith("event: complete"), text
    values: list[Any] = json.loads(text.split("data: ", 1)[1])
    return values


def assert_no_path(text: str, what: str) -> None:
    assert MARK not in text and "root:" not in text, what
    for folder in (str(ROOT), tempfile.gettempdir(), "/proc/", "/etc/", "/dev/", "site-packages", str(Path.home())):
        assert folder not in text, f"{what} tells a path: {text}"

"""fish-voice-studio mcp: the SDK's client starts the command, which finds a studio, or starts and ends its own."""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from protocols.mcp.command import main
from studio.voices.recogniser import Recogniser, Transcription, Word
from tests.longform.script import RECOGNISER, scripted
from tests.longform.test_projects import create_project, until
from tests.protocols.mcp.test_http import call, refusal
from tests.studio.conftest import Steered
from tests.studio.sounds import frames_of, tone, wav
from tests.waiting import wait_until_true

ROOT = Path(__file__).resolve().parents[3]
Steer = Callable[..., Steered]


@asynccontextmanager
async def command(*arguments: str, **variables: str) -> AsyncGenerator[Client, None]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STUDIO_")}
    kept.pop("PYTHONPATH", None)  # the studio that it starts finds its packages without it
    parameters = StdioServerParameters(
        command=sys.executable,
        args=[str(ROOT / "app.py"), "mcp", *arguments],
        env=kept | variables,
        cwd=variables["HOME"],
    )
    async with asyncio.timeout(120), Client(parameters) as client:
        yield client


async def test_a_running_studio_is_used_with_files_of_this_machine(
    steered: Steer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = scripted(monkeypatch)
    heard = Transcription("hello there", "en", (Word("hello", 0.1, 0.5, 0.9), Word("there", 0.6, 1.0, 0.9)))
    monkeypatch.setattr(Recogniser, "recognise", lambda *_, **__: heard)
    (tmp_path / "clip.wav").write_bytes(wav(tone(2.0)))
    (tmp_path / "book.md").write_text("# One\n\nIt rained.\n")
    os.mkfifo(pipe := tmp_path / "pipe")
    proxy = "http://127.0.0.1:9"  # nothing listens there: a studio of this machine is called without it
    served, _ = steered(transcriber=RECOGNISER)
    texts = ("One two three four.", "Five six seven.")
    made = create_project(served, items=[{"input": text} for text in texts], voice="anna", start=True)
    project = until(served, made, "done")["id"]

    async def errors(client: Client) -> list[dict[str, Any]]:
        while (found := await call(client, "list_possible_errors", project=project))["state"] in ("waiting", "running"):
            pass
        return found["errors"]

    async with command("--url", served.url, HOME=str(tmp_path), HTTP_PROXY=proxy, ALL_PROXY=proxy) as client:
        saved = str(tmp_path / "said.wav")
        spoken = await call(client, "speak", text="Hello there.", format="wav", save_as=saved)
        assert spoken["path"] == saved and frames_of(Path(saved).read_bytes()) == (44_100, 2 * 6 * 2048)
        assert "exists" in await refusal(client, "speak", text="Hello.", format="wav", save_as=saved)
        consent = "I, Carla, allow this studio to use my voice."
        arguments = {"name": "Carla", "consent": consent, "transcript": "Hello."}
        assert (await call(client, "clone_voice", path=str(tmp_path / "clip.wav"), **arguments))["name"] == "Carla"
        refused = {
            str(tmp_path / "no.wav"): "No such file",
            "a\0b": "null",
            "~nobody-here/a": "unknown user",
            str(pipe): "not a file but a named pipe",
        }
        for path, why in refused.items():
            assert why in await refusal(client, "clone_voice", path=path, **arguments)
        assert "null" in await refusal(client, "speak", text="Hello.", save_as="a\0b")
        book = await call(client, "make_audiobook", path=str(tmp_path / "book.md"), start=False)
        assert book["title"] == "One" and book["parts"]["total"] == 2
        words = await call(client, "transcribe", path=str(tmp_path / "clip.wav"))
        assert (words["text"], words["language"], words["words"][1]["word"]) == ("hello there", "en", "there")
        script.texts = ["one two three", "five six"]
        await call(client, "start_audio_check", project=project)
        first, second = await errors(client)
        assert (await call(client, "decide_error", project=project, id=first["id"], decision="accept"))["accepted"]
        script.texts = ["five six seven" if second["position"] else "one two three four"]
        new = await call(client, "decide_error", project=project, id=second["part"], decision="regenerate")
        assert new["replaced"] and new["weight"] == 0 < new["weight_before"]
        assert await errors(client) == []
        saved = str(tmp_path / "exported.wav")
        file = await call(client, "export_project", project=project, format="wav", save_as=saved)
        assert file == {"path": saved, "bytes": Path(saved).stat().st_size} and Path(saved).read_bytes()[:4] == b"RIFF"
        assert "exists" in await refusal(client, "export_project", project=project, format="wav", save_as=saved)


def test_the_command_ends_although_its_client_does_not_read(steered: Steer, tmp_path: Path) -> None:
    served, _ = steered()
    arguments = [sys.executable, "-X", "importtime", str(ROOT / "app.py"), "mcp", "--url", served.url]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STUDIO_")}
    variables = kept | {"HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join([str(ROOT), kept.get("PYTHONPATH", "")])}
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    spoken = {"name": "speak", "arguments": {"text": "word " * 40, "format": "wav"}}
    endings = ("its input ends", "it is terminated", "its client has left")
    with open(tmp_path / "errors", "wb") as errors, ExitStack() as stack:
        processes = [
            stack.enter_context(subprocess.Popen(arguments, stdin=-1, stdout=-1, stderr=errors, env=variables))
            for _ in endings
        ]
        for process in processes:
            stack.callback(process.kill)
        for process in processes:
            assert process.stdin is not None and process.stdout is not None
            for number, (method, params) in enumerate([("initialize", about), *[("tools/call", spoken)] * 3]):
                message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                process.stdin.write(json.dumps(message).encode() + b"\n")
                process.stdin.flush()
                if number == 0:
                    assert b"fish-voice-studio" in process.stdout.readline()
                    process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        served.until(finished=3 * len(endings), running=0)  # the answers are more than a pipe holds
        for process, ending in zip(processes, endings, strict=True):
            assert process.stdin is not None and process.stdout is not None
            if ending == "it is terminated":
                process.terminate()
            else:
                process.stdin.close()
            if ending == "its client has left":
                process.stdout.close()
        for process, ending in zip(processes, endings, strict=True):
            assert process.wait(60) == 0, ending
    shown = (tmp_path / "errors").read_bytes()
    assert b"Traceback" not in shown
    assert re.search(rb"\| +mcp\n", shown) and not re.search(rb"\| +torch\n", shown)  # an agent waits for the start


async def test_a_studio_is_used_while_it_is_there_then_one_is_started_and_ends_with_the_command(
    quick_checkpoint: Path, tmp_path: Path
) -> None:
    body = json.dumps({"error": {"message": "the model is being loaded", "param": None}})

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write((head + body).encode())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = {"STUDIO_PAGE": "0", "STUDIO_PORT": str(port), "STUDIO_HOME": str(tmp_path / "studio")}
    settings |= {"STUDIO_MAX_CONTEXT": "256", "STUDIO_VOICES": str(tmp_path)}  # random weights fill all positions
    async with command(HOME=str(tmp_path), MODEL=str(quick_checkpoint), **settings) as client:
        assert "the model is being loaded" in await refusal(client, "speak", text="Hello.")
        server.close()  # as the studio of another agent that has ended
        await server.wait_closed()
        spoken = await client.call_tool("speak", {"text": "Hello.", "seed": 5})  # waits until the studio is ready
        assert not spoken.is_error, spoken.content

    def is_gone() -> bool:
        with closing(socket.socket()) as probe:
            return probe.connect_ex(("127.0.0.1", port)) != 0

    await asyncio.to_thread(wait_until_true, is_gone)


def test_an_address_that_is_none_and_a_missing_package_are_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["--url", "localhost:7860"]) == 1
    assert "must begin with http://" in capsys.readouterr().err
    monkeypatch.setenv("ALL_PROXY", "garbage://x")
    assert main(["--url", "http://elsewhere.example:7860"]) == 1
    assert "proxy" in capsys.readouterr().err
    monkeypatch.setattr("protocols.mcp.command.find_spec", lambda name: None)
    assert main([]) == 1
    shown = capsys.readouterr()
    assert "fish-voice-studio[mcp]" in shown.err and not shown.out

"""The number of speech processes, where they listen, how a failed start is handled, and how all of them end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from engine import EngineConfig, EngineStats
from fleet.frontends.messages import StartArguments
from fleet.frontends.speech_process import SpeechProcess
from fleet.frontends.speech_processes import speech_process_count
from longform.library.project_repository import ProjectLibrary
from studio import ROOT
from studio.engine_host import EngineHost
from studio.errors import SettingsError
from studio.library import Library
from studio.public_port import PublicPort
from studio.server import Connection, ListeningServer
from studio.settings import Settings
from studio.speech.speech_service import SpeechService
from studio.voices.resolver import VoiceResolver
from tests.fleet.frontends.engines import broken, held
from tests.studio.fake_engine import FakeEngine
from tests.waiting import wait_until_true

HERE = Settings(host="127.0.0.1", port=0)


@pytest.mark.parametrize(
    ("device", "replicas", "cores", "count"),
    [
        ("4 × cuda", 4, 16, 4),
        ("4 × cuda", 4, 6, 3),
        ("1 × cuda", 1, 16, 0),
        ("2 × cpu", 2, 16, 0),
    ],
)
def test_speech_process_count_depends_on_device_replicas_and_cores(
    device: str, replicas: int, cores: int, count: int
) -> None:
    engine = FakeEngine(EngineConfig("test"))
    engine.info = replace(engine.info, device=device)
    stats = EngineStats(0, 0, 0, 0, 0, 0.0)
    engine.stats = lambda: replace(stats, replicas={str(n): stats for n in range(replicas)})  # type: ignore[method-assign]
    assert speech_process_count(Settings(), engine, cores) == count


def test_several_sockets_share_a_port_that_other_programs_cannot_use() -> None:
    public = PublicPort(HERE)
    try:
        mine = [sockets[0] for sockets in public.several(3)]
        port = mine[0].getsockname()[1]
        assert {listener.getsockname() for listener in mine} == {("127.0.0.1", port)}
        for listener in mine:
            listener.listen()
        with pytest.raises(SettingsError, match=rf":{port}: another program listens there"):
            PublicPort(HERE.model_copy(update={"port": port}))
    finally:
        public.close()
    PublicPort(HERE.model_copy(update={"port": port})).close()


def test_all_addresses_of_a_host_have_the_same_free_port(monkeypatch: pytest.MonkeyPatch) -> None:
    addresses = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (f"127.0.0.{last}", 0)) for last in (1, 2)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: addresses)
    public = PublicPort(HERE)
    try:
        assert [listener.getsockname() for listener in public.first] == [
            (f"127.0.0.{last}", public.number) for last in (1, 2)
        ]
    finally:
        public.close()


def test_addresses_that_this_machine_lacks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ::1 is, which many name localhost too, where IPv6 is switched off."""

    def resolve(*last: str) -> None:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 0)) for host in last]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)

    resolve("192.0.2.1", "127.0.0.1")  # the first belongs to no machine
    public = PublicPort(HERE)
    try:
        assert [listener.getsockname() for listener in public.first] == [("127.0.0.1", public.number)]
    finally:
        public.close()
    resolve("192.0.2.1")
    with pytest.raises(SettingsError, match="it cannot listen on"):
        PublicPort(HERE)


async def test_written_data_is_sent_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting for the acknowledgement of earlier data would cost 40 ms on a persistent connection."""
    transports: asyncio.Queue[asyncio.Transport] = asyncio.Queue()

    class RecordingConnection(Connection):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            transports.put_nowait(transport)
            super().connection_made(transport)

    async def nothing(scope: object, receive: object, send: object) -> None:
        """Receives no request."""

    monkeypatch.setattr("studio.server.Connection", RecordingConnection)
    public, server = PublicPort(HERE), ListeningServer(uvicorn.Config(nothing, http=H11Protocol, lifespan="off"))
    server.config.load()
    server.lifespan = server.config.lifespan_class(server.config)
    listening = [await server.listen(sockets) for sockets in public.several(2)]
    try:
        for sockets in public.several(2):
            _, caller = await asyncio.open_connection(*sockets[0].getsockname())
            transport = await transports.get()
            caller.close()
            assert transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    finally:
        for listener in listening:
            listener.close()
        public.close()


async def test_process_that_cannot_start_reports_the_reason(tmp_path: Path) -> None:
    settings = HERE.model_copy(update={"home": str(tmp_path), "voices": str(tmp_path)})
    host = EngineHost(EngineConfig("test"), FakeEngine.start)
    service = SpeechService(host, VoiceResolver(Library(tmp_path)))
    arguments = StartArguments(
        settings, EngineConfig("test"), broken, str(tmp_path / "private" / "http"), ProjectLibrary
    )
    public = PublicPort(settings)
    process = SpeechProcess("speech process 1", arguments, public.first, service)
    await process.start()
    assert await process.ended() == "the process could not start: the engines are elsewhere"
    public.close()


async def test_process_stopped_during_its_start_ends(tmp_path: Path) -> None:
    settings = HERE.model_copy(update={"home": str(tmp_path), "voices": str(tmp_path)})
    service = SpeechService(EngineHost(EngineConfig("test"), FakeEngine.start), VoiceResolver(Library(tmp_path)))
    arguments = StartArguments(settings, EngineConfig("test"), held, str(tmp_path / "private" / "http"), ProjectLibrary)
    public = PublicPort(settings)
    process = SpeechProcess("speech process 1", arguments, public.first, service)
    starting = asyncio.create_task(process.start())
    await asyncio.sleep(0)  # until it has begun
    process.stop()
    await starting
    assert await asyncio.wait_for(process.ended(), 60) == "the process ended with code 0"
    public.close()


STUDIO = """
import signal, sys
from studio.settings import Settings
from tests.fleet.frontends.engines import held
from tests.fleet.frontends.several import several

if __name__ == "__main__":
    home, voices = sys.argv[1:]
    with several(Settings(home=home, voices=voices), lambda: held) as studio:
        print(studio.url, studio.processes._folder, *studio.pids, flush=True)
        signal.pause()
"""


def test_killed_studio_leaves_nothing_behind(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(STUDIO)
    voices = tmp_path / "voices"
    voices.mkdir()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(program), str(tmp_path / "home"), str(voices)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as studio:
        assert studio.stdout is not None
        url, folder, *pids = studio.stdout.readline().split()
        body = {"input": "hello", "response_format": "pcm"}
        with httpx.stream("POST", f"{url}/v1/audio/speech", json=body, timeout=30) as answer:
            assert answer.status_code == 200
            studio.send_signal(signal.SIGKILL)
            with pytest.raises(httpx.TransportError):
                answer.read()
        wait_until_true(lambda: not any(Path("/proc", pid).exists() for pid in pids))
        wait_until_true(lambda: not Path(folder).exists())
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{url}/health")

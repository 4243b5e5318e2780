"""The studio's speech processes: starts the configured number, replaces each that ends, ends all with the studio."""

from __future__ import annotations

import asyncio
import logging
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from engine import EngineConfig, SpeechEngine, available_cores
from fleet.frontends.messages import StartArguments
from fleet.frontends.relay import ForwardedClient
from fleet.frontends.speech_process import END_SECONDS, SpeechProcess
from studio.engine_host import StartEngine
from studio.errors import StudioError
from studio.public_port import PublicPort, Sockets
from studio.server import Listening, ListeningServer
from studio.settings import Settings
from studio.speech.speech_service import SpeechService
from studio.supervisor import HealthCheck, first_of

log = logging.getLogger(__name__)

CORES_EACH = 2  # cores that each speech process needs: its own, and one for its engine


class ProcessEnded(StudioError):
    """A speech process has ended unexpectedly."""


def speech_process_count(settings: Settings, engine: SpeechEngine, cores: int) -> int:
    """The number of speech processes beside the studio's, one per engine on a GPU; 0 if the studio's process does it
    all."""
    engines = settings.engines[1] if isinstance(settings.engines, tuple) else len(engine.stats().replicas)
    count = min(engines, cores // CORES_EACH) if "cuda" in engine.info.device else 0
    return count if count > 1 else 0


class SpeechProcesses:
    """The studio's own process listens wherever no speech process does. Used from its event loop."""

    def __init__(
        self,
        settings: Settings,
        config: EngineConfig,
        service: SpeechService,
        join: Callable[[], StartEngine],
        print_line: Callable[[str], None],
    ) -> None:
        """``join`` returns, once the studio's engine is up, a way for other processes to use the same engines.

        ``print_line`` prints a line in the terminal.
        """
        self._settings, self._config, self._service = settings, config, service
        self._join, self._print_line = join, print_line
        self._arguments: StartArguments | None = None
        self._folder: str | None = None
        self._processes: dict[int, SpeechProcess] = {}
        self._listening: dict[int, Listening] = {}
        self._accepting: set[int] = set()
        self._tasks: list[asyncio.Task[None]] = []

    async def begin(self, server: ListeningServer, port: PublicPort) -> None:
        """Listen; returns at once."""
        self._listening[0] = await server.listen(port.first)
        self._tasks.append(asyncio.create_task(self._start(server, port)))

    async def _start(self, server: ListeningServer, port: PublicPort) -> None:
        """Once the engine is up, start the speech processes."""
        if not await self._service.host.wait_until_ready():
            return
        count = speech_process_count(self._settings, self._service.host.engine(), available_cores())
        if not count:
            return
        watch = HealthCheck("speech processes")
        self._service.background.append(watch)
        with watch.guarded("none can be started; the studio's own process answers everything"):
            relays, library_type = await self._listen_for_relays(server), type(self._service.voices.library)
            self._arguments = StartArguments(self._settings, self._config, self._join(), relays, library_type)
            self._report(count)
            for number, sockets in enumerate(port.several(count)):
                watch = HealthCheck(f"speech process {number + 1}")
                self._service.background.append(watch)
                run_process = partial(self._live, number, count, watch, server, sockets)
                self._tasks.append(asyncio.create_task(watch.restart_forever(run_process)))

    async def _listen_for_relays(self, server: ListeningServer) -> str:
        """Listen for requests that speech processes pass on, at a path that only they can reach; returns the path."""
        if sys.platform == "win32":
            raise NotImplementedError("a fleet needs Linux")
        self._folder = tempfile.mkdtemp(prefix="studio-")
        path = str(Path(self._folder) / "http")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path)
            await server.listen([listener], ForwardedClient)
        return path

    async def stop(self) -> None:
        """End all processes and their streams, and remove the folder."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for listening in self._listening.values():
            listening.close()
        processes = list(self._processes.values())
        for process in processes:
            process.stop()
        tasks = [asyncio.create_task(process.ended()) for process in processes]
        if tasks and (await asyncio.wait(tasks, timeout=END_SECONDS))[1]:
            for process in processes:
                process.kill()
            await asyncio.wait(tasks)
        if self._folder is not None:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    async def _live(
        self, number: int, count: int, watch: HealthCheck, server: ListeningServer, sockets: Sockets
    ) -> None:
        """Run one process; the studio listens in its place while it does not. Raises ProcessEnded at its end."""
        assert self._arguments is not None
        process = SpeechProcess(watch.name, self._arguments, sockets, self._service)
        self._processes[number] = process  # `stop` finds it even if the start fails
        await process.start()
        watch_task = asyncio.create_task(process.watch())
        try:
            await first_of(process.is_ready.wait(), process.has_ended.wait())
            if process.is_ready.is_set() and not process.has_ended.is_set():
                process.accept()
                if number in self._listening:
                    self._listening.pop(number).close()
                watch.report_success()
                self._count(count, number, accepts=True)
                await first_of(process.is_leaving.wait(), process.has_ended.wait())
                self._listening[number] = await server.listen(sockets)
                self._count(count, number, accepts=False)
            reason = await process.ended()
        except OSError:  # this process cannot listen, so the other is useless
            process.kill()
            raise
        finally:
            watch_task.cancel()
        raise ProcessEnded(reason)

    def _count(self, count: int, number: int, accepts: bool) -> None:
        (self._accepting.add if accepts else self._accepting.discard)(number)
        self._report(count)
        if len(self._accepting) == count:
            self._print_line(f"{count} speech processes accept connections")

    def _report(self, count: int) -> None:
        self._service.health["speech_processes"] = {"ready": len(self._accepting), "wanted": count}

"""Lists models with their requirements here, downloads them, and switches to another one while the studio runs."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from anyio import to_thread

from studio.engine_host import EngineHost
from studio.errors import InProgress, NotFound, NotOffered, SettingsError
from studio.models.catalogue import BUNDLED_FOLDER, CATALOGUE, CatalogueModel, in_catalogue, set_newest, snapshot
from studio.models.hub_download import DownloadStatus, HubDownload, remove_parts
from studio.models.model_choice import is_set, write_choice
from studio.models.model_list import ListedModel, fitting_path, list_models
from studio.settings import Settings
from studio.supervisor import end_tasks
from studio.work import WorkQueue

log = logging.getLogger(__name__)

STREAM_SECONDS = 60.0
"""How long a switch waits for requests that somebody listens to. Then they end with the audio that they have: everybody
else is refused meanwhile, and a listener who reads slowly could hold up a switch for as long as it likes."""
LOOK_SECONDS = 0.1
"""Interval at which to check whether the running takes have ended."""


class ModelDownload(HubDownload):
    """Downloads a model into the hub's cache, where the hub's own tools find it too."""

    def __init__(self, model: CatalogueModel) -> None:
        self._model = model
        self._has_looked = False
        super().__init__(model.files, partial(snapshot, model), self._complete, self._remove)

    async def look(self) -> None:
        """Put into `status` what a download before this start has left; it can be continued or cancelled."""
        if not self._has_looked and not self.status.is_running:
            self._has_looked = True
            if (done := await to_thread.run_sync(self._bytes_left)) and self.status == DownloadStatus():
                self.status = DownloadStatus(False, done, max(done, self._model.download_bytes))

    def _bytes_left(self) -> int:
        """Blocking."""
        unfinished = [folder for folder in self._snapshots() if any(folder.rglob(".*.part"))]
        return sum(file.stat().st_size for folder in unfinished for file in folder.rglob("*") if file.is_file())

    def _snapshots(self) -> list[Path]:
        """The folders of all commits of which files have been downloaded. Blocking."""
        try:
            return list(snapshot(self._model, "").glob("*"))
        except SettingsError:  # which a download reports
            return []

    async def _complete(self, commit: str, folder: Path) -> None:
        await to_thread.run_sync(set_newest, self._model, commit)
        with suppress(ValueError):  # another program downloads an earlier commit
            await to_thread.run_sync(self._remove)

    def _remove(self) -> None:
        for folder in self._snapshots():
            remove_parts(folder, self._model.files.repo)


class ModelService:
    """Used from one event loop."""

    def __init__(
        self,
        settings: Settings,
        host: EngineHost,
        queue: WorkQueue,
        in_use: Callable[[], int],
        end_streams: Callable[[str], None],
        switched: Callable[[], Awaitable[None]],
    ) -> None:
        """``in_use``: number of requests that use the engine; ``end_streams`` ends, with a reason, those that somebody
        listens to. ``switched`` is awaited when another model is ready."""
        self._settings, self._host, self._queue = settings, host, queue
        self._in_use, self._end_streams, self._switched = in_use, end_streams, switched
        self._downloads = {model.name: ModelDownload(model) for model in CATALOGUE if model.repo}
        self._switching: asyncio.Task[None] | None = None
        self.fixed_because: str | None = None
        """Why the host of this process cannot switch models; None if it can."""
        self.target: str | None = None
        """The name or path of the model that is to be loaded."""
        self.is_waiting = False
        """Whether a switch waits for the end of takes, and may be cancelled."""
        self.error: str | None = None
        """Why the last choice could not be stored."""

    @property
    def downloads(self) -> dict[str, DownloadStatus]:
        """Downloads by the models' names."""
        return {name: download.status for name, download in self._downloads.items()}

    @property
    def is_fixed(self) -> bool:
        """Whether STUDIO_MODEL names the model of the next start."""
        return is_set(self._settings)

    @property
    def cannot_switch(self) -> str | None:
        """Why this studio cannot switch while it runs; None if it can."""
        if self._settings.has_fleet:
            return "This studio runs several engines: set STUDIO_MODEL and restart it."
        return self.fixed_because

    async def listing(self, caller: str, path: str | None = None) -> list[ListedModel]:
        """The catalogue, the loaded model, and a path if given. Raises the errors of `WorkQueue.run`."""
        await self.look()
        return await self._queue.run(caller, list_models, self._settings, self._host.model, path, self._memory_to_free)

    async def look(self) -> None:
        """Look once for what downloads before this start have left."""
        for download in self._downloads.values():
            await download.look()

    def begin_download(self, name: str) -> None:
        """Download a model in the background, unless it is being downloaded. Raises NotFound."""
        self._download(name).begin()

    async def cancel_download(self, name: str, keep: bool = False) -> None:
        """``keep``: its unfinished files, from which the next download goes on. Raises NotFound."""
        download = self._download(name)
        await (download.stop() if keep else download.cancel())

    async def switch(self, caller: str, name: str) -> None:
        """Begin to load another model, by its name or path, once all takes have ended.

        Raises NotOffered, InProgress, InvalidRequest if it is not here, is damaged or does not fit, and the errors of
        `WorkQueue.run`.
        """
        if why := self.cannot_switch:
            raise NotOffered(why)
        if self.target is not None or self._host.status.state == "starting":
            raise InProgress("a model is being loaded; wait until it is ready", "model", "loading")
        self.target = name  # from here on a second request is refused
        try:
            path = await self._queue.run(caller, fitting_path, self._settings, name, self._memory_to_free)
        except BaseException:
            self.target = None
            raise
        self._switching = asyncio.create_task(self._switch(name, path))
        self._switching.add_done_callback(self._switch_ended)

    async def cancel_switch(self) -> None:
        """Keep the loaded model while a switch waits for takes. Raises InProgress later, NotFound without a switch."""
        if self._switching is None or self.target is None:
            raise NotFound("no switch to another model is running")
        if not self.is_waiting:
            raise InProgress("the model is already being loaded; wait until it is ready", "model", "loading")
        await self._end_waiting()

    async def close(self) -> None:
        """End downloads, which a later start continues, and a switch that still waits."""
        if self.is_waiting:
            await self._end_waiting()
        for download in self._downloads.values():
            await download.stop()

    @property
    def _memory_to_free(self) -> int:
        """Bytes that the loaded model will free for another one."""
        return self._host.engine().info.memory_bytes if self._host.status.state == "ready" else 0

    async def _end_waiting(self) -> None:
        assert self._switching is not None
        await end_tasks(self._switching)

    def _download(self, name: str) -> ModelDownload:
        model = in_catalogue(name)
        if model is None or model.name not in self._downloads:
            names = ", ".join(self._downloads)
            raise NotFound(f"{name[:80]!r} is not a model that can be downloaded; choose one of {names}", "name")
        return self._downloads[model.name]

    async def _switch(self, name: str, path: str) -> None:
        host = self._host
        self.error, self.is_waiting = None, True
        try:
            await self._wait_for_requests()
        except asyncio.CancelledError:
            host.resume()
            raise
        finally:
            self.is_waiting = False
        host.switch(path, BUNDLED_FOLDER)
        if not await host.wait_until_ready():
            return
        if host.trouble is None:
            try:
                await to_thread.run_sync(write_choice, self._settings.home, name if in_catalogue(name) else path)
            except OSError as error:
                self.error = f"the choice could not be stored for the next start: {error.strerror or error}"
        self.target = None  # the rest is not part of the switch
        await self._switched()

    async def _wait_for_requests(self) -> None:
        """Refuse new requests, and wait for those that have begun; streams are ended after STREAM_SECONDS."""
        clock = asyncio.get_running_loop().time
        deadline = clock() + STREAM_SECONDS
        while count := self._in_use():
            left = max(0, math.ceil(deadline - clock()))
            self._host.hold(f"waiting for {count} requests to end, for streams {left} s at most")
            if not left:
                self._end_streams("another model is being loaded; try again when it is ready")
            await asyncio.sleep(LOOK_SECONDS)
        self._host.hold("changing the model")

    def _switch_ended(self, task: asyncio.Task[None]) -> None:
        if task is self._switching:
            self.target = None
        if not task.cancelled() and (problem := task.exception()) is not None:
            log.error("the model was not switched", exc_info=problem)

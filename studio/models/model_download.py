"""Downloads a model of the catalogue into the hub's cache, where the hub's own tools find it too."""

from __future__ import annotations

from pathlib import Path

from anyio import to_thread

from studio.models.catalogue import CatalogueModel
from studio.models.hub_download import HubDownload, remove_parts
from studio.models.installed import set_newest, snapshot


class ModelDownload(HubDownload):
    """Downloads a model into the hub's cache."""

    def __init__(self, model: CatalogueModel) -> None:
        self._model = model
        self._folder: Path | None = None
        super().__init__(model.files, self._start_in, self._complete, self._remove)

    def _start_in(self, commit: str) -> Path:
        self._folder = snapshot(self._model, commit)
        return self._folder

    async def _complete(self, commit: str, folder: Path) -> None:
        await to_thread.run_sync(set_newest, self._model, commit)
        await to_thread.run_sync(_remove_older_parts, folder)

    def _remove(self) -> None:
        if self._folder is not None:
            remove_parts(self._folder)


def _remove_older_parts(newest: Path) -> None:
    """Remove what interrupted downloads of earlier commits have left. Blocking."""
    for folder in newest.parent.iterdir():
        if folder != newest:
            remove_parts(folder)

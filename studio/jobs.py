"""One list of the long work under way: parts to speak, files, checks and downloads, each with a way to cancel it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

from studio.errors import NotFound
from studio.models.hub_download import DownloadStatus
from studio.models.model_service import ModelService
from studio.voices.recogniser import MODEL, RecogniserDownload


@dataclass(frozen=True, slots=True)
class JobCaller:
    """Whose work is listed; ``is_owner``: whether downloads are theirs too."""

    name: str
    owner_filter: str | None
    is_owner: bool


@dataclass(frozen=True, slots=True)
class JobEntry:
    """``done`` of ``total``: takes, parts or bytes; a total of 0 is unknown. ``left``: parts in the queue."""

    kind: str
    key: str
    title: str
    done: int = 0
    total: int = 0
    left: int | None = None
    eta_s: float | None = None
    project: str | None = None

    @property
    def as_json(self) -> dict[str, Any]:
        fields = asdict(self) | {"eta_s": self.eta_s and round(self.eta_s, 1)}
        return {"id": f"{self.kind}:{fields.pop('key')}", "object": "job"} | fields


class JobSource(Protocol):
    """Knows the work of some kinds."""

    kinds: frozenset[str]

    async def jobs(self, caller: JobCaller) -> list[JobEntry]: ...

    async def cancel(self, kind: str, key: str, caller: JobCaller) -> None:
        """Raises NotFound, NotAllowed."""


class DownloadJobs:
    """The downloads of models and of the recogniser, which are the owner's."""

    kinds = frozenset({"model", "recogniser"})

    def __init__(self, models: ModelService, recogniser: RecogniserDownload) -> None:
        self._models, self._recogniser = models, recogniser

    async def jobs(self, caller: JobCaller) -> list[JobEntry]:
        if not caller.is_owner:
            return []
        downloads = self._models.downloads.items()
        entries = [_download(name, "model", status) for name, status in downloads if status.is_running]
        if self._recogniser.status.is_running:
            entries.append(_download(MODEL, "recogniser", self._recogniser.status))
        return entries

    async def cancel(self, kind: str, key: str, caller: JobCaller) -> None:
        if not caller.is_owner:
            raise NotFound("there is no such download", "job")
        await (self._models.cancel_download(key) if kind == "model" else self._recogniser.cancel())


def _download(name: str, kind: str, status: DownloadStatus) -> JobEntry:
    return JobEntry(kind, name, name, status.done, status.total)

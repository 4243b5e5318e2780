"""The services of one studio, created and connected; routes and endpoints get the ones they need."""

from __future__ import annotations

import contextlib
import logging
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audio.voiceprint import Voiceprints
from studio import ASSETS
from studio.diagnostics import WARNINGS
from studio.engine_host import EngineHost
from studio.errors import LibraryFull, LibraryUnavailable, SettingsError
from studio.jobs import JobSource
from studio.library import Adopted, Backup, Library
from studio.library.client_files import ClientFiles
from studio.library.disk_reserve import NO_ROOM
from studio.models.model_service import ModelService
from studio.settings import Settings
from studio.speech.recorder import Retention
from studio.speech.register import Limits
from studio.speech.speech_service import SpeechService
from studio.speech.word_times import TakeWordTimes
from studio.supervisor import HealthCheck
from studio.takes.history import History
from studio.takes.regeneration import Regeneration
from studio.update_notice import UpdateNotice
from studio.voices.bundled import import_bundled, read_aliases
from studio.voices.clip_fetcher import ClipFetcher
from studio.voices.clip_service import ClipService, LibraryPrints
from studio.voices.denoiser import Denoiser
from studio.voices.recogniser import RecogniserDownload, Transcriber
from studio.voices.resolver import VoiceResolver

if TYPE_CHECKING:
    from fastapi import APIRouter


log = logging.getLogger(__name__)

TEMPORARY_BYTES = 32 * 2**20
"""Free bytes that a temporary library needs: three times those of the bundled voices."""


@dataclass(eq=False, slots=True)
class Additions:
    """What other packages add to a studio before its app is built; each has a function `register(studio)`."""

    routers: list[APIRouter] = field(default_factory=list)
    prefixes: list[str] = field(default_factory=list)
    """Beginnings of paths that belong to the API, besides /v1: unknown ones get a JSON error, not the page."""
    gradio_endpoints: list[Callable[[], object]] = field(default_factory=list)
    """Functions that make an object, whose public methods become named endpoints; called once Gradio is imported."""
    jobs: list[tuple[HealthCheck, Callable[[], Coroutine[Any, Any, None]]]] = field(default_factory=list)
    """Work in the background that generates speech, restarted after failures."""
    listed: list[JobSource] = field(default_factory=list)
    """Sources of the list of jobs, in addition to downloads."""
    closers: list[Callable[[], Awaitable[None]]] = field(default_factory=list)
    """Called when the studio stops, before the engine does."""


@dataclass(frozen=True, eq=False, slots=True)
class Studio:
    settings: Settings
    library: Library
    voices: VoiceResolver
    speech: SpeechService
    history: History
    word_times: TakeWordTimes
    regeneration: Regeneration
    clips: ClipService
    library_prints: LibraryPrints
    recogniser_download: RecogniserDownload
    models: ModelService
    client_files: ClientFiles
    update_notice: UpdateNotice
    additions: Additions
    temporary: tempfile.TemporaryDirectory[str] | None
    """The library's folder if the disk of STUDIO_HOME is full; it is removed when the studio stops."""


Register = Callable[[Studio], None]


def open_studio(
    settings: Settings, host: EngineHost, extensions: Sequence[Register] = (), library_type: type[Library] = Library
) -> Studio:
    """Create the services; ``extensions`` then add to them. ``library_type``: the library with what they need.

    If the disk of the library's folder is full, its settings are those of a temporary library. Raises SettingsError if
    the folder or its backup cannot be used.
    """
    limits = Limits(settings.max_per_caller, settings.requests_per_minute)
    logging.getLogger().addHandler(WARNINGS)
    settings, library, temporary = _open_library(settings, library_type)
    fetcher = ClipFetcher(settings.ref_folder, settings.ref_networks)
    retention = Retention.of(settings)
    voices = VoiceResolver(library, read_aliases(Path(settings.voices)))
    service = SpeechService(host, voices, limits, retention, fetcher)
    queues = service.queues
    transcriber, denoiser = Transcriber(queues.transcribing, settings.transcriber), Denoiser(queues.denoising)
    library_prints = LibraryPrints(library, Voiceprints(ASSETS / "fry" / "voiceprint.npz"))
    history = History(library, service.register, service.recorder)
    word_times = TakeWordTimes(library, host, queues.alignments)
    studio = Studio(
        settings=settings,
        library=library,
        voices=voices,
        speech=service,
        history=history,
        word_times=word_times,
        regeneration=Regeneration(history, word_times, library, service),
        clips=ClipService(queues.clips, transcriber, denoiser, library_prints),
        library_prints=library_prints,
        recogniser_download=RecogniserDownload(library.home, transcriber),
        models=ModelService(
            settings,
            host,
            queues.models,
            lambda: service.in_use,
            service.register.end_streams,
            lambda: service.warming.restart_forever(service.warm_voices),
        ),
        client_files=ClientFiles(),
        update_notice=UpdateNotice(library.home, settings.update_notice),
        additions=Additions(),
        temporary=temporary,
    )
    for register in extensions:
        register(studio)
    return studio


def _open_library(
    settings: Settings, library_type: type[Library]
) -> tuple[Settings, Library, tempfile.TemporaryDirectory[str] | None]:
    """The library and its settings. If its disk is full, a temporary one until the stop, on another disk or in memory.

    Raises SettingsError.
    """
    with contextlib.suppress(LibraryFull):
        return settings, _library_of(settings, library_type), None
    remedy = f"the disk of STUDIO_HOME={settings.home!r} is full: free 50 MB there, or set STUDIO_HOME to another disk"
    places = ["/dev/shm"] if sys.platform == "linux" else []  # noqa: S108 - a new folder in it, for this user only
    with contextlib.suppress(FileNotFoundError):  # raised if no folder for temporary files can be written
        places.insert(0, tempfile.gettempdir())
    for place in places:
        with contextlib.suppress(OSError, LibraryFull):
            if shutil.disk_usage(place).free < TEMPORARY_BYTES:
                continue
            folder = tempfile.TemporaryDirectory(prefix="studio-", dir=place, ignore_cleanup_errors=True)
            # No takes: the folder may be in memory. No backup: it would replace the real library's.
            instead = settings.model_copy(update={"home": folder.name, "keep_takes": 0, "backup_dir": None})
            library = _library_of(instead, library_type)
            log.warning(
                "%s. Until the next start a temporary library in %s has only the bundled voices, and what is made in "
                "it is gone when the studio stops",
                remedy,
                folder.name,
            )
            return instead, library, folder
    raise SettingsError(remedy)


def _library_of(settings: Settings, library_type: type[Library]) -> Library:
    """The library with the bundled voices, restored from its backup if it is missing.

    Raises LibraryFull if its disk is so full that nobody could speak, SettingsError for other obstacles.
    """
    home = Path(settings.home)
    with _explained(f"STUDIO_HOME={settings.home!r}"):
        backup = Backup(home, Path(settings.backup_dir)) if settings.backup_dir else None
    with _explained(f"STUDIO_BACKUP_DIR={settings.backup_dir!r}"):
        if backup:
            backup.restore()  # continuing after a failure would replace the real library with an empty one
    with _explained(f"STUDIO_HOME={settings.home!r}"):
        library = library_type(home, settings.trash_days, bool(settings.api_keys))
        library.backup = backup
        try:
            import_bundled(library, Path(settings.voices))
            _assign_owners(library, settings)
        except LibraryFull as full:
            if not library.voices.count():
                library.store.close()
                raise
            log.warning("the bundled voices and the owners are not up to date before the next start: %s", full)
        with library.store.reading() as db:  # a damaged table stops the start, not the first request
            db.execute("select n from takes not indexed limit 1").fetchone()
    return library


@contextlib.contextmanager
def _explained(setting: str) -> Iterator[None]:
    """Raise SettingsError with the setting for errors of its folder, but LibraryFull if its disk is full."""
    try:
        yield
    except LibraryFull:
        raise
    except LibraryUnavailable as error:
        raise SettingsError(f"{error} ({setting})") from error
    except OSError as error:
        if error.errno in NO_ROOM:
            raise LibraryFull(str(error)) from error
        raise SettingsError(f"{setting} cannot be used: {error}") from error


def _assign_owners(library: Library, settings: Settings) -> None:
    """Assign items created before keys had names, or before there were keys, to the owners of the keys."""
    if keys := settings.api_keys:
        library.assign_owners({key.unnamed_owner: key.owner for key in keys}, keys[0].owner)
        if (adopted := library.adopted) != Adopted():
            message = (
                "items created without a key now belong to the first of STUDIO_API_KEYS "
                "(takes: %d, projects: %d, voices: %d)"
            )
            log.warning(message, adopted.takes, adopted.projects, adopted.voices)

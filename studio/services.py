"""The services of one studio, created and connected; routes and endpoints get the ones they need."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path

from studio.engine_host import EngineHost
from studio.errors import LibraryUnavailable, SettingsError
from studio.history.history import History
from studio.library import Adopted, Backup, Library
from studio.library.client_files import ClientFiles
from studio.models.model_service import ModelService
from studio.paths import ASSETS
from studio.projects.casting.cast_service import CastService
from studio.projects.casting.chat_endpoint import ChatEndpoint
from studio.projects.project_service import ProjectService
from studio.projects.proof.proof_runs import ProofRuns
from studio.projects.worker import ProjectWorker
from studio.settings import Settings
from studio.speech.speech_service import SpeechService
from studio.takes.limits import Limits
from studio.takes.recorder import Retention
from studio.voices.bundled import import_bundled, read_aliases
from studio.voices.clip_fetcher import ClipFetcher
from studio.voices.clip_service import ClipService
from studio.voices.hearing.denoiser import Denoiser
from studio.voices.hearing.recogniser import Transcriber
from studio.voices.hearing.recogniser_download import RecogniserDownload
from studio.voices.hearing.voiceprint import Voiceprints
from studio.voices.library_prints import LibraryPrints
from studio.voices.resolver import VoiceResolver

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, slots=True)
class Studio:
    settings: Settings
    library: Library
    voices: VoiceResolver
    speech: SpeechService
    history: History
    projects: ProjectService
    cast: CastService
    proofs: ProofRuns
    clips: ClipService
    library_prints: LibraryPrints
    recogniser_download: RecogniserDownload
    models: ModelService
    client_files: ClientFiles


def open_studio(settings: Settings, host: EngineHost) -> tuple[Studio, ProjectWorker]:
    """Create the services, and the worker that generates projects in the background.

    Raises SettingsError if the library's folder or its backup cannot be used.
    """
    limits = Limits(settings.max_per_caller, settings.requests_per_minute)
    library = _open_library(settings)
    fetcher = ClipFetcher(settings.ref_folder, settings.ref_networks)
    retention = Retention(settings.keep_takes, settings.take_bytes) if settings.keep_takes else None
    voices = VoiceResolver(library, read_aliases(Path(settings.voices)))
    service = SpeechService(host, voices, limits, retention, fetcher)
    worker = ProjectWorker(service)
    queues = service.queues
    transcriber, denoiser = Transcriber(queues.transcribing, settings.transcriber), Denoiser(queues.denoising)
    library_prints = LibraryPrints(library, Voiceprints(ASSETS / "fry" / "voiceprint.npz"))
    studio = Studio(
        settings=settings,
        library=library,
        voices=voices,
        speech=service,
        history=History(library, service.takes, service.recorder, service.register.outcomes),
        projects=ProjectService(library, worker, voices, queues.documents),
        cast=CastService(library, service, _chat(settings)),
        proofs=ProofRuns(library, transcriber, queues.proofs, queues.transcribing),
        clips=ClipService(queues.clips, transcriber, denoiser, library_prints),
        library_prints=library_prints,
        recogniser_download=RecogniserDownload(library.home, transcriber),
        models=ModelService(
            settings, host, lambda: service.in_use, lambda: service.warming.restart_forever(service.warm_voices)
        ),
        client_files=ClientFiles(),
    )
    return studio, worker


def _chat(settings: Settings) -> ChatEndpoint | None:
    return ChatEndpoint(*settings.chat) if settings.chat else None


def _open_library(settings: Settings) -> Library:
    """The library with the bundled voices, restored from its backup if it is missing."""
    home = Path(settings.home)
    backup = Backup(home, Path(settings.backup_dir)) if settings.backup_dir else None
    if backup:
        try:
            backup.restore()
        except OSError as error:  # continuing would replace the real library with an empty one
            raise SettingsError(f"STUDIO_BACKUP_DIR={settings.backup_dir!r} cannot be used: {error}") from error
    try:
        library = Library(home, settings.trash_days, bool(settings.api_keys))
        library.backup = backup
        import_bundled(library, Path(settings.voices))
        _assign_owners(library, settings)
        with library.store.reading() as db:  # a damaged table stops the start, not the first request
            db.execute("select n from takes not indexed limit 1").fetchone()
    except LibraryUnavailable as error:
        raise SettingsError(f"{error} (STUDIO_HOME={settings.home!r})") from error
    except OSError as error:
        raise SettingsError(f"STUDIO_HOME={settings.home!r} cannot be used: {error}") from error
    return library


def _assign_owners(library: Library, settings: Settings) -> None:
    """Assign items created before keys had names, or before there were keys, to the owners of the keys."""
    if keys := settings.api_keys:
        library.assign_owners({key.unnamed_owner: key.owner for key in keys if key.name}, keys[0].owner)
        if (adopted := library.adopted) != Adopted():
            message = (
                "items created without a key now belong to the first of STUDIO_API_KEYS "
                "(takes: %d, projects: %d, voices: %d)"
            )
            log.warning(message, adopted.takes, adopted.projects, adopted.voices)

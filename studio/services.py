"""The services of one studio, made once where it is put together; routes and endpoints are handed those they need."""

from __future__ import annotations

from dataclasses import dataclass

from studio.library import Library
from studio.projects.service import ProjectService
from studio.settings import Settings
from studio.speech.service import SpeechService
from studio.takes.history import History
from studio.voices.hearing.denoiser import Denoiser
from studio.voices.hearing.fetching import RecogniserFetch
from studio.voices.hearing.recogniser import Transcriber
from studio.voices.resolver import VoiceResolver


@dataclass(frozen=True, eq=False, slots=True)
class Studio:
    settings: Settings
    library: Library
    voices: VoiceResolver
    speech: SpeechService
    history: History
    projects: ProjectService
    transcriber: Transcriber
    denoiser: Denoiser
    recogniser_fetch: RecogniserFetch

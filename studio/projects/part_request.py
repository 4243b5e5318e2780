"""The speech request for a part: with the settings of its project, and at low priority."""

from __future__ import annotations

import secrets

from studio.library.projects.project_records import ProjectSettings
from studio.speech.request import Origin, SpeechRequest


def request_of(settings: ProjectSettings, voice: str | None, text: str, seed: int | None) -> SpeechRequest:
    """``voice`` overrides the project's voice; ``seed`` None draws a random seed."""
    return SpeechRequest(
        text=text,
        voice=voice or settings.voice,
        format="wav",
        seed=seed,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
        speed=settings.speed,
        normalize=settings.normalize,
        pronunciations=settings.pronunciations,
    )


def origin_of(project_id: str, owner: str) -> Origin:
    """A background origin: its requests queue behind all live ones."""
    return Origin(f"{project_id}.{secrets.token_hex(6)}", owner, patient=True, background=True)

"""How the words of a project are spoken: by its settings, patiently."""

from __future__ import annotations

import secrets

from studio.library.projects.project_records import ProjectSettings
from studio.speech.request import Origin, SpeechRequest


def request_of(settings: ProjectSettings, voice: str | None, text: str, seed: int | None) -> SpeechRequest:
    """``voice``: the part's own, if it has one; ``seed``: None where any will do."""
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
    """In the background, after all requests that somebody listens to."""
    return Origin(f"{project_id}.{secrets.token_hex(6)}", owner, patient=True, background=True)

"""ElevenLabs' protocol on the studio's services, so that its SDKs and the programs built on them work unmodified."""

from __future__ import annotations

import re

from fastapi import APIRouter

from protocols.elevenlabs.eleven_library import ElevenLibraryRoutes
from protocols.elevenlabs.eleven_names import CONSTANTS, PREFIX, for_eleven_client
from protocols.elevenlabs.eleven_speech import eleven_speech_routes
from protocols.elevenlabs.sockets import eleven_sockets
from studio.api.error_responses import ApiError, Protocol, add_protocol
from studio.services import Studio
from studio.speech.speech_service import SpeechService

OWN = "text-to-speech|text-to-dialogue|speech-to-text|user|history"
"""First parts of paths below /v1 that are served, and that only this protocol has."""
_LACKING: dict[str, str] = CONSTANTS["not_offered"]
_FIRST_PARTS = {path.split("/")[2] for path in _LACKING}
_ALONE = "|".join(sorted(_FIRST_PARTS - {"voices"} | set(OWN.split("|"))))


def _error(error: ApiError) -> dict[str, object]:
    return {"detail": {"status": error.code or f"error_{error.status}", "message": for_eleven_client(error.message)}}


ELEVENLABS = Protocol(
    name="ElevenLabsError",
    paths=re.compile(rf"{PREFIX}(/|$)"),
    error=_error,
    description="ElevenLabs' form.",
    not_offered={PREFIX + path: text for path, text in _LACKING.items()},
    not_offered_status=501,
    prefix=PREFIX,
    root_paths=re.compile(rf"/(v1/({_ALONE})|v2/voices)(/|$)"),
    shared_paths=re.compile(r"/v1/(voices|models)(/|$)"),
    key_header=b"xi-api-key",
    has_keys_in_messages=True,
)


def eleven_routes_of_speech(speech: SpeechService) -> list[APIRouter]:
    """The routes that send speech."""
    add_protocol(ELEVENLABS)
    return [eleven_speech_routes(speech), eleven_sockets(speech)]


def register(studio: Studio) -> None:
    """Add the protocol to a studio."""
    studio.additions.prefixes += [PREFIX]
    studio.additions.routers += [*eleven_routes_of_speech(studio.speech), ElevenLibraryRoutes(studio).router()]

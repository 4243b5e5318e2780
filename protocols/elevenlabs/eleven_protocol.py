"""Adds ElevenLabs' protocol to a studio: its routes, the form of its errors, and what it has that the studio lacks."""

from __future__ import annotations

import re

from fastapi import APIRouter

from protocols.elevenlabs.eleven_library import ElevenLibraryRoutes
from protocols.elevenlabs.eleven_names import PREFIX, for_eleven_client
from protocols.elevenlabs.eleven_speech import ElevenSpeechRoutes
from protocols.elevenlabs.sockets import eleven_sockets
from studio.api.error_responses import ApiError, Protocol, add_protocol
from studio.services import Studio
from studio.speech.speech_service import SpeechService

OWN = "text-to-speech|text-to-dialogue|speech-to-text|user|history"
"""First parts of paths below /v1 that are served, and that only this protocol has."""
_LACKING = {
    "/v1/text-to-voice": "Voices cannot be remixed; design another with POST /v1/text-to-voice/design.",
    "/v1/voice-generation": "Describe the voice in words, with POST /v1/text-to-voice/design.",
    "/v1/voices/pvc": "Professional clones do not exist here; create a voice with POST /v1/voices/add.",
    "/v1/voices/collections": "There are no collections of voices; GET /v2/voices lists them all.",
    "/v1/shared-voices": "There is no library of shared voices; GET /v2/voices lists the voices of this studio.",
    "/v1/similar-voices": "There is no library of shared voices; GET /v2/voices lists the voices of this studio.",
    "/v1/speech-to-speech": "Speech cannot be converted to another voice; transcribe it, and speak the text.",
    "/v1/sound-generation": "There are no sound effects: the model speaks.",
    "/v1/music": "There is no music: the model speaks.",
    "/v1/dubbing": "There is no dubbing.",
    "/v1/audio-isolation": "Recordings are not isolated; POST /v1/voices/denoise of the studio's API denoises clips.",
    "/v1/audio-native": "There is no embedded player.",
    "/v1/forced-alignment": "Recordings cannot be aligned; POST /v1/speech-to-text has the times of their words.",
    "/v1/pronunciation-dictionaries": "There are no ElevenLabs dictionaries; add entries with POST /v1/pronunciations.",
    "/v1/studio": "There are no ElevenLabs projects; the studio's own are at /v1/projects.",
    "/v1/history/download": "Download items one by one from GET /v1/history/{history_item_id}/audio.",
    "/v1/single-use-token": "There are no single-use tokens; send a key as the header xi-api-key.",
    "/v1/convai": "There are no agents; generate their speech with the sockets of /v1/text-to-speech.",
    "/v1/workspace": "There are no workspaces.",
    "/v1/usage": "Usage is not counted.",
}
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
    return [ElevenSpeechRoutes(speech).router(), eleven_sockets(speech)]


def register(studio: Studio) -> None:
    """Add the protocol to a studio."""
    studio.additions.prefixes += [PREFIX]
    studio.additions.routers += [*eleven_routes_of_speech(studio.speech), ElevenLibraryRoutes(studio).router()]

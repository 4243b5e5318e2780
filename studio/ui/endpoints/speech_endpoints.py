"""The endpoints for speech, over the same service as the API; names and arguments are frozen."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from typing import Any

import gradio as gr

from engine import Sampling
from studio.audio.encode import whole_wav
from studio.errors import InvalidRequest
from studio.library.client_files import ClientFile, ClientFiles, Upload
from studio.speech.dialogue import TURN_GAP
from studio.speech.request import Origin, OwnClip, SpeechRequest
from studio.speech.speech_service import Speech, SpeechService
from studio.ui.endpoints.add_endpoints import add_endpoints
from studio.ui.file_fields import file_field

DEFAULTS = Sampling()
RANDOM_SEED = -1


class SpeechEndpoints:
    """The endpoints' methods. Clients get every error as gradio_client's AppError with its message."""

    def __init__(self, service: SpeechService, files: ClientFiles) -> None:
        self._service = service
        self._files = files

    async def synthesize(
        self, caller: gr.Request, *, ref_audio: Upload | None = None, **fields: Any
    ) -> tuple[ClientFile, dict[str, object]]:
        """Generate speech: a WAV file, and the take's seed and timings. seed -1 means random, max_new_tokens 0
        unlimited."""
        return await self._generate(speech_request("wav", ref_audio, **fields), caller)

    async def synthesize_stream(
        self, caller: gr.Request, *, ref_audio: Upload | None = None, **fields: Any
    ) -> AsyncIterator[dict[str, object]]:
        """Generate speech in pieces: base64 of 24 kHz 16-bit mono PCM in `pcm`. The last item has no audio, but the
        take's seed and timings."""
        speech = await self._speak(speech_request("pcm", ref_audio, **fields), caller)
        number = 0
        async with aclosing(speech):
            async for piece in speech.body:
                yield {
                    "number": number,
                    "sample_rate": speech.sample_rate,
                    "pcm": base64.b64encode(piece).decode("ascii"),
                    "done": False,
                    "request_id": speech.request_id,
                    "seed": speech.seed,
                }
                number += 1
        yield {"number": number, "sample_rate": speech.sample_rate, "pcm": "", "done": True} | _facts(speech)

    async def dialogue(
        self, caller: gr.Request, *, script: str, cast: Any, ref_audio: Upload | None = None, **fields: Any
    ) -> tuple[ClientFile, dict[str, object]]:
        """Generate a dialogue from lines such as “Anna: Hello.”, each in the voice that cast gives the name: a WAV
        file, and the take with the times of its turns."""
        if not isinstance(cast, dict) or not all(isinstance(text, str) for pair in cast.items() for text in pair):
            raise InvalidRequest("cast must be an object of names and voices", "cast")
        return await self._generate(speech_request("wav", ref_audio, text=script, cast=cast, **fields), caller)

    def voices_list(self, caller: gr.Request) -> list[dict[str, object]]:
        """The voices: id, name, and the transcript of the reference clip."""
        voices = self._service.voices.seen_by(caller.state.owner_filter).listed
        return [{"id": voice.slug, "name": voice.name, "text": voice.text} for voice in voices]

    def health(self) -> dict[str, object]:
        """The engine's state (starting, ready, failed) and, once ready, its load."""
        status = asdict(self._service.status)
        if status["state"] != "ready":
            return status
        return status | {"load": asdict(self._service.stats())}

    def queue_status(self, caller: gr.Request) -> dict[str, object]:
        """The load of the engine and its queue, and this caller's running requests."""
        return self._service.queue_for(caller.state.caller)

    async def _generate(self, request: SpeechRequest, caller: gr.Request) -> tuple[ClientFile, dict[str, object]]:
        """The whole take as a WAV file, and its facts."""
        speech = await self._speak(request, caller)
        async with aclosing(speech):
            wav = b"".join([piece async for piece in speech.body])
        pieces = [whole_wav(wav, speech.sample_rate)]
        return await self._files.add_result("take.wav", pieces, caller.state.owner_filter, caller.state.caller), _facts(
            speech
        )

    async def _speak(self, request: SpeechRequest, caller: gr.Request) -> Speech:
        return await self._service.speak(request, Origin(caller=caller.state.caller))


def add_speech_endpoints(service: SpeechService, files: ClientFiles) -> None:
    """Add the endpoints to the Blocks being built; their components are never shown."""
    endpoints = SpeechEndpoints(service, files)
    with gr.Column(visible=False):
        voice = gr.Textbox("default", label="voice")
        text = [gr.Textbox("", label="text"), voice]
        script = [
            gr.Textbox("", label="script"),
            gr.JSON({}, label="cast"),
            voice,
            gr.Number(TURN_GAP, label="turn_gap"),
        ]
        options = [
            file_field("ref_audio"),
            gr.Textbox("", label="ref_text"),
            gr.Number(RANDOM_SEED, label="seed", precision=0),
            gr.Number(DEFAULTS.temperature, label="temperature"),
            gr.Number(DEFAULTS.top_p, label="top_p"),
            gr.Number(DEFAULTS.top_k, label="top_k", precision=0),
            gr.Number(0, label="max_new_tokens", precision=0),
            gr.Number(1.0, label="speed"),
            gr.Checkbox(True, label="store"),
        ]
        file, take = file_field("file"), gr.JSON(label="take")
        add_endpoints(
            {
                endpoints.synthesize: ([*text, *options], [file, take]),
                endpoints.synthesize_stream: ([*text, *options], take),
                endpoints.dialogue: ([*script, *options], [file, take]),
                endpoints.voices_list: ([], take),
                endpoints.health: ([], take),
                endpoints.queue_status: ([], take),
            }
        )


def speech_request(
    audio_format: str,
    clip: Upload | None,
    *,
    voice: str,
    ref_text: str,
    seed: int,
    max_new_tokens: int,
    **fields: Any,
) -> SpeechRequest:
    """``fields``: further fields of the SpeechRequest. Raises InvalidRequest, InvalidClip."""
    return SpeechRequest(
        voice=None if clip else voice,
        clips=(OwnClip(clip.data, ref_text),) if clip else (),
        format=audio_format,
        seed=None if seed < 0 else seed,
        max_frames=max_new_tokens or None,
        **fields,
    )


def _facts(speech: Speech) -> dict[str, object]:
    return {"request_id": speech.request_id} | speech.take.as_json()

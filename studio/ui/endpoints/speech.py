"""The named endpoints for gradio_client that speak, over the same service as the API; names and arguments stay."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import asdict

import gradio as gr

from engine import EngineError, Sampling
from studio.audio.encode import whole_wav
from studio.errors import InvalidRequest, StudioError
from studio.library.client_files import ClientFile, ClientFiles, Upload
from studio.speech.dialogue import TURN_GAP
from studio.speech.request import Origin, OwnClip, SpeechRequest
from studio.speech.speech_service import Speech, SpeechService
from studio.ui.file_fields import file_field

USUAL = Sampling()
WHEN_ALL_IS_SAID = 0
"""Means: no limit of frames."""
RANDOM_SEED = -1
"""Means: draw one, and say which."""
ALL_AT_ONCE = None
"""The engine keeps its own line; Gradio's queue must not hold anybody back before it."""


class SpeechEndpoints:
    """What the endpoints do. Every refusal reaches the client as gradio_client's AppError with its message."""

    def __init__(self, service: SpeechService, files: ClientFiles) -> None:
        self._service = service
        self._files = files

    async def synthesize(
        self,
        caller: gr.Request,
        text: str = "",
        voice: str = "default",
        ref_audio: Upload | None = None,
        ref_text: str = "",
        seed: float = RANDOM_SEED,
        temperature: float = USUAL.temperature,
        top_p: float = USUAL.top_p,
        top_k: float = USUAL.top_k,
        max_new_tokens: float = WHEN_ALL_IS_SAID,
        speed: float = 1.0,
        store: bool = True,
    ) -> tuple[ClientFile, dict[str, object]]:
        """Speak a text and return a WAV file and what is known of the take."""
        request = _request(
            text, voice, ref_audio, ref_text, seed, temperature, top_p, top_k, max_new_tokens, speed, store, "wav"
        )
        return await self._speak_whole(request, caller)

    async def synthesize_stream(
        self,
        caller: gr.Request,
        text: str = "",
        voice: str = "default",
        ref_audio: Upload | None = None,
        ref_text: str = "",
        seed: float = RANDOM_SEED,
        temperature: float = USUAL.temperature,
        top_p: float = USUAL.top_p,
        top_k: float = USUAL.top_k,
        max_new_tokens: float = WHEN_ALL_IS_SAID,
        speed: float = 1.0,
        store: bool = True,
    ) -> AsyncIterator[dict[str, object]]:
        """Speak a text in pieces while it is made; the last item has no sound but what is known of the take."""
        request = _request(
            text, voice, ref_audio, ref_text, seed, temperature, top_p, top_k, max_new_tokens, speed, store, "pcm"
        )
        speech = await self._speak(request, caller)
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
        self,
        caller: gr.Request,
        script: str = "",
        cast: dict[str, str] | None = None,
        voice: str = "default",
        turn_gap: float = TURN_GAP,
        ref_audio: Upload | None = None,
        ref_text: str = "",
        seed: float = RANDOM_SEED,
        temperature: float = USUAL.temperature,
        top_p: float = USUAL.top_p,
        top_k: float = USUAL.top_k,
        max_new_tokens: float = WHEN_ALL_IS_SAID,
        speed: float = 1.0,
        store: bool = True,
    ) -> tuple[ClientFile, dict[str, object]]:
        """Speak a script whose lines name their speakers; returns a WAV file and the take with its turns' times."""
        told = (
            script,
            voice,
            ref_audio,
            ref_text,
            seed,
            temperature,
            top_p,
            top_k,
            max_new_tokens,
            speed,
            store,
            "wav",
        )
        return await self._speak_whole(_request(*told, _checked_cast(cast), turn_gap), caller)

    def voices_list(self) -> list[dict[str, object]]:
        """The voices to speak in: id, name, and the words of the reference clip."""
        listed = self._service.voices.listed
        return [{"id": voice.id, "name": voice.name, "text": voice.text} for voice in listed]

    def health(self) -> dict[str, object]:
        """The engine's state (starting, ready, failed) and, once ready, its load."""
        status = asdict(self._service.status)
        if status["state"] != "ready":
            return status
        return status | {"load": asdict(self._service.stats())}

    def queue_status(self, caller: gr.Request) -> dict[str, object]:
        """How full the engine and its line are, and which requests of this caller are under way."""
        try:
            return self._service.line(caller.state.caller)
        except StudioError as error:
            raise _refusal(error) from error

    async def _speak_whole(self, request: SpeechRequest, caller: gr.Request) -> tuple[ClientFile, dict[str, object]]:
        """The whole take as a WAV file, and what is known of it."""
        speech = await self._speak(request, caller)
        async with aclosing(speech):
            wav = b"".join([piece async for piece in speech.body])
        pieces = [whole_wav(wav, speech.sample_rate)]
        return await self._files.add_result("take.wav", pieces, caller.state.sees, caller.state.caller), _facts(speech)

    async def _speak(self, request: SpeechRequest, caller: gr.Request) -> Speech:
        try:
            return await self._service.speak(request, Origin(caller=caller.state.caller))
        except (StudioError, EngineError) as error:
            raise _refusal(error) from error


def add_speech_endpoints(service: SpeechService, files: ClientFiles) -> None:
    """Add the endpoints to the Blocks being built; their components are never shown."""
    endpoints = SpeechEndpoints(service, files)
    with gr.Column(visible=False):
        inputs = [
            gr.Textbox("", label="text"),
            gr.Textbox("default", label="voice"),
            file_field("ref_audio"),
            gr.Textbox("", label="ref_text"),
            gr.Number(RANDOM_SEED, label="seed", precision=0),
            gr.Number(USUAL.temperature, label="temperature"),
            gr.Number(USUAL.top_p, label="top_p"),
            gr.Number(USUAL.top_k, label="top_k", precision=0),
            gr.Number(WHEN_ALL_IS_SAID, label="max_new_tokens", precision=0),
            gr.Number(1.0, label="speed"),
            gr.Checkbox(True, label="store"),
        ]
        file, facts = file_field("file"), gr.JSON(label="take")
        trigger = gr.Button()
    trigger.click(
        endpoints.synthesize,
        inputs,
        [file, facts],
        api_name="synthesize",
        api_description="Speak a text: a WAV file, and the take's seed and timings. seed -1 picks one at random.",
        concurrency_limit=ALL_AT_ONCE,
    )
    trigger.click(
        endpoints.synthesize_stream,
        inputs,
        facts,
        api_name="synthesize_stream",
        api_description="Speak a text in pieces while it is made: base64 of 24 kHz 16-bit mono PCM in `pcm`.",
        concurrency_limit=ALL_AT_ONCE,
    )
    with gr.Column(visible=False):
        script = [
            gr.Textbox("", label="script"),
            gr.JSON({}, label="cast"),
            gr.Textbox("default", label="voice"),
            gr.Number(TURN_GAP, label="turn_gap"),
        ]
    trigger.click(
        endpoints.dialogue,
        [*script, *inputs[2:]],
        [file, facts],
        api_name="dialogue",
        api_description="Speak lines such as “Anna: Hello.”, each in the voice that cast has for the name.",
        concurrency_limit=ALL_AT_ONCE,
    )
    trigger.click(endpoints.voices_list, None, facts, api_name="voices_list", api_description="The voices to speak in.")
    trigger.click(endpoints.health, None, facts, api_name="health", api_description="The engine's state and load.")
    trigger.click(
        endpoints.queue_status,
        None,
        facts,
        api_name="queue_status",
        api_description="How full the engine and its line are, and this caller's requests under way.",
    )


def _request(
    text: str,
    voice: str,
    ref_audio: Upload | None,
    ref_text: str,
    seed: float,
    temperature: float,
    top_p: float,
    top_k: float,
    max_new_tokens: float,
    speed: float,
    store: bool,
    format_name: str,
    cast: dict[str, str] | None = None,
    turn_gap: float = TURN_GAP,
) -> SpeechRequest:
    clip = ref_audio.data if ref_audio else None
    try:
        return SpeechRequest(
            text=text,
            voice=None if clip is not None else voice,
            clips=() if clip is None else (OwnClip(clip, ref_text),),
            format=format_name,
            seed=None if seed < 0 else int(seed),
            temperature=temperature,
            top_p=top_p,
            top_k=int(top_k),
            max_frames=int(max_new_tokens) or None,
            speed=speed,
            store=store,
            cast=cast,
            turn_gap=turn_gap,
        )
    except StudioError as error:
        raise _refusal(error) from error


def _checked_cast(cast: object) -> dict[str, str]:
    named = {} if cast is None else cast
    if not isinstance(named, dict) or not all(isinstance(each, str) for pair in named.items() for each in pair):
        raise _refusal(InvalidRequest("cast must be an object of names and voices", "cast"))
    return named


def _refusal(error: Exception) -> gr.Error:
    return gr.Error(str(error), title="The studio could not speak this", print_exception=False)


def _facts(speech: Speech) -> dict[str, object]:
    return {"request_id": speech.request_id} | speech.take.as_json()

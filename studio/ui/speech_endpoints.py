"""The endpoints for speech and the history, over the same services as the API; names and arguments are frozen."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import gradio as gr

from audio.encode import whole_wav
from speechtext.turns import TURN_GAP
from studio.errors import InvalidRequest
from studio.library import TakeFilter
from studio.library.client_files import ClientFile, ClientFiles, Upload
from studio.speech.delivery import Speech
from studio.speech.request import Origin, OwnClip, SpeechRequest
from studio.speech.speech_service import SpeechService
from studio.takes.history import History
from studio.takes.take_export import STORED, encoded
from studio.ui.add_endpoints import Take, TakeFile
from studio.work import WorkQueue

UNSET = -1
"""The voice's or the model's own sampling; a random seed."""

MAX_LIST = 200


@dataclass(frozen=True)
class _Text:
    text: str = ""
    voice: str = "default"


@dataclass(frozen=True)
class _Script:
    script: str = ""
    cast: Any = field(default_factory=dict)
    voice: str = "default"
    turn_gap: float = TURN_GAP


@dataclass(frozen=True)
class _Options:
    ref_audio: Upload | None = None
    ref_text: str = ""
    seed: int = UNSET
    temperature: float = UNSET
    top_p: float = UNSET
    top_k: int = UNSET
    max_new_tokens: int = 0
    speed: float = 1.0
    store: bool = True


class SpeechEndpoints:
    """The endpoints' methods. Clients get every error as gradio_client's AppError with its message."""

    def __init__(self, service: SpeechService, files: ClientFiles) -> None:
        self._service = service
        self._files = files

    async def synthesize(
        self, caller: gr.Request, *, ref_audio: Upload | None = None, **fields: Annotated[Any, _Text, _Options]
    ) -> tuple[TakeFile, Take]:
        """Generate speech: a WAV file, and the take's seed and timings. seed -1 means random, temperature, top_p and
        top_k -1 the voice's or the model's own, max_new_tokens 0 unlimited."""
        return await self._generate(speech_request("wav", ref_audio, **fields), caller)

    async def synthesize_stream(
        self, caller: gr.Request, *, ref_audio: Upload | None = None, **fields: Annotated[Any, _Text, _Options]
    ) -> AsyncIterator[Take]:
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
        self,
        caller: gr.Request,
        *,
        script: str,
        cast: Any,
        ref_audio: Upload | None = None,
        **fields: Annotated[Any, _Script, _Options],
    ) -> tuple[TakeFile, Take]:
        """Generate a dialogue from lines such as “Anna: Hello.”, each in the voice that cast gives the name: a WAV
        file, and the take with the times of its turns."""
        if not isinstance(cast, dict) or not all(isinstance(text, str) for pair in cast.items() for text in pair):
            raise InvalidRequest("cast must be an object of names and voices", "cast")
        return await self._generate(speech_request("wav", ref_audio, text=script, cast=cast, **fields), caller)

    async def voices_list(self, caller: gr.Request) -> Annotated[list[dict[str, object]], "take"]:
        """The voices: id, name, and the transcript of the reference clip."""
        library = self._service.voices.seen_by(caller.state.owner_filter)
        voices = await self._service.queues.lists.run(caller.state.caller, lambda: library.listed)
        return [{"id": voice.slug, "name": voice.name, "text": voice.text} for voice in voices]

    def health(self) -> Take:
        """The engine's state (starting, ready, failed) and, once ready, its load."""
        status = asdict(self._service.status)
        if status["state"] != "ready":
            return status
        return status | {"load": asdict(self._service.stats())}

    def queue_status(self, caller: gr.Request) -> Take:
        """The load of the engine and its queue, and this caller's running requests."""
        return self._service.queue_for(caller.state.caller)

    async def _generate(self, request: SpeechRequest, caller: gr.Request) -> tuple[ClientFile, dict[str, object]]:
        """The whole take as a WAV file, and its facts."""
        speech = await self._speak(request, caller)
        async with aclosing(speech):
            wav = b"".join([piece async for piece in speech.body])
        pieces = [whole_wav(wav, speech.sample_rate)]
        file = await self._files.add_result("take.wav", pieces, caller.state.owner_filter, caller.state.caller)
        return file, _facts(speech)

    async def _speak(self, request: SpeechRequest, caller: gr.Request) -> Speech:
        return await self._service.speak(request, Origin(caller=caller.state.caller))


def speech_request(
    audio_format: str, clip: Upload | None, *, voice: str, ref_text: str, max_new_tokens: int, **fields: Any
) -> SpeechRequest:
    """``fields``: further fields of the SpeechRequest. Raises InvalidRequest, InvalidClip."""
    return SpeechRequest(
        voice=None if clip else voice,
        clips=(OwnClip(clip.data, ref_text),) if clip else (),
        format=audio_format,
        max_frames=max_new_tokens or None,
        **fields | {name: None for name in ("seed", "temperature", "top_p", "top_k") if fields[name] < 0},
    )


def _facts(speech: Speech) -> dict[str, object]:
    return {"request_id": speech.request_id} | speech.take.as_json()


class TakeEndpoints:
    """The endpoints' methods. Clients get every error as gradio_client's AppError with its message."""

    def __init__(self, history: History, files: ClientFiles, exports: WorkQueue) -> None:
        self._history = history
        self._files = files
        self._exports = exports

    async def history_list(
        self,
        caller: gr.Request,
        *,
        query: str = "",
        voice: str = "",
        starred: bool = False,
        limit: int = 50,
        after: str = "",
    ) -> Take:
        """Takes, newest first, filtered by a part of the text, by voice, or to starred ones; paged by `after`."""
        if not 1 <= limit <= MAX_LIST:
            raise InvalidRequest(f"limit must be from 1 to {MAX_LIST}", "limit")
        takes = TakeFilter(query, voice or None, starred or None, caller=caller.state.owner_filter)
        page = await self._history.page(await self._history.with_voice_id(takes), limit, after or None)
        return {"data": page.data, "last_id": page.last_id, "has_more": page.has_more}

    async def take_get(self, caller: gr.Request, *, take_id: str = "") -> tuple[TakeFile | None, Take]:
        """One take by its id: its audio as a WAV file, if there is any, and its text, parameters and figures."""
        take_id, owner_filter, name = take_id.strip(), caller.state.owner_filter, caller.state.caller
        facts = await self._history.get(take_id, owner_filter)
        if not facts["audio"]:
            return None, facts
        take, sound = await self._history.playable(take_id, owner_filter)
        pieces: Iterable[bytes] = [sound] if isinstance(sound, bytes) else _chunks(sound)
        if take.media_type != "audio/wav":
            pieces = await self._exports.run(name, list, encoded(sound, STORED))
        return await self._files.add_result(f"{take.id}.{STORED}", pieces, owner_filter, name), facts


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            yield piece

"""The one door to speech, for page and API alike: a SpeechRequest in, a Speech out while it is made."""

from __future__ import annotations

import secrets
import time
import uuid
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import cast

from anyio import to_thread

from engine import AudioChunk, Engine, EngineStats, Reference, Sampling, Utterance
from studio.audio.formats import DEFAULT_FORMAT, check_format
from studio.delivery import Delivery
from studio.errors import InvalidClip, InvalidRequest
from studio.host import EngineHost, HostStatus
from studio.references import References
from studio.takes import Take, Takes
from studio.voices import Voice, VoiceShelf

MAX_INPUT = 4096
"""Characters of text in one request, as OpenAI allows."""
MAX_FRAMES = 4096
"""The largest budget of frames that a request may ask for."""
MAX_CLIP_TEXT = 2000
DEFAULT_FRAMES = 2048
DEFAULT_SAMPLING = Sampling()
OWN_CLIP = "clip"
"""The voice's id when the request brought its own clip."""


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """What somebody wants to hear; None means: choose for me. Raises InvalidRequest."""

    text: str
    voice: str | None = None
    """An id, name or alias of a bundled voice; must be None when there is a clip."""
    clip: bytes | None = field(default=None, repr=False)
    """A recording of the voice to speak in, in any readable container, 1 to 30 s."""
    clip_text: str | None = None
    """The words spoken in the clip."""
    format: str = DEFAULT_FORMAT
    sample_rate: int | None = None
    """Hz, of the file; None is the format's own: 24 kHz for pcm, 48 for opus, the model's for all others."""
    seed: int | None = None
    temperature: float = DEFAULT_SAMPLING.temperature
    top_p: float = DEFAULT_SAMPLING.top_p
    top_k: int = DEFAULT_SAMPLING.top_k
    max_frames: int = DEFAULT_FRAMES
    """The take ends here at the latest (21.5 frames a second for S2 Pro)."""

    def __post_init__(self) -> None:
        _check_text("input", self.text, MAX_INPUT)
        check_format(self.format, self.sample_rate)
        if not 1 <= self.max_frames <= MAX_FRAMES:
            raise InvalidRequest(f"max_new_tokens must be from 1 to {MAX_FRAMES}", "max_new_tokens")
        if self.clip is None and self.clip_text is not None:
            raise InvalidRequest("ref_text was given without ref_audio", "ref_audio")
        if self.clip is not None:
            if self.voice is not None:
                raise InvalidRequest("give either a voice or a clip of your own, not both", "voice")
            if self.clip_text is None:
                raise InvalidClip("a clip needs the words spoken in it: ref_text is missing", "ref_text")
            _check_text("ref_text", self.clip_text, MAX_CLIP_TEXT)


@dataclass(frozen=True, eq=False, slots=True)
class Speech:
    """An answer under way, its first bytes ready. Iterate ``body`` once; `aclose` in any case."""

    request_id: str
    media_type: str
    sample_rate: int
    """Hz, of the file."""
    seed: int
    voice: str
    queue_ms: float
    first_audio_ms: float
    body: AsyncGenerator[bytes, None]
    """The file's bytes while they are made. Leaving the iteration cancels the take."""
    delivery: Delivery = field(repr=False)

    @property
    def take(self) -> Take:
        """What is known of the take by now; complete once the body has ended."""
        return self.delivery.take

    async def aclose(self) -> None:
        """End the take now. Calling it again, or after the body has ended, does nothing."""
        await self.body.aclose()
        await self.delivery.aclose()


class SpeechService:
    """Speaks requests with the host's engine in the shelf's voices. Used from one event loop."""

    def __init__(self, host: EngineHost, voices: VoiceShelf) -> None:
        self.host = host
        self.voices = voices
        self.takes = Takes()
        self._references = References()

    @property
    def status(self) -> HostStatus:
        return self.host.status

    def stats(self) -> EngineStats:
        """The engine's counters. Raises NotReady, Unavailable."""
        return self.host.engine().stats()

    async def speak(self, request: SpeechRequest, request_id: str | None = None) -> Speech:
        """Begin to speak; returns when the first bytes are there. Being cancelled frees the row.

        Raises UnknownVoice, InvalidClip, NotReady, Unavailable and what Engine.speak raises.
        """
        started = time.perf_counter()
        engine = self.host.engine()
        voice, references = await self._whose(engine, request)
        seed = secrets.randbelow(2**31) if request.seed is None else request.seed
        utterance = Utterance(
            text=request.text,
            references=references,
            sampling=Sampling(request.temperature, request.top_p, request.top_k, seed),
            max_frames=request.max_frames,
        )
        take = Take(request_id or new_request_id(), "waiting", voice, seed, time.time())
        source = cast("AsyncGenerator[AudioChunk, None]", engine.speak(utterance))
        delivery = Delivery(source, take, self.takes, started)
        encoder = await delivery.open(request.format, engine.info.sample_rate, request.sample_rate)
        return Speech(
            request_id=take.id,
            media_type=encoder.media_type,
            sample_rate=encoder.sample_rate,
            seed=seed,
            voice=voice,
            queue_ms=delivery.take.queue_ms or 0.0,
            first_audio_ms=delivery.take.first_audio_ms or 0.0,
            body=delivery.body(),
            delivery=delivery,
        )

    async def warm_voices(self) -> None:
        """Wait for the engine, then encode the bundled voices, so that their first speaker does not wait.

        Raises EngineError when the engine cannot start or stops, InvalidClip for a bad bundled clip.
        """
        engine = await self.host.ready()
        for voice in self.voices.bundled:
            await self._reference(engine, voice)

    async def _whose(self, engine: Engine, request: SpeechRequest) -> tuple[str, tuple[Reference, ...]]:
        if request.clip is None or request.clip_text is None:
            voice = self.voices.find(request.voice)
            return voice.id, await self._reference(engine, voice)
        reference = await self._references.encode(engine, request.clip, request.clip_text, "ref_audio")
        return OWN_CLIP, (reference,)

    async def _reference(self, engine: Engine, voice: Voice) -> tuple[Reference, ...]:
        if voice.clip is None:
            return ()
        clip = await to_thread.run_sync(voice.clip.read_bytes)
        return (await self._references.encode(engine, clip, voice.text, "voice"),)


def new_request_id() -> str:
    """A name for one request, as clients know it from the x-request-id header."""
    return f"req_{uuid.uuid4().hex}"


def _check_text(name: str, text: str, limit: int) -> None:
    if not text.strip():
        raise InvalidRequest(f"{name} is blank: there is nothing to say", name)
    if len(text) > limit:
        raise InvalidRequest(f"{name} has {len(text)} characters; at most {limit} are allowed", name, "string_too_long")
    if "\x00" in text:
        raise InvalidRequest(f"{name} contains a NUL character", name)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidRequest(f"{name} is no valid Unicode text: it contains half of a surrogate pair", name)

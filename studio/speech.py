"""The one door to speech, for page and API alike: a SpeechRequest in, a Speech out while it is made."""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from anyio import to_thread

from engine import Engine, EngineFull, EngineStats, Reference, Sampling, Utterance
from studio.audio.formats import DEFAULT_FORMAT, check_format
from studio.audio.tempo import MAX_SPEED, MIN_SPEED
from studio.delivery import DeliveredAs, Delivery
from studio.errors import InvalidClip, InvalidRequest, NotFound
from studio.host import EngineHost, HostStatus
from studio.limits import Limits
from studio.metrics import Metrics
from studio.performance import PLACE_SECONDS, Performance
from studio.references import References
from studio.takes import Take, Takes
from studio.text import PART_BYTES, read_script
from studio.voices import Voice, VoiceShelf

MAX_INPUT = 16_384
"""Characters of text in one request; OpenAI allows 4096."""
MIN_PART, MAX_PART = 100, 1000
MAX_FRAMES = 4096
"""The largest budget of frames that a request may ask for."""
MAX_CLIP_TEXT = 2000
DEFAULT_FRAMES = 2048
"""Frames that one part of a text may have when nothing is said about it."""
DEFAULT_SAMPLING = Sampling()
OWN_CLIP = "clip"
"""The voice's id when the request brought its own clip."""
PAGE = "page"
"""The caller of requests that come from this process itself."""


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
    max_frames: int | None = None
    """The take ends here at the latest (21.5 frames a second for S2 Pro); None: when all is said."""
    speed: float = 1.0
    """0.25 to 4, the pitch kept."""
    chunk_length: int = PART_BYTES
    """Longer text is cut at sentence ends into parts of so many bytes of UTF-8, spoken in one conversation."""

    def __post_init__(self) -> None:
        _check_text("input", self.text, MAX_INPUT)
        check_format(self.format, self.sample_rate)
        if self.max_frames is not None and not 1 <= self.max_frames <= MAX_FRAMES:
            raise InvalidRequest(f"max_new_tokens must be from 1 to {MAX_FRAMES}", "max_new_tokens")
        if not MIN_SPEED <= self.speed <= MAX_SPEED:
            raise InvalidRequest(f"speed must be from {MIN_SPEED} to {MAX_SPEED}", "speed")
        if not MIN_PART <= self.chunk_length <= MAX_PART:
            raise InvalidRequest(f"chunk_length must be from {MIN_PART} to {MAX_PART}", "chunk_length")
        read_script(self.text, self.chunk_length)  # refuses pauses that make no sense
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

    def __init__(self, host: EngineHost, voices: VoiceShelf, limits: Limits | None = None) -> None:
        self.host = host
        self.voices = voices
        self.takes = Takes()
        self.metrics = Metrics(host)
        self._limits = limits or Limits(None, None)
        self._references = References()
        self._active: dict[str, Delivery] = {}

    @property
    def status(self) -> HostStatus:
        return self.host.status

    def stats(self) -> EngineStats:
        """The engine's counters. Raises NotReady, Unavailable."""
        return self.host.engine().stats()

    async def speak(
        self,
        request: SpeechRequest,
        request_id: str | None = None,
        caller: str = PAGE,
        history: list[Reference] | None = None,
    ) -> Speech:
        """Begin to speak; returns when the first bytes are there. Being cancelled frees the row.

        ``caller`` is whose share the request counts to. ``history`` is what was said before in a conversation;
        what is said now is added to it. Raises UnknownVoice, InvalidClip, TooManyRequests,
        NotReady, Unavailable, Cancelled and what Engine.speak raises.
        """
        engine = self.host.engine()
        voice = OWN_CLIP if request.clip is not None else self.voices.find(request.voice).id
        seed = secrets.randbelow(2**31) if request.seed is None else request.seed
        take = Take(request_id or new_request_id(), "waiting", voice, seed, time.time(), caller)
        self._limits.enter(caller)
        delivery = self._active[take.id] = Delivery(take, self.takes, self._ended)
        try:
            references = await delivery.unless_cancelled(self._whose(engine, request))
            utterance = Utterance(
                text=request.text,
                references=references,
                sampling=Sampling(request.temperature, request.top_p, request.top_k, seed),
            )
            script = read_script(request.text, request.chunk_length)
            turns = [] if history is None else history
            performance = Performance(engine, script, utterance, request.max_frames, turns)
            as_file = DeliveredAs(request.format, request.sample_rate, request.speed)
            encoder = await delivery.open(performance.sounds(), engine.info.sample_rate, as_file)
        except BaseException as error:
            await delivery.aclose(error)
            raise
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

    def check(self, request: SpeechRequest) -> None:
        """Raises UnknownVoice for a request that could not be spoken whatever its text."""
        if request.clip is None:
            self.voices.find(request.voice)

    async def speak_when_free(
        self,
        request: SpeechRequest,
        request_id: str,
        caller: str = PAGE,
        history: list[Reference] | None = None,
    ) -> Speech:
        """As `speak`, but a full line is waited for: for what is one piece of something that is under way."""
        while True:
            try:
                return await self.speak(request, request_id, caller, history)
            except EngineFull:
                await asyncio.sleep(PLACE_SECONDS)

    def cancel(self, request_id: str) -> None:
        """End a request that waits or speaks. Raises NotFound when there is none under way."""
        delivery = self._active.get(request_id)
        if delivery is None:
            raise NotFound(f"there is no request {request_id[:80]!r} under way", "request_id")
        delivery.cancel()

    def cancel_all(self, prefix: str) -> None:
        """End every request under way whose id begins so."""
        for request_id, delivery in self._active.items():
            if request_id.startswith(prefix):
                delivery.cancel()

    @property
    def at_a_time(self) -> int:
        """How many requests of one caller can be spoken at a time. Raises NotReady, Unavailable."""
        rows = self.host.engine().info.max_rows
        return rows if self._limits.at_a_time is None else min(rows, self._limits.at_a_time)

    def active(self, caller: str) -> list[Take]:
        """A caller's requests that wait or speak, oldest first."""
        return [delivery.take for delivery in self._active.values() if delivery.take.caller == caller]

    def _ended(self, take: Take) -> None:
        self._active.pop(take.id, None)
        self._limits.leave(take.caller)
        self.metrics.ended(take)

    async def warm_voices(self) -> None:
        """Wait for the engine, then encode the bundled voices, so that their first speaker does not wait.

        Raises EngineError when the engine cannot start or stops, InvalidClip for a bad bundled clip.
        """
        engine = await self.host.ready()
        for voice in self.voices.bundled:
            await self._reference(engine, voice)

    async def _whose(self, engine: Engine, request: SpeechRequest) -> tuple[Reference, ...]:
        if request.clip is None or request.clip_text is None:
            return await self._reference(engine, self.voices.find(request.voice))
        return (await self._references.encode(engine, request.clip, request.clip_text, "ref_audio"),)

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

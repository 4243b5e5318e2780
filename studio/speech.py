"""The one door to speech, for page and API alike: a SpeechRequest in, a Speech out while it is made."""

from __future__ import annotations

import logging
import math
import secrets
import sqlite3
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from functools import partial

from anyio import to_thread

from engine import Engine, EngineError, EngineFull, EngineStats, Reference, Sampling, Utterance
from studio.audio.formats import DEFAULT_FORMAT, MEDIA_TYPES, check_format
from studio.audio.tempo import MAX_SPEED, MIN_SPEED
from studio.delivery import DeliveredAs, Delivery
from studio.errors import InvalidClip, InvalidRequest, LineFull, NotFound
from studio.fetch import Fetcher
from studio.host import EngineHost, HostStatus
from studio.library import StoredTake, Voice
from studio.library.records import Scalar
from studio.limits import Limits
from studio.metrics import Metrics
from studio.performance import Performance
from studio.recogniser import Transcriber
from studio.references import References
from studio.takes import Take, Takes
from studio.text import PART_BYTES, read_script
from studio.voices import RANDOM, Progress, VoiceShelf

log = logging.getLogger(__name__)

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
    """An id, slug, name or alias of a voice, with @REVISION if wanted; must be None when there is a clip."""
    clip: bytes | None = field(default=None, repr=False)
    """A recording of the voice to speak in, in any readable container, 1 to 30 s."""
    clip_url: str | None = field(default=None, repr=False)
    """In the place of clip: where it is, a data:, https:, http: or file: address."""
    clip_text: str | None = None
    """The words spoken in the clip."""
    format: str = DEFAULT_FORMAT
    sample_rate: int | None = None
    """Hz, of the file; None is the format's own: 24 kHz for pcm, 48 for opus, the model's for all others."""
    seed: int | None = None
    """None takes the voice's default, and draws one where it has none."""
    temperature: float | None = None
    """None takes the voice's default, and Sampling's where it has none; top_p and top_k too."""
    top_p: float | None = None
    top_k: int | None = None
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
        if not self.has_clip and self.clip_text is not None:
            raise InvalidRequest("ref_text was given without ref_audio", "ref_audio")
        if self.has_clip:
            if self.voice is not None:
                raise InvalidRequest("give either a voice or a clip of your own, not both", "voice")
            if self.clip_text is None:
                raise InvalidClip("a clip needs the words spoken in it: ref_text is missing", "ref_text")
            _check_text("ref_text", self.clip_text, MAX_CLIP_TEXT)

    @property
    def has_clip(self) -> bool:
        """Whether it brings its own voice."""
        return self.clip is not None or self.clip_url is not None


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a request comes from."""

    request_id: str = field(default_factory=lambda: new_request_id())
    caller: str = PAGE
    """Whose share it counts to."""
    patient: bool = False
    """Whether it waits for a place in a full line instead of being refused: one piece of something under way."""


@dataclass(frozen=True, eq=False, slots=True)
class Speech:
    """An answer under way, its first bytes ready. Iterate ``body`` once; `aclose` in any case."""

    request_id: str
    media_type: str
    sample_rate: int
    """Hz, of the file."""
    seed: int
    voice: str
    revision: int | None
    """Of the voice; None for a clip of the request's own and for the random voice."""
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

    def __init__(
        self,
        host: EngineHost,
        voices: VoiceShelf,
        limits: Limits | None = None,
        keep_takes: int = 0,
        fetcher: Fetcher | None = None,
        transcriber: Transcriber | None = None,
    ) -> None:
        """``keep_takes``: so many takes stay in the library, with their files; 0 keeps none."""
        self.transcriber = transcriber or Transcriber()
        self.host = host
        self._keep_takes = keep_takes
        self.voices = voices
        self.takes = Takes()
        self.metrics = Metrics(host)
        self._limits = limits or Limits(None, None)
        self._references = References()
        self._fetcher = fetcher or Fetcher()
        self._active: dict[str, Delivery] = {}

    @property
    def status(self) -> HostStatus:
        return self.host.status

    def stats(self) -> EngineStats:
        """The engine's counters. Raises NotReady, Unavailable."""
        return self.host.engine().stats()

    async def speak(
        self, request: SpeechRequest, origin: Origin | None = None, history: list[Reference] | None = None
    ) -> Speech:
        """Begin to speak; returns when the first bytes are there. Being cancelled frees the row.

        ``history`` is what was said before in a conversation; what is said now is added to it.
        Raises UnknownVoice, InvalidClip, LineFull, TooManyRequests, NotReady, Unavailable, Cancelled,
        DegenerateSpeech and what Engine.speak raises.
        """
        origin = origin or Origin()
        engine = self.host.engine()
        voice = None if request.has_clip else await to_thread.run_sync(self.voices.find, request.voice)
        label = OWN_CLIP if request.has_clip else RANDOM if voice is None else voice.slug
        sampling = _sampling(request, voice.defaults if voice else {})
        take = Take(origin.request_id, "waiting", label, sampling.seed, time.time(), origin.caller)
        keep = partial(self._keep, request, sampling, voice) if self._keep_takes else None
        self._limits.enter(origin.caller)
        delivery = self._active[take.id] = Delivery(take, self.takes, self._ended, keep)
        try:
            references = await delivery.unless_cancelled(self._whose(engine, request, voice))
            utterance = Utterance(request.text, references, sampling)
            script = read_script(request.text, request.chunk_length)
            turns = [] if history is None else history
            performance = Performance(engine, script, utterance, request.max_frames, turns, origin.patient)
            as_file = DeliveredAs(request.format, request.sample_rate, request.speed)
            encoder = await delivery.open(performance.sounds(), engine.info.sample_rate, as_file)
        except EngineFull as error:
            refusal = LineFull(str(error), self._seconds_to_wait(engine))
            await delivery.aclose(refusal)
            raise refusal from error
        except BaseException as error:
            await delivery.aclose(error)
            raise
        return Speech(
            request_id=take.id,
            media_type=encoder.media_type,
            sample_rate=encoder.sample_rate,
            seed=sampling.seed,
            voice=label,
            revision=voice.revision if voice else None,
            queue_ms=delivery.take.queue_ms or 0.0,
            first_audio_ms=delivery.take.first_audio_ms or 0.0,
            body=delivery.body(),
            delivery=delivery,
        )

    async def save_voice(self, save: Callable[[], Voice], progress: Progress | None = None) -> Voice:
        """What ``save`` makes of the library, its codes with it if the engine is up, else at the first use of them.

        ``save`` may block. Raises what it raises.
        """
        voice = await to_thread.run_sync(save)
        if self.status.state == "ready":
            try:
                await self.voices.references(self.host.engine(), voice, progress)
            except (EngineError, InvalidClip) as error:
                # It is saved all the same; whoever speaks in it is told what is wrong.
                log.warning("the voice %s could not be encoded yet: %s", voice.slug, error)
        return voice

    def check(self, request: SpeechRequest) -> None:
        """Raises UnknownVoice for a request that could not be spoken whatever its text."""
        if not request.has_clip:
            self.voices.find(request.voice)

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

    def _seconds_to_wait(self, engine: Engine) -> int:
        """When a place should be free: the line, at the pace of the latest takes; 1 to 30."""
        latest = [take.generation_s for take in self.takes.list()[:32] if take.generation_s]
        pace = sum(latest) / len(latest) if latest else 1.0
        line = engine.stats().waiting / engine.info.max_rows + 1
        return min(max(math.ceil(pace * line), 1), 30)

    def _ended(self, take: Take) -> None:
        self._active.pop(take.id, None)
        self._limits.leave(take.caller)
        self.metrics.ended(take)

    async def warm_voices(self) -> None:
        """Wait for the engine, then make the voices most likely wanted ready, so that nobody waits for that.

        Raises EngineError when the engine cannot start or stops, InvalidClip for a bad bundled clip.
        """
        engine = await self.host.ready()
        await self.voices.warm(engine)
        for voice in await to_thread.run_sync(partial(self.voices.library.voices.page, favourite=True, limit=16)):
            # One frame of each favourite: the engine then remembers its state after the reference.
            references = await self.voices.references(engine, voice)
            async for _ in engine.speak(Utterance("Ready.", references, Sampling(), max_frames=1)):
                pass

    def _keep(self, request: SpeechRequest, sampling: Sampling, voice: Voice | None, take: Take, file: bytes) -> None:
        stored = StoredTake(
            id=take.id,
            created=take.created,
            text=request.text,
            voice_id=voice.id if voice else None,
            voice=voice.address if voice else take.voice,
            seed=sampling.seed,
            parameters={
                "temperature": sampling.temperature,
                "top_p": sampling.top_p,
                "top_k": sampling.top_k,
                "max_frames": request.max_frames,
                "format": request.format,
                "sample_rate": request.sample_rate,
                "speed": request.speed,
                "chunk_length": request.chunk_length,
            },
            state=take.state,
            finish_reason=take.finish_reason,
            error=take.error,
            timings={name: getattr(take, name) for name in ("queue_ms", "first_audio_ms", "generation_s", "rtf")},
            frames=take.frames,
            seconds=take.audio_s,
            media_type=MEDIA_TYPES[request.format],
        )
        takes = self.voices.library.takes
        try:
            takes.add(stored, file)
            takes.keep_newest(self._keep_takes)
        except (sqlite3.Error, OSError) as error:  # a full disk is no reason to end speech that was heard
            log.warning("the take %s could not be kept: %s", take.id, error)

    async def _whose(self, engine: Engine, request: SpeechRequest, voice: Voice | None) -> tuple[Reference, ...]:
        clip = request.clip
        if request.clip_url is not None:
            clip = await self._fetcher.fetch(request.clip_url)
        if clip is not None and request.clip_text is not None:
            return (await self._references.encode(engine, clip, request.clip_text, "ref_audio"),)
        return () if voice is None else await self.voices.references(engine, voice)


def _sampling(request: SpeechRequest, defaults: dict[str, Scalar]) -> Sampling:
    """The request's wishes, then the voice's defaults, then Sampling's own; a seed is drawn where there is none."""
    chosen = {"seed": secrets.randbelow(2**31)} | defaults
    asked = {name: getattr(request, name) for name in ("seed", "temperature", "top_p", "top_k")}
    return Sampling(**chosen | {name: value for name, value in asked.items() if value is not None})


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

"""Generates speech for the page and the API: takes a SpeechRequest and streams a Speech."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from itertools import islice
from typing import Any

from anyio import to_thread

from audio import InvalidClip
from engine import (
    CannotAlign,
    EngineError,
    EngineFull,
    EngineInfo,
    EngineStats,
    InvalidUtterance,
    Reference,
    Sampling,
    SpeechEngine,
    Utterance,
)
from speechtext.reading import normalised
from studio.engine_host import HAS_BEGUN, EngineHost, HostStatus
from studio.errors import REFUSALS, LibraryUnavailable, NotReady, QueueFull, Unavailable
from studio.library import Voice
from studio.library.records import OWN_CLIP, RANDOM
from studio.speech.active_take import ActiveTake, draft_of
from studio.speech.conversation import Conversation, ConversationHistory
from studio.speech.delivery import Speech
from studio.speech.metrics import Metrics
from studio.speech.plan import Plan, Planner, reading_of
from studio.speech.recorder import Recorder, Retention
from studio.speech.register import Limits, Register
from studio.speech.request import Origin, OwnClip, SpeechRequest
from studio.speech.resume import Beginning, made_by
from studio.supervisor import HealthCheck
from studio.voices.clip_fetcher import ClipFetcher
from studio.voices.references import References
from studio.voices.resolver import VoiceResolver
from studio.work import WorkQueues

log = logging.getLogger(__name__)

MOST_ENDED = 50
"""Requests that have ended, in an answer about the queue: as many as the page lists."""
WARMED = 16
"""Number of favourite voices that the engine caches at the start."""
GIVE_WAY_SECONDS = 0.2
"""Interval at which the preparation of voices checks whether there are requests."""
WARM_AGAIN_SECONDS = 60


class SpeechService:
    """Generates speech with the host's engine and the library's voices. Used from one event loop."""

    def __init__(
        self,
        host: EngineHost,
        voices: VoiceResolver,
        limits: Limits | None = None,
        retention: Retention | None = None,
        fetcher: ClipFetcher | None = None,
        register: Register | None = None,
    ) -> None:
        """``retention``: limits on the takes kept in the library; None keeps none. ``register``: instead of its own."""
        self.host = host
        self.voices = voices
        voices.loaded = lambda: host.info
        self.warming = HealthCheck("warming")
        self.background: list[HealthCheck] = []
        """The state of each kind of background work."""
        self.health: dict[str, dict[str, int]] = {}
        """Figures for `GET /health` from what other packages add to the studio."""
        self.metrics = Metrics(host, self.background)
        self.register = register or Register(limits or Limits(None, None), self.metrics)
        self.recorder = Recorder(voices.library, retention, self.register.record_outcome) if retention else None
        if self.recorder:
            self.background.append(self.recorder.watch)
        self.sockets = defaultdict[str, list[Any]](list)
        """The open sockets of this process, by caller, the oldest first."""
        self._begun = 0  # requests of `in_turn`
        self.queues = WorkQueues(host.max_waiting)
        self.planner = Planner(voices, self.queues.texts)
        self._references = References(self.queues.downloads, self.queues.encodings, fetcher or ClipFetcher())

    @property
    def status(self) -> HostStatus:
        return self.host.status

    def stats(self) -> EngineStats:
        """The engine's counters. Raises NotReady, Unavailable."""
        return self.host.engine().stats()

    @property
    def in_use(self) -> int:
        """The number of takes, clips, word times and requests of `in_turn` that the engine works on or that wait."""
        queues = (self.queues.downloads, self.queues.encodings, self.queues.alignments)
        beside = sum(queue.figures["running"] + queue.figures["waiting"] for queue in queues)
        return self.register.active_count + beside + self._begun

    @asynccontextmanager
    async def in_turn(self, places: AbstractAsyncContextManager[object]) -> AsyncGenerator[None, None]:
        """Wait for one of these places, as part of a request that has begun: a switch of the model waits for it, and
        the engine that is held meanwhile serves it. Raises NotReady, Unavailable."""
        self.host.engine()
        token, self._begun = HAS_BEGUN.set(True), self._begun + 1
        try:
            async with places:
                yield
        finally:
            HAS_BEGUN.reset(token)
            self._begun -= 1

    async def speak(
        self,
        request: SpeechRequest,
        origin: Origin | None = None,
        history: ConversationHistory | None = None,
        beginning: Beginning | None = None,
    ) -> Speech:
        """Start a take; returns when its first bytes are ready. Cancelling frees the row.

        ``history`` has the previous turns of a conversation; the new turn is added. ``beginning`` belongs to a take of
        the same request that a limit cut off: its audio comes first, and generation continues after it.
        Raises InvalidRequest, UnknownVoice, InvalidClip, QueueFull, TooManyRequests, NotReady, Unavailable, Cancelled,
        DegenerateSpeech and the errors of Engine.speak.
        """
        origin = origin or Origin()
        engine = self.host.engine()
        plan = await self.planner.plan(request, engine.info, origin)
        active = self._begin(request, plan, origin, engine.info, beginning)
        try:
            references = await active.run(self._references_of(request, plan, engine, origin))
            parts = beginning.parts if beginning else ()
            turns = None if history is None else history.for_codec(engine.info.codec_fingerprint)
            sounds = Conversation(engine, plan, references, origin, turns, parts).sounds()
            sounds = beginning.continued_by(sounds) if beginning else sounds
            return await Speech.open(active, sounds, request, engine)
        except EngineFull as error:
            refusal = QueueFull(str(error), self._seconds_to_wait(engine))
            active.forget()  # a caller refused ten times a second would push out every real take
            active.end(refusal)
            raise refusal from error
        except BaseException as error:
            active.end(error)
            raise

    def _begin(
        self, request: SpeechRequest, plan: Plan, origin: Origin, info: EngineInfo, beginning: Beginning | None
    ) -> ActiveTake:
        """Parts of a project are exempt from limits, and the project stores them itself."""
        draft, is_background = draft_of(request, plan, origin), origin.background
        draft = beginning.written(draft) if beginning else draft
        if not is_background:
            self.register.enter(draft)
        recorder = self.recorder if request.store and not is_background else None
        rate = info.sample_rate
        return ActiveTake(draft, made_by(info), rate, self.register, recorder, request.speed, is_background)

    async def save_voice(self, work: Awaitable[Voice]) -> Voice:
        """Return the voice that ``work`` stores in the library. Encodes it if the engine is ready, else on first use.

        Raises the errors of ``work``.
        """
        voice = await work
        if (info := self.host.info) and info.clones:
            try:
                await self.voices.references(self.host.engine(), voice, self.queues.encodings)
            except (EngineError, InvalidClip) as error:
                # The voice is stored nevertheless; a request in this voice reports the problem.
                log.warning("the voice %s could not be encoded yet: %s", voice.slug, error)
        return voice

    async def reading(self, request: SpeechRequest, caller: str) -> str:
        """The request's text as it would be read. Raises InvalidRequest, QueueFull, NotReady, Unavailable."""
        voices, card = self.voices.seen_by(caller), self.host.engine().info.card
        return await self.queues.texts.run(caller, reading_of, request, voices, card) or request.text

    def check_alignment(self) -> None:
        """Raises CannotAlign if the engine cannot compute word times, NotReady, Unavailable."""
        if reason := self.host.engine().info.cannot_align:
            raise CannotAlign(reason)

    async def check(self, request: SpeechRequest, caller: str) -> None:
        """Raises UnknownVoice if the request's voice does not exist or the caller has no right to it."""
        if not request.clips:
            async with self.queues.texts.turn(caller, patient=True) as turn:
                await turn.run(self.voices.seen_by(caller).find, request.voice)

    def queue_for(self, caller: str) -> dict[str, object]:
        """The load of the engine and its queue, the caller's active requests, and the last ones that have ended.

        Raises NotReady.
        """
        engine = self.host.engine()
        stats = engine.stats()
        return {
            "object": "queue",
            "running": stats.running,
            "waiting": stats.waiting,
            "max_rows": engine.info.max_rows,
            "max_waiting": engine.info.max_waiting,
            "max_per_caller": self.register.max_concurrent,
            "work": self.queues.figures,
            "requests": [take.as_json() for take in self.register.active(caller)],
            "ended": [take.as_json() for take in islice(self.register.recent(caller), MOST_ENDED)],
        }

    @property
    def max_concurrent(self) -> int:
        """Number of concurrent requests per caller. Raises NotReady, Unavailable."""
        rows = self.host.engine().info.max_rows
        return rows if (limit := self.register.max_concurrent) is None else min(rows, limit)

    def close(self) -> None:
        """Write the last takes. Blocks for some seconds at most."""
        if self.recorder is not None:
            self.recorder.stop()

    def _seconds_to_wait(self, engine: SpeechEngine) -> int:
        """Estimated seconds until a row is free, from the pace of the latest takes; 1 to 30."""
        durations = [take.generation_s for take in self.register.recent()[:32] if take.generation_s]
        pace = sum(durations) / len(durations) if durations else 1.0
        takes = engine.stats().waiting / engine.info.max_rows + 1
        return min(max(math.ceil(pace * takes), 1), 30)

    async def warm_voices(self) -> None:
        """Prepare the voices most likely to be used, so that nobody waits for that; reports damaged ones until they are
        deleted or have other recordings. Prepares none for an engine that does not clone. Raises EngineError, NotReady
        or Unavailable if it stops meanwhile, and LibraryUnavailable."""
        if not await self.host.wait_until_ready():
            return
        if self.host.engine().info.card.normalize:
            await to_thread.run_sync(normalised, "It is 5 pm.")  # compiles its rules
        favourites, voices = 0, await to_thread.run_sync(self.voices.first_choices)
        while True:
            failed = set[str]()
            for voice in voices:
                favourites += voice.favourite
                await self._wait_until_idle()
                if not self.host.engine().info.clones:  # perhaps another one than at first
                    break
                try:
                    await self._prepare(voice, voice.favourite and favourites <= WARMED)
                except (LibraryUnavailable, NotReady, Unavailable):
                    raise  # not a fault of this voice: all of them are prepared again
                except (*REFUSALS, InvalidUtterance) as error:
                    failed.add(voice.id)
                    self.warming.report_failure(f"the voice {voice.name} cannot be prepared", error)
            if not failed:
                return self.warming.report_success()
            await asyncio.sleep(WARM_AGAIN_SECONDS)
            voices = [voice for voice in await to_thread.run_sync(self.voices.first_choices) if voice.id in failed]

    async def _prepare(self, voice: Voice, is_cached: bool) -> None:
        """Encode a voice; ``is_cached``: the engine also remembers its state after the reference."""
        engine = self.host.engine()
        references = await self.voices.references(engine, voice, self.queues.encodings)
        if is_cached:
            async for _ in engine.speak(Utterance("Ready.", references, Sampling(), max_frames=1)):
                pass

    async def _wait_until_idle(self) -> None:
        """Wait while a model is being changed or, on a CPU, while there are requests: encoding a clip takes seconds
        there, and all cores. Holds no engine meanwhile, as the previous one is freed before the next one is loaded."""
        while self.status.state == "starting" or (self.in_use and self.host.engine().info.device == "cpu"):
            await asyncio.sleep(GIVE_WAY_SECONDS)

    async def _references_of(
        self, request: SpeechRequest, plan: Plan, engine: SpeechEngine, origin: Origin
    ) -> dict[str, tuple[Reference, ...]]:
        """References by `PlannedPart.voice_key`; each looked up, and downloaded and encoded if necessary, once."""
        references: dict[str, tuple[Reference, ...]] = {RANDOM: ()}
        for part in plan.parts:
            if part.label == OWN_CLIP and OWN_CLIP not in references:
                encoded = [await self._encoded(clip, engine, origin) for clip in request.clips]
                # The engine would otherwise number the clips.
                references[OWN_CLIP] = tuple(
                    replace(clip, text=f"<|speaker:{own.speaker}|>{clip.text}") if position or own.speaker else clip
                    for position, (own, clip) in enumerate(zip(request.clips, encoded, strict=True))
                )
            elif part.voice is not None and part.voice_key not in references:
                references[part.voice_key] = await self.voices.references(engine, part.voice, self.queues.encodings)
        return references

    async def _encoded(self, clip: OwnClip, engine: SpeechEngine, origin: Origin) -> Reference:
        assert clip.text is not None, "every clip has a transcript"
        return await self._references.encode(engine, clip.sound, clip.text, origin.caller, origin.is_bounded)

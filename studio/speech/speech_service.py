"""Generates speech for the page and the API: takes a SpeechRequest and streams a Speech."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace

from anyio import to_thread

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
from studio.engine_host import EngineHost, HostStatus
from studio.errors import InvalidClip, LibraryUnavailable, QueueFull, StudioError
from studio.library import Voice
from studio.library.records import OWN_CLIP, RANDOM
from studio.library.takes.take import Take, TakeCodes, Timed
from studio.speech.conversation import Conversation
from studio.speech.delivery import Delivery
from studio.speech.draft import draft_of
from studio.speech.encoding import OutputFile
from studio.speech.live_take import LiveTake
from studio.speech.planning.plan import Plan, reading_of
from studio.speech.planning.planner import Planner
from studio.speech.reading import normalised
from studio.speech.request import Origin, OwnClip, SpeechRequest
from studio.speech.resume import Beginning, made_by
from studio.speech.timing.timestamps import Unit, in_units, word_times
from studio.supervisor import HealthCheck
from studio.takes.limits import Limits
from studio.takes.metrics import Metrics
from studio.takes.recent_takes import RecentTakes
from studio.takes.recorder import Recorder, Retention
from studio.takes.register import Register
from studio.voices.clip_fetcher import ClipFetcher
from studio.voices.references import References
from studio.voices.resolver import VoiceResolver
from studio.work.work_queues import WorkQueues

log = logging.getLogger(__name__)

WARMED = 16
"""Number of favourite voices that the engine caches at the start."""
GIVE_WAY_SECONDS = 0.2
"""Interval at which the preparation of voices checks whether there are requests."""


@dataclass(frozen=True, eq=False, slots=True)
class Speech:
    """A take being generated, with its first bytes ready. Iterate ``body`` once; always `aclose` it."""

    request_id: str
    media_type: str
    sample_rate: int
    """Sample rate of the file in Hz."""
    seed: int
    voice: str
    revision: int | None
    """The voice's revision; None for an uploaded clip, for the random voice and for a dialogue."""
    delivery: Delivery = field(repr=False)
    draft: Take = field(repr=False)
    request: SpeechRequest = field(repr=False)
    engine: SpeechEngine = field(repr=False)

    @property
    def take(self) -> Take:
        """The take so far; complete once the body has ended."""
        return self.delivery.live.take

    @property
    def body(self) -> AsyncGenerator[bytes, None]:
        """The file's bytes as they are generated. Leaving the iteration cancels the take."""
        return self.delivery.body

    @property
    def record(self) -> Take:
        """The take with its text, as stored in a library; complete once the body has ended."""
        return self.take.with_words_of(self.draft)

    @property
    def codes(self) -> TakeCodes:
        """The codes of the generated parts; complete once the body has ended."""
        return TakeCodes(made_by(self.engine.info), tuple(self.delivery.live.parts))

    async def timestamps(self, unit: Unit) -> list[Timed]:
        """The times of words or sentences in the file; complete once the body has ended.

        Raises CannotAlign, EngineStopped.
        """
        text, is_dialogue = self.request.text, self.request.cast is not None
        words = await word_times(self.engine, text, is_dialogue, self.delivery.live.parts, self.request.speed)
        return await to_thread.run_sync(in_units, unit, text, is_dialogue, words)

    async def aclose(self) -> None:
        """Cancel the take. Calling it again, or after the body has ended, does nothing."""
        await self.body.aclose()
        await self.delivery.aclose()


class SpeechService:
    """Generates speech with the host's engine and the library's voices. Used from one event loop."""

    def __init__(
        self,
        host: EngineHost,
        voices: VoiceResolver,
        limits: Limits | None = None,
        retention: Retention | None = None,
        fetcher: ClipFetcher | None = None,
        make_register: Callable[[Limits, Metrics], Register] = Register,
    ) -> None:
        """``retention``: limits on the takes kept in the library; None keeps none."""
        self.host = host
        self.voices = voices
        self._parts = RecentTakes()  # of projects; not listed
        self.warming = HealthCheck("warming")
        self.background: list[HealthCheck] = []
        """The state of each kind of background work."""
        self.metrics = Metrics(host, self.background)
        self.register = make_register(limits or Limits(None, None), self.metrics)
        self.recorder = Recorder(voices.library, retention, self.register.record_outcome) if retention else None
        if self.recorder:
            self.background.append(self.recorder.watch)
        self.queues = WorkQueues(host.max_waiting)
        self._planner = Planner(voices, self.queues.texts)
        self._references = References(self.queues.downloads, self.queues.encodings, fetcher or ClipFetcher())

    @property
    def status(self) -> HostStatus:
        return self.host.status

    @property
    def takes(self) -> RecentTakes:
        """The recent and the active takes."""
        return self.register.takes

    def stats(self) -> EngineStats:
        """The engine's counters. Raises NotReady, Unavailable."""
        return self.host.engine().stats()

    @property
    def in_use(self) -> int:
        """The number of takes, clips and word times that the engine is working on or that wait for it."""
        queues = (self.queues.downloads, self.queues.encodings, self.queues.alignments)
        beside = sum(queue.figures["running"] + queue.figures["waiting"] for queue in queues)
        return self.register.active_count + beside

    async def speak(
        self,
        request: SpeechRequest,
        origin: Origin | None = None,
        history: list[Reference] | None = None,
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
        plan = await self._planner.plan(request, engine.info.card, origin.caller, origin.is_bounded)
        draft = draft_of(request, plan, origin)
        live = await self._begin(request, draft, origin, engine.info)
        try:
            references = await live.run(self._references_of(request, plan, engine, origin))
            parts = beginning.parts if beginning else ()
            sounds = Conversation(engine, plan, references, history, origin.patient, parts).sounds()
            sounds = beginning.continued_by(sounds) if beginning else sounds
            file = OutputFile(request.format, request.sample_rate, request.speed, request.bit_rate, request.volume)
            delivery = await Delivery.open(live, sounds, file)
        except EngineFull as error:
            refusal = QueueFull(str(error), self._seconds_to_wait(engine))
            live.forget()  # a caller refused ten times a second would push out every real take
            live.end(refusal)
            raise refusal from error
        except BaseException as error:
            live.end(error)
            raise
        encoding, voice = delivery.encoding, plan.voice if not plan.is_dialogue else None
        return Speech(
            origin.request_id,
            encoding.media_type,
            encoding.sample_rate,
            plan.seed,
            plan.label,
            voice.revision if voice else None,
            delivery,
            draft,
            request,
            engine,
        )

    async def _begin(self, request: SpeechRequest, draft: Take, origin: Origin, info: EngineInfo) -> LiveTake:
        """Parts of a project are exempt from limits, and the project stores them itself."""
        take = draft.without_words()
        if origin.background:
            live = LiveTake(take, self._parts, self.register.leave_part, info.sample_rate, request.speed)
        else:
            await self.register.enter(take)
            recording = None
            if self.recorder and request.store:
                recording = self.recorder.open(draft, made_by(info))
            live = LiveTake(take, self.register, self.register.leave, info.sample_rate, request.speed, recording)
        self.register.add(live)
        return live

    async def save_voice(self, work: Awaitable[Voice]) -> Voice:
        """Return the voice that ``work`` stores in the library. Encodes it if the engine is ready, else on first use.

        Raises the errors of ``work``.
        """
        voice = await work
        if self.status.state == "ready":
            try:
                await self.voices.references(self.host.engine(), voice, self.queues.encodings)
            except (EngineError, InvalidClip) as error:
                # The voice is stored nevertheless; a request in this voice reports the problem.
                log.warning("the voice %s could not be encoded yet: %s", voice.slug, error)
        return voice

    async def reading(self, request: SpeechRequest, caller: str) -> str:
        """The request's text as it would be read. Raises InvalidRequest, QueueFull, NotReady, Unavailable."""
        card = self.host.engine().info.card
        return (
            await self.queues.texts.run(caller, reading_of, request, self.voices.seen_by(caller), card) or request.text
        )

    def check_alignment(self) -> None:
        """Raises CannotAlign if the engine cannot compute word times, NotReady, Unavailable."""
        if reason := self.host.engine().info.cannot_align:
            raise CannotAlign(reason)

    def check(self, request: SpeechRequest, caller: str) -> None:
        """Blocking. Raises UnknownVoice if a voice of the request does not exist or the caller has no right to it."""
        if not request.clips:
            self.voices.seen_by(caller).find(request.voice)

    def queue_for(self, caller: str) -> dict[str, object]:
        """The load of the engine and its queue, and the caller's active requests.

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
        durations = [take.generation_s for take in self.takes.list()[:32] if take.generation_s]
        pace = sum(durations) / len(durations) if durations else 1.0
        takes = engine.stats().waiting / engine.info.max_rows + 1
        return min(max(math.ceil(pace * takes), 1), 30)

    async def warm_voices(self) -> None:
        """Prepare the voices most likely to be used, so that nobody waits for that; reports damaged ones.

        Does nothing without an engine. Raises EngineError if it stops meanwhile, LibraryUnavailable.
        """
        if not await self.host.wait_until_ready():
            return
        favourites, failures = 0, 0
        if self.host.engine().info.card.normalize:
            await to_thread.run_sync(normalised, "It is 5 pm.")  # compiles its rules
        for voice in await to_thread.run_sync(self.voices.first_choices):
            favourites += voice.favourite
            await self._wait_until_idle()
            try:
                await self._prepare(voice, voice.favourite and favourites <= WARMED)
            except LibraryUnavailable:
                raise
            except (StudioError, InvalidUtterance) as error:
                failures += 1
                self.warming.report_failure(f"the voice {voice.name} cannot be prepared", error)
        if not failures:
            self.warming.report_success()

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
                # Clips of one speaker, which the engine would otherwise number.
                other_clips = [replace(clip, text=f"<|speaker:0|>{clip.text}") for clip in encoded[1:]]
                references[OWN_CLIP] = (*encoded[:1], *other_clips)
            elif part.voice is not None and part.voice_key not in references:
                references[part.voice_key] = await self.voices.references(engine, part.voice, self.queues.encodings)
        return references

    async def _encoded(self, clip: OwnClip, engine: SpeechEngine, origin: Origin) -> Reference:
        assert clip.text is not None, "every clip has a transcript"
        return await self._references.encode(engine, clip.sound, clip.text, origin.caller, origin.is_bounded)

"""Finds the library's voices by the names in requests, and provides their references for the engine."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import asdict
from functools import partial
from typing import Any, TypeAlias

from anyio import to_thread
from rapidfuzz import fuzz, process

from audio.measure import is_levelled
from audio.read import Clip
from engine import EngineInfo, Reference, SpeechEngine
from studio.errors import LibraryUnavailable, NotFound, UnknownVoice
from studio.library import Library, Sample, Voice
from studio.library.checks import sharing_json
from studio.library.library import Encoded
from studio.library.names import MAX_REFERENCE, split_revision
from studio.library.records import RANDOM
from studio.voices.intake import sound_of
from studio.voices.references import Encodings, encoded
from studio.work import WorkQueue, write

log = logging.getLogger(__name__)

OPENAI_VOICES = (
    "alloy", "ash", "ballad", "cedar", "coral", "echo", "fable",
    "marin", "nova", "onyx", "sage", "shimmer", "verse",
)  # fmt: skip
"""OpenAI's built-in names, which many clients send to any server: each means a bundled voice unless the library has a
voice of that name."""

Preferred = Mapping[str, Sequence[str]]
"""An alias, and slugs of voices in order of preference."""

FindVoice = Callable[[str | None], Voice | None]
"""`VoiceResolver.find`, or a version that caches results."""

DEFAULT = "default"

LIBRARY = "library"
"""The caller for encoding a voice's clip, because the codes are stored for all."""

REMEMBERED = 1000
"""Maximum samples whose codes stay in memory, about 4 kB each."""

_NATIVE = dict.fromkeys(("vivian", "serena", "uncle_fu", "dylan", "eric"), "zh") | {
    "ryan": "en", "aiden": "en", "ono_anna": "ja", "sohee": "ko",
}  # fmt: skip
"""Native languages of the voices of Qwen3-TTS."""

MOST_NAMED = 20
"""Maximum voices listed in a message."""
ALIKE = 60
"""Percent of two names that must agree for one to be a hint for the other: with less, the hints are unrelated names."""

_CodesKey: TypeAlias = tuple[str, str]
"""A sample's cut and a codec's fingerprint."""


RANDOM_VOICE = Voice.model_construct(id=RANDOM, slug=RANDOM, name="Random (the seed decides)")
"""Represents in lists a voice chosen by each take's seed; no voice of the library may have its slug."""


class VoiceResolver:
    """Finds voices in a library, and encodes samples that have no codes yet. Used from one event loop."""

    def __init__(self, library: Library, preferred: Preferred | None = None) -> None:
        """``preferred``: the bundled voices for the default and OpenAI's names; the first existing one counts."""
        self.library = library
        self._preferred = preferred or {}
        self.loaded: Callable[[], EngineInfo | None] = lambda: None
        """The loaded model, which may have voices of its own."""
        self._encodings = Encodings(outlive_callers=True)
        self._codes: dict[_CodesKey, Encoded] = {}  # first in, first out

    def seen_by(self, caller: str | None) -> VoiceResolver:
        """The same, with the rights of a caller, as in `Library.seen_by`."""
        resolver = copy(self)
        resolver.library = self.library.seen_by(caller)
        return resolver

    @property
    def own(self) -> list[Voice]:
        """The loaded model's own voices, but for names that the library uses. Blocking."""
        return [voice for voice in own_voices(self.loaded()) if not self.library.voices.exists(voice.slug)]

    @property
    def listed(self) -> tuple[Voice, ...]:
        """The voices in a picker: favourites, then the others by name, then the model's own, then the random one; at
        most a page of the others, as no picker shows thousands. Before a library's voices are the model's own if it
        cannot speak in others.
        """
        page, info = self.library.voices.page, self.loaded()
        voices = (*page(favourite=True), *(voice for voice in page() if not voice.favourite))
        own = (*self.own, RANDOM_VOICE)
        return (*voices, *own) if info is None or info.clones else (*own, *voices)

    @property
    def aliases(self) -> dict[str, str]:
        """Voice ids by each other name that requests may use."""
        bundled = self._bundled()
        free = (name for name in OPENAI_VOICES if not self.library.voices.exists(name))
        return {name: self._slug_of(name, bundled) for name in (*free, DEFAULT)}

    def first_choice(self, listed: Sequence[Voice]) -> str:
        """The slug of the voice in `listed` that a page selects at first: a favourite, else the default one."""
        default_voice = self.find(None)
        return default_voice.slug if default_voice and not listed[0].favourite else listed[0].slug

    def _bundled(self) -> list[str]:
        """The voices behind aliases: those that the loaded model can speak in."""
        if (info := self.loaded()) and not info.clones:
            return [voice.slug for voice in own_voices(info)] or [RANDOM]
        return [voice.slug for voice in self.library.voices.page(bundled=True)] or [RANDOM]

    def _slug_of(self, alias: str, bundled: list[str]) -> str:
        """The bundled voice for an alias. Deleting a voice changes only its own aliases.

        Without a preference the default is the first voice, and each of OpenAI's names has its own order.
        """
        for name in self._preferred.get(alias, ()):
            if name in bundled:
                return name
        if alias == DEFAULT:
            return bundled[0]
        return max(bundled, key=lambda name: hashlib.sha256(f"{alias} {name}".encode()).digest())

    def _hint(self, unknown: str) -> str:
        """A hint for an unknown name: similar names, else the first names of all."""
        names = [*sorted(self.library.voices.known_voices().slugs), *(voice.slug for voice in self.own), RANDOM]
        if matches := process.extract(unknown, names, scorer=fuzz.ratio, limit=3, score_cutoff=ALIKE):
            return f"did you mean {' or '.join(name for name, *_ in matches)}?"
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        return f"there are {', '.join(names[:MOST_NAMED])}{more}"

    def knows(self, name: str) -> bool:
        """Whether `find` succeeds. Blocking."""
        try:
            self.find(name, hints=False)
        except UnknownVoice:
            return False
        return True

    def find(self, name: str | None, hints: bool = True) -> Voice | None:
        """The voice with an id, slug, name or alias, and optionally "@" and a revision; None for the random one.

        The library's voices have precedence over the model's own. None and blank mean the default voice. ``hints``:
        whether the error names similar voices, which takes 24 ms for 10,000. Blocking. Raises UnknownVoice.
        """
        reference = (name or "").strip() or DEFAULT
        try:
            return self.library.voices.get(reference)
        except NotFound as error:
            name, revision = split_revision(reference)
            alias = name.casefold()
            own = {voice.slug: voice for voice in own_voices(self.loaded())}
            if revision is None and alias.replace(" ", "_") in own:
                return own[alias.replace(" ", "_")]
            is_known = alias in (RANDOM, DEFAULT, *OPENAI_VOICES)
            if is_known and revision is not None:
                raise UnknownVoice(f"{alias} has no revisions: leave out @{revision}", "voice") from None
            if not is_known:
                hint = self._hint(alias[:MAX_REFERENCE]) if hints else ""
                raise UnknownVoice(f"{error}; {hint}", "voice") from None
            slug = RANDOM if alias == RANDOM else self._slug_of(alias, self._bundled())
        return own.get(slug) or (None if slug == RANDOM else self.library.voices.get(slug))

    async def references(self, engine: SpeechEngine, voice: Voice, queue: WorkQueue) -> tuple[Reference, ...]:
        """The voice's samples as the engine takes them: codes, vectors, transcripts and speakers.

        Codes come from the library; samples without codes for this codec are encoded, in ``queue``, and stored.
        Raises InvalidClip, DamagedAudio, EngineStopped.
        """
        codec = engine.info.codec_fingerprint
        keys = [(each.cut_key, f"{codec} levelled" if is_levelled(each.quality) else codec) for each in voice.samples]
        cached = {key: self._codes[key] for key in keys if key in self._codes}
        if len(cached) < len(keys):
            stored = await to_thread.run_sync(lambda: {key: self.library.codes.get(*key) for key in keys})
            cached |= {key: codes for key, codes in stored.items() if codes is not None}
            self._remember(cached)
        references = []
        for position, (sample, key) in enumerate(zip(voice.samples, keys, strict=True)):
            codes, vector = cached.get(key) or (None, None)
            if codes is None:
                encoded_now = await self._encodings.share(key, partial(self._encode, engine, sample, key, queue))
                codes, vector = encoded_now.codes, encoded_now.vector
            # The engine numbers speakers by position if the transcripts do not name them.
            transcript = sample.text if sample.speaker == position else f"<|speaker:{sample.speaker}|>{sample.text}"
            references.append(Reference(codes, transcript, vector))
        return tuple(references)

    def first_choices(self) -> Iterable[Voice]:
        """The voices most likely to be used, favourites first. Blocking."""
        voices = self.library.voices
        return {v.id: v for v in (*voices.page(favourite=True), *voices.page(bundled=True))}.values()

    def _remember(self, codes: Mapping[_CodesKey, Encoded]) -> None:
        """Cache codes for the next take in this voice; the same cut has the same codes."""
        self._codes |= codes
        while len(self._codes) > REMEMBERED:
            del self._codes[next(iter(self._codes))]

    async def _encode(self, engine: SpeechEngine, sample: Sample, key: _CodesKey, queue: WorkQueue) -> Reference:
        def read() -> Clip:
            return sound_of(self.library.voices.clip(sample), sample.cut, "voice")

        async with queue.turn(LIBRARY, patient=True) as turn:
            reference = await encoded(turn, engine, read, sample.text, "voice")
        try:
            await write(self.library.codes.put, *key, reference.codes, reference.vector, patient=True)
        except LibraryUnavailable as error:  # a full disk, for example, need not keep anybody from speaking
            log.warning("the codes of a voice will be computed again after the next start: %s", error)
            self._remember({key: (reference.codes, reference.vector)})
        return reference


def own_voices(info: EngineInfo | None) -> list[Voice]:
    """The voices of the loaded model itself, which nobody can edit."""
    return [
        Voice.model_construct(
            id=name, slug=name, name=name.replace("_", " ").title(), language=_NATIVE.get(name, ""), speaker=name
        )
        for name in (map(str.casefold, info.speakers) if info else ())
    ]


def voice_json(voice: Voice) -> dict[str, Any]:
    """A voice with all fields."""
    return {
        "id": voice.id,
        "object": "voice",
        "slug": voice.slug,
        "address": voice.address,
        **voice.details(),
        "favourite": voice.favourite,
        "bundled": voice.bundled,
        "consent": voice.consent,
        "created_at": int(voice.created),
        "changed_at": int(voice.changed),
        "revision": voice.revision,
        "latest_revision": voice.latest,
        "seconds": round(voice.seconds, 3),
        **sharing_json("" if voice.bundled else voice.owner, voice.sharing, voice.right),
        "samples": [sample_json(sample) for sample in voice.samples],
    }


def sample_json(sample: Sample) -> dict[str, Any]:
    fields = asdict(sample)
    return fields | {"object": "voice.sample", "sha256": fields.pop("clip")}

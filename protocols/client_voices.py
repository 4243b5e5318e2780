"""The library's voices for other services' clients, which send recordings of any length, often without transcripts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from fastapi import Request

from audio import Cut, InvalidClip
from audio.read import MAX_SECONDS
from engine import CannotAlign, InvalidReference, InvalidUtterance, PromptTooLong
from speechtext.word_times import words_in
from studio.api.origins import address_of
from studio.api.sending import until_hangup
from studio.errors import InvalidRequest, NameTaken
from studio.library import Library, NewSample, Voice, VoiceFields
from studio.library.checks import MAX_SAMPLES
from studio.library.client_files import Upload
from studio.library.names import MAX_NAME, RESERVED, fold
from studio.services import Studio
from studio.voices.recordings import split_recording
from studio.work import write

_REFUSED = re.compile(r"[/\\@\x00-\x1f]+")
"""Characters that titles may contain, but voice names may not."""
_TOO_LONG = (
    f"a recording lasts more than {MAX_SECONDS:g} s; only a part of it can be used, its words in the transcript cannot "
    f"be found, and no recogniser is installed to transcribe that part: send at most {MAX_SECONDS:g} s"
)
LONGEST_ALIGNED = 120.0
"""Seconds of a recording in which the model looks for the words of a cut: Fish Audio asks for up to two minutes, and
these fit most models' context."""
_WORD_END = re.compile(r"\S*")
MAX_SAME = 1000
"""Voices with the same title, numbered from the second on."""


class ClientVoices:
    """The library's voices for a protocol's clients. Recordings are cut, cleaned and transcribed if necessary."""

    files: str
    """The protocol's name for the recordings; ``texts`` and ``title`` for their transcripts and the voice's name."""
    texts: str
    title: str
    no_words: str
    """The error for a recording without a transcript where there is no recogniser."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio

    def library_of(self, request: Request) -> Library:
        return self.studio.library.seen_by(request.state.owner_filter)

    def voices_of(
        self, request: Request, query: str = "", tags: tuple[str, ...] = (), bundled: bool | None = None
    ) -> list[Voice]:
        """The loaded model's own voices, which count as bundled, then the library's that fit. Blocking."""
        resolver, sought = self.studio.speech.voices.seen_by(request.state.owner_filter), query.casefold()
        own = [] if tags or bundled is False else [voice for voice in resolver.own if sought in voice.name.casefold()]
        return [*own, *resolver.library.voices.all(query=query, tags=tags, bundled=bundled)]

    def voice_of(self, request: Request, reference: str) -> Voice:
        """A voice to read. Blocking. Raises NotFound."""
        resolver = self.studio.speech.voices.seen_by(request.state.owner_filter)
        own = {voice.slug: voice for voice in resolver.own}
        return own.get(reference.casefold()) or resolver.library.voices.get(reference)

    def address_of(self, request: Request) -> str:
        return address_of(request, self.studio.settings.root_path)

    async def samples(
        self, request: Request, files: Sequence[Upload], texts: Sequence[str], is_cleaned: bool
    ) -> list[NewSample]:
        """The samples of a new voice: its recordings, each with its transcript, which may be blank.

        Raises InvalidRequest, ClientDisconnect, and the errors of the clip service.
        """
        if not files:
            raise InvalidRequest(f"{self.files} is missing: send at least one recording", self.files)
        if len(files) > MAX_SAMPLES:
            raise InvalidRequest(f"there are {len(files)} recordings; at most {MAX_SAMPLES} are allowed", self.files)
        pairs = zip(files, texts, strict=True)
        caller = request.state.caller
        return [await until_hangup(request, self._sample(file.data, text, is_cleaned, caller)) for file, text in pairs]

    async def _sample(self, data: bytes, text: str, is_cleaned: bool, caller: str) -> NewSample:
        clips = self.studio.clips
        intake = await clips.suggest(caller, data, text, Cut(), self.files)
        cut = intake.cut
        is_heard = cut != Cut() or not text.strip()
        if is_heard and text.strip() and not clips.transcriber.is_there:
            text = await self._words_in(caller, data, text, cut)
        elif is_heard:
            missing = InvalidRequest(self.no_words, self.texts)
            text = await clips.words(caller, intake.clip, self.texts, missing)
        if is_cleaned:
            data, cut = await clips.clean(caller, intake.clip), Cut()
        if is_heard or is_cleaned:
            intake = await clips.judge(caller, data, text, cut, self.files)
        return intake.sample(text)

    async def _words_in(self, caller: str, data: bytes, text: str, cut: Cut) -> str:
        """The words of a recording's transcript that are spoken in a cut of it, by the times that the model gives them.

        Raises InvalidClip, and the errors of the queue.
        """
        engine, clips = self.studio.speech.host.engine(), self.studio.clips
        levels, seconds = await clips.levels(caller, data, self.files)
        if seconds > LONGEST_ALIGNED or engine.info.cannot_align:
            raise InvalidClip(_TOO_LONG, self.files)
        codes: list[np.ndarray] = []
        async with self.studio.speech.queues.encodings.turn(caller):
            try:
                for start, end in split_recording(levels, seconds, self.files):
                    clip = await clips.decode(caller, data, replace(cut, start=start, end=end), self.files)
                    codes.append((await engine.encode_reference(clip.pcm, clip.sample_rate, text)).codes)
                times = await engine.align(text, np.concatenate(codes, axis=1))
            except (CannotAlign, InvalidReference, InvalidUtterance, PromptTooLong):
                raise InvalidClip(_TOO_LONG, self.files) from None
        until = seconds if cut.end is None else cut.end
        spans = [(start, end) for start, end in words_in(text) if cut.start <= times[start:end].mean() <= until]
        if not spans:
            raise InvalidClip(_TOO_LONG, self.files)
        last = _WORD_END.match(text, spans[-1][1])
        return text[spans[0][0] : last.end() if last else None]

    async def create(
        self, owner: str, fields: VoiceFields, title: str, samples: list[NewSample], field: str | None = None
    ) -> Voice:
        """Create a voice; a second one with the same title is named "title 2". ``field``: the one that has the title,
        unless it is the protocol's usual one. Raises InvalidRequest, NameTaken."""
        return await self.studio.speech.save_voice(
            write(self._create, owner, fields, title, samples, field or self.title)
        )

    def _create(self, owner: str, fields: VoiceFields, title: str, samples: list[NewSample], field: str) -> Voice:
        """Blocking."""
        voices, set_fields = self.studio.library.seen_by(owner).voices, fields.model_dump(exclude_unset=True)
        for name in candidate_names(title, field):
            if not voices.exists(name):
                try:
                    return voices.create(VoiceFields(**set_fields | {"name": name}), samples)
                except NameTaken:  # by a concurrent request
                    continue
        raise NameTaken(f"there are already {MAX_SAME} voices with this {field}", field)


def candidate_names(title: str, field: str = "title") -> list[str]:
    """Possible names of a voice with this title, best first. Raises InvalidRequest for a blank title."""
    name = " ".join(_REFUSED.sub(" ", title).split())[: MAX_NAME - 5]
    if not name:
        raise InvalidRequest(f"{field} is missing or blank", field)
    first = [] if fold(name) in RESERVED else [name]
    return [*first, *(f"{name} {number}" for number in range(2, MAX_SAME + 1))]


def account_of(request: Request) -> str:
    """The id of a caller's account, of 32 hexadecimal digits: constant for a key, and the same for all callers without
    keys."""
    owner = request.state.owner_filter or "everybody"
    return hashlib.sha256(f"account of {owner}".encode()).hexdigest()[:32]

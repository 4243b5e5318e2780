"""One sentence of a part spoken anew: in the same voice, after the one before it, and put into the part's sound."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

from anyio import CapacityLimiter, to_thread

from studio.audio.encode import WAV_HEADER, floats, pcm16, wav_header
from studio.audio.splice import Piece, splice
from studio.errors import Changed, DegenerateSpeech, InvalidRequest, NotFound, NoTimestamps
from studio.library import Library
from studio.library.projects.records import Part, PartTake, Project
from studio.library.records import WordTime
from studio.projects.speaking import origin_of, request_of, voice_of
from studio.speech.service import SpeechService
from studio.speech.text import sentences_of
from studio.speech.timing.words import words_in

AT_ONCE = 2
"""Sentences that are spoken anew at once; others wait, and leave the places to those who listen."""
MOST_BEFORE = 300
"""Characters of the sentence before that are spoken too, so that the voice goes on as it did; a longer one is not."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Sentences of a text that are spoken anew, and where their words are among all of it."""

    text: str
    before: str
    """The sentence before them; blank: there is none, or it is too long."""
    first: int
    """The number of their first word, from 0; ``last`` is that after their last one."""
    last: int


@dataclass(frozen=True, slots=True)
class Base:
    """What there is of a part: the take that is mended, and when its words are heard."""

    project: Project
    part: Part
    take: PartTake
    words: Sequence[WordTime]


def select(text: str, start: int, end: int) -> Selection:
    """The sentences that characters ``start`` to ``end`` of a text touch. Raises InvalidRequest where there is none."""
    if not 0 <= start <= end <= len(text):
        raise InvalidRequest(f"start and end must be from 0 to {len(text)}, in this order", "start")
    start = min(start, len(text) - 1)  # a cursor after the last sign is in the last sentence
    at = words = first = 0
    before, chosen = "", list[str]()
    for sentence in sentences_of(text):
        begins, at = at, at + len(sentence)
        count = len(words_in(sentence))
        if (begins <= start < at or start <= begins < end) and (count or chosen):
            first = first if chosen else words
            chosen.append(sentence)
        elif count and not chosen:
            before = sentence
        words += count
    if not chosen:
        raise InvalidRequest("there is no sentence at this place: select words of the part", "start")
    said = "".join(chosen)
    before = before.strip() if len(before) <= MOST_BEFORE else ""
    return Selection(said.strip(), before, first, first + len(words_in(said)))


class Mender:
    """Speaks sentences of parts anew. Used from one event loop."""

    def __init__(self, library: Library, speech: SpeechService) -> None:
        self._library = library
        self._speech = speech
        self._places = CapacityLimiter(AT_ONCE)

    async def mend(self, project_id: str, sees: str | None, part_id: str, text: str, start: int, end: int) -> Part:
        """The part with one more take, in which the sentences at these characters of its text are spoken anew.

        Raises NotFound, InvalidRequest, Changed where the text is another one by now, NoTimestamps, DegenerateSpeech,
        and what SpeechService.speak and Speech.timestamps raise.
        """
        base = await to_thread.run_sync(self._base, project_id, sees, part_id, text)
        chosen = select(base.part.text, start, end)
        async with self._places:
            begun = time.perf_counter()
            text = f"{chosen.before} {chosen.text}" if chosen.before else chosen.text
            seed = secrets.randbelow(2**31)  # the voice's own would say the same again
            request = request_of(base.project.settings, text, base.part.voice, seed)
            speech = await self._speech.speak(request, origin_of(project_id, base.project.owner))
            async with aclosing(speech):
                wav = b"".join([piece async for piece in speech.body])
                times = [(word.text, word.start, word.end) for word in await speech.timestamps("word")]
        take = replace(
            base.take,
            id=f"ptake_{secrets.token_hex(12)}",
            created=time.time(),
            voice=voice_of(speech),
            seed=speech.seed,
            characters=len(request.text),
            work_s=time.perf_counter() - begun,
        )
        if speech.sample_rate != take.sample_rate:
            raise Changed(f"the part was spoken at {take.sample_rate} Hz, by another model; speak all of it again")
        await to_thread.run_sync(partial(self._keep, base, chosen, take, wav, times))
        return await to_thread.run_sync(self._library.projects.part, project_id, sees, part_id)

    def _base(self, project_id: str, sees: str | None, part_id: str, text: str) -> Base:
        projects = self._library.projects
        project = projects.get(project_id, sees)
        part = projects.part(project_id, sees, part_id)
        if text.strip() != part.text:
            raise Changed("the text of this part was changed meanwhile; look at it again", "text")
        if part.state != "done" or part.take is None:
            raise Changed("this part has no sound of its present words and voice; speak all of it first", "part")
        known = projects.word_times(project_id, sees, [part.take.id]).get(part.take.id)
        if known is None or len(known[1]) != len(words_in(part.text)):
            raise NoTimestamps("nothing tells when the words of this part are heard; speak all of it again")
        return Base(project, part, part.take, known[1])

    def _keep(self, base: Base, chosen: Selection, take: PartTake, wav: bytes, times: Sequence[WordTime]) -> None:
        """Put the sentences into the sound and keep it. Blocking."""
        skipped, rate = len(words_in(chosen.before)), take.sample_rate
        if len(times) - skipped != chosen.last - chosen.first:
            raise DegenerateSpeech("the sentence was not spoken to its end; try it again")
        path = self._library.files.path(take.audio)
        if not path.exists():
            raise NotFound("the audio file of this take is missing from the library", "take")
        old, new = (floats(data[WAV_HEADER:]) for data in (path.read_bytes(), wav))
        there, here = _piece(base.words, chosen.first, chosen.last, rate), _piece(times, skipped, len(times), rate)
        made = splice(old, there, new, here, rate)
        words = [
            *base.words[: chosen.first],
            *_later(times[skipped:], made.inserted_by / rate),
            *_later(base.words[chosen.last :], made.moved_by / rate),
        ]
        sound = wav_header(rate, len(made.pcm)) + pcm16(made.pcm)
        take = replace(take, samples=len(made.pcm), audio="")
        self._library.project_work.mended(base.take, base.part.text, take, sound, words)


def _piece(words: Sequence[WordTime], first: int, last: int, rate: int) -> Piece:
    start, end = round(words[first][1] * rate), round(words[last - 1][2] * rate)
    before = round(words[first - 1][2] * rate) if first else None
    return Piece(start, end, before, round(words[last][1] * rate) if last < len(words) else None)


def _later(words: Sequence[WordTime], seconds: float) -> list[WordTime]:
    return [(word, start + seconds, end + seconds) for word, start, end in words]

"""One sentence of a part spoken anew, as the project speaks: the part has one more take, which is the chosen one."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, replace
from functools import partial

from anyio import CapacityLimiter, to_thread

from studio.errors import Changed, NoTimestamps
from studio.library import Library
from studio.library.projects.project_records import Part, PartTake, Project
from studio.projects.part_request import origin_of, request_of, voice_of
from studio.speech.mending.mend import KeptSound, SpokenAnew, mend
from studio.speech.mending.selection import select
from studio.speech.request import SpeechRequest
from studio.speech.speech_service import SpeechService
from studio.speech.timing.words import are_all

AT_ONCE = 2
"""Sentences that are spoken anew at once; others wait, and leave the places to those who listen."""


@dataclass(frozen=True, slots=True)
class Base:
    """What there is of a part: the take that is mended, and how it is heard."""

    project: Project
    part: Part
    take: PartTake
    heard: KeptSound


class PartMender:
    """Speaks sentences of parts anew. Used from one event loop."""

    def __init__(self, library: Library, speech: SpeechService) -> None:
        self._library = library
        self._speech = speech
        self._places = CapacityLimiter(AT_ONCE)

    async def mend(self, project_id: str, sees: str | None, part_id: str, text: str, start: int, end: int) -> Part:
        """The part with one more take, in which the sentences at these characters of its text are spoken anew.

        Raises NotFound, InvalidRequest, Changed where the text is another one by now, NoTimestamps, and what
        studio.speech.mending.mend raises.
        """
        base = await to_thread.run_sync(self._base, project_id, sees, part_id, text)
        chosen = select(base.part.text, start, end, [word for word, _, _ in base.heard.words])

        def request(said: str, seed: int) -> SpeechRequest:
            return request_of(base.project.settings, said, base.part.voice, seed)

        async with self._places:
            made = await mend(self._speech, base.heard, chosen, request, origin_of(project_id, base.project.owner))
        await to_thread.run_sync(self._keep, base, made)
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
        if known is None or not are_all(part.text, [word for word, _, _ in known[1]]):
            raise NoTimestamps("nothing tells when the words of this part are heard; speak all of it again")
        heard = KeptSound(self._library.files.path(part.take.audio), part.take.sample_rate, known[1])
        return Base(project, part, part.take, heard)

    def _keep(self, base: Base, made: SpokenAnew) -> None:
        """Blocking."""
        take = replace(
            base.take,
            id=f"ptake_{secrets.token_hex(12)}",
            created=time.time(),
            voice=voice_of(made.speech),
            seed=made.speech.seed,
            characters=len(made.speech.request.text),
            work_s=made.work_s,
            samples=made.result.samples,
            audio="",
        )
        keep = partial(self._library.part_queue.mended, base.take, base.part.text, take)
        keep(made.result.wav, made.result.words)

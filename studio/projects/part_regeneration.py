"""Regenerates sentences of a part with the settings of its project: the part gets another take, which is chosen."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from anyio import CapacityLimiter, to_thread

from studio.errors import Changed
from studio.history.regeneration import Regeneration, RequestOf
from studio.history.sentence_selection import Selection, select
from studio.library import Library
from studio.library.projects.project_records import Part, Project
from studio.library.takes.take import Take
from studio.projects.part_request import origin_of, request_of

AT_ONCE = 2
"""Parts regenerated at the same time; others wait, so that live requests keep their rows."""


class PartRegeneration:
    """Used from one event loop."""

    def __init__(self, library: Library, regeneration: Regeneration) -> None:
        self._projects, self._queue, self._regeneration = library.projects, library.part_queue, regeneration
        self._places = CapacityLimiter(AT_ONCE)

    async def add_take(
        self, project_id: str, owner_filter: str | None, part_id: str, text: str, start: int, end: int
    ) -> Part:
        """Regenerate the sentences at ``start`` to ``end`` (characters of the part's text); returns the part.

        Raises NotFound, InvalidRequest, Changed if the text was edited, and what Regeneration.regenerate raises.
        """
        project, part, take = await to_thread.run_sync(self._load, project_id, owner_filter, part_id, text)

        def choose(words: Sequence[str]) -> tuple[Selection, RequestOf]:
            return select(part.text, start, end, words), partial(
                request_of, part.direction.over(project.settings), part.voice
            )

        async with self._places:
            result = await self._regeneration.regenerate(take, origin_of(project_id, project.owner), choose)
        request, new_id = result.spoken, f"ptake_{secrets.token_hex(12)}"
        changed = replace(result.new.take, id=new_id, voice=request.voice, seed=request.seed, work_s=result.work_s)
        new = replace(result.new, take=changed)
        await to_thread.run_sync(self._queue.regenerated, new, take.id, len(request.text))
        return await to_thread.run_sync(self._projects.part, project_id, owner_filter, part_id)

    def _load(self, project_id: str, owner_filter: str | None, part_id: str, text: str) -> tuple[Project, Part, Take]:
        self._projects.check(project_id, owner_filter, "edit")
        project = self._projects.get(project_id, owner_filter)
        part = self._projects.part(project_id, owner_filter, part_id)
        if text.strip() != part.text:
            raise Changed("the text of this part has changed; reload it and try again", "text")
        if part.state != "done" or part.take is None:
            raise Changed("this part has no audio of its current text and voice; generate all of it first", "part")
        return project, part, part.take

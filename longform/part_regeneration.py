"""Regenerates sentences of a part, optionally with other words: the part gets another take, which is chosen."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial

from longform.library.project_records import Part, Project
from longform.library.project_repository import ProjectLibrary
from longform.library.row_mapping import clean_part
from longform.part_generation import origin_of, request_of
from speechtext.sentence_selection import Selection, select
from studio.api.queued import change, look_up
from studio.errors import EditConflict, InvalidRequest
from studio.library.take import Take
from studio.takes.regeneration import Regeneration, RequestOf

Places = Callable[[str], AbstractAsyncContextManager[None]]


class PartRegeneration:
    """Used from one event loop."""

    def __init__(self, library: ProjectLibrary, regeneration: Regeneration, places: Places) -> None:
        """``places``: limits the parts regenerated at the same time, here and elsewhere, in turn by caller."""
        self._library, self._regeneration, self._places = library, regeneration, places

    async def add_take(
        self,
        project_id: str,
        owner_filter: str | None,
        part_id: str,
        text: str,
        start: int,
        end: int,
        replacement: str | None = None,
    ) -> Part:
        """Regenerate the sentences at ``start`` to ``end`` (characters of the part's text); returns the part.

        ``replacement``: the words in place of these characters; the part gets them together with the take.

        Raises NotFound, InvalidRequest, EditConflict if the text was edited, and Regeneration.regenerate's errors.
        """
        project, part, take = await look_up(self._load, project_id, owner_filter, part_id, text)
        settings = part.direction.over(project.settings)

        def choose(words: Sequence[str]) -> tuple[Selection, RequestOf]:
            selection = select(part.text, start, end, words, replacement)
            return replace(selection, new_text=_text_of(selection)), partial(request_of, settings, part.voice)

        async with self._places(project.owner):
            result = await self._regeneration.regenerate(take, origin_of(project_id, project.owner), choose)
        request, new_id = result.speech_take, f"ptake_{secrets.token_hex(12)}"
        new_take = replace(
            result.new_take.take, id=new_id, voice=request.voice, seed=request.seed, work_s=result.work_s
        )
        if new_take.text != part.text:
            new_take = replace(new_take, recipe=settings.recipe(new_take.text, part.voice))
        new = replace(result.new_take, take=new_take)
        add = self._library.part_queue.add_regenerated
        await change(add, new, take.id, len(request.text), part.text, patient=True)
        return await look_up(self._library.projects.part, project_id, owner_filter, part_id, patient=True)

    def _load(self, project_id: str, owner_filter: str | None, part_id: str, text: str) -> tuple[Project, Part, Take]:
        project, part, take = spoken_part(self._library, project_id, owner_filter, part_id)
        if text.strip() != part.text:
            raise EditConflict("the text of this part has changed; reload it and try again", "text")
        return project, part, take


def spoken_part(
    library: ProjectLibrary, project_id: str, owner_filter: str | None, part_id: str
) -> tuple[Project, Part, Take]:
    """A part to regenerate, with its project and its take. Blocking. Raises NotFound, and EditConflict without audio of
    its current text."""
    library.projects.check(project_id, owner_filter, "edit")
    project = library.projects.get(project_id, owner_filter)
    part = library.projects.part(project_id, owner_filter, part_id)
    if part.state != "done" or part.take is None:
        raise EditConflict("this part has no audio of its current text and voice; generate all of it first", "part")
    return project, part, part.take


def _text_of(selection: Selection) -> str:
    """The part's text with the replacement. Raises InvalidRequest."""
    try:
        return clean_part(selection.new_text)
    except InvalidRequest as error:
        raise InvalidRequest(f"with these words the {error.message}", "replacement") from None

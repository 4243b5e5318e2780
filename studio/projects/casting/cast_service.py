"""The cast of a project for the API: characters and their voices, lines to decide, directions for many parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from anyio import to_thread

from studio.errors import InvalidRequest, NotFound, StudioError
from studio.library import Library
from studio.library.projects.cast_repository import CastMember, CharacterChanges
from studio.library.projects.part_filter import PartFilter
from studio.library.projects.project_records import NewCharacter, Part, PartChanges, PartRange
from studio.projects.casting.chat_endpoint import MAX_LINES, ChatEndpoint, Proposal, Question
from studio.projects.casting.delivery_tags import MAX_DELIVERY_TAGS, with_tags
from studio.projects.casting.voice_proposals import proposed_voices, roles_of
from studio.speech.speech_service import SpeechService

MOST_PROPOSED = 100
"""Maximum voices of the library from which characters' voices are chosen."""
MAX_CONTEXT = 300
"""Characters of the previous and the next part that are shown with a line."""


@dataclass(frozen=True, slots=True)
class LineInContext:
    """A line with the text around it, which shows the speaker."""

    part: Part
    before: str
    after: str


class CastService:
    """Calls block for milliseconds, on any thread; ``owner_filter`` is as for Projects."""

    def __init__(self, library: Library, speech: SpeechService, chat: ChatEndpoint | None = None) -> None:
        self._library = library
        self._chat = chat
        self._cast = library.cast
        self._speech = speech

    def add(self, project_id: str, owner_filter: str | None, character: NewCharacter) -> CastMember:
        """Raises NotFound, InvalidRequest, UnknownVoice, NotAllowed."""
        self._speech.voices.check_for_project(project_id, owner_filter, character.voice)
        return self._cast.add(project_id, owner_filter, character)

    def edit(
        self, project_id: str, owner_filter: str | None, character_id: str, changes: CharacterChanges
    ) -> CastMember:
        """Raises NotFound, InvalidRequest, UnknownVoice, NotAllowed."""
        self._speech.voices.check_for_project(project_id, owner_filter, changes.voice)
        return self._cast.edit(project_id, owner_filter, character_id, changes)

    def recast(self, project_id: str, owner_filter: str | None, only_missing: bool) -> None:
        """Give all characters their proposed voices; ``only_missing``: only those without a voice.

        Raises NotFound.
        """
        project = self._library.projects.get(project_id, owner_filter)
        members = [member for member in self._cast.members(project_id, owner_filter) if member.id]
        narrator = self._speech.voices.seen_by(project.owner).find(project.settings.voice)
        voices = self._library.seen_by(owner_filter).voices.page(limit=MOST_PROPOSED)
        if project.right != "own":  # voices that its owner can use too
            voices = [voice for voice in voices if voice.sharing != "private"]
        characters = (
            NewCharacter(member.name, member.aliases, member.gender, member.voice, member.is_narrator, str(member.id))
            for member in members
        )
        roles = roles_of(characters, self._cast.speakers(project_id, owner_filter))
        proposals = proposed_voices(roles, voices, narrator.slug if narrator else None, only_missing)
        chosen = {role.character.id: role.character.voice for role in proposals if not role.character.is_narrator}
        self._cast.recast(project_id, owner_filter, chosen)

    def lines(
        self, project_id: str, owner_filter: str | None, part_filter: PartFilter, offset: int, limit: int
    ) -> tuple[list[LineInContext], int]:
        """A page of lines, and their total number. Raises NotFound."""
        projects = self._library.projects
        total = projects.count_parts(project_id, owner_filter, part_filter)
        parts = projects.parts(project_id, owner_filter, offset, limit, part_filter, only_chosen=True)
        texts = self._cast.texts_at(project_id, {part.position + step for part in parts for step in (-1, 1)})
        lines = [
            LineInContext(
                part,
                texts.get(part.position - 1, "")[-MAX_CONTEXT:],
                texts.get(part.position + 1, "")[:MAX_CONTEXT],
            )
            for part in parts
        ]
        return lines, total

    @property
    def assistant(self) -> str | None:
        """The model that `propose` asks; None if no chat endpoint is set."""
        return self._chat.model if self._chat else None

    async def propose(
        self, project_id: str, owner_filter: str | None, part_ids: Sequence[str]
    ) -> list[tuple[str, str | None, Proposal]]:
        """Part, character (None: the narrator, or not in the cast) and proposal, for the lines that have one. Needs the
        right to edit.

        Raises NotFound, InvalidRequest, ChatFailed.
        """
        await to_thread.run_sync(self._library.projects.check, project_id, owner_filter, "edit")
        if self._chat is None:
            message = "no chat endpoint is set up: set STUDIO_CHAT, and restart the studio"
            raise InvalidRequest(message, "ids")
        part_filter = PartFilter(ids=part_ids)
        lines, _ = await to_thread.run_sync(self.lines, project_id, owner_filter, part_filter, 0, MAX_LINES)
        if len(lines) < len(set(part_ids)):
            raise NotFound("the project does not have all of these parts", "ids")
        members = await to_thread.run_sync(self._cast.members, project_id, owner_filter)
        by_name = {
            name.casefold(): member.id for member in members if member.id for name in (member.name, *member.aliases)
        }
        questions = [Question(line.part.text, line.before, line.after) for line in lines]
        names = [member.name for member in members if member.id]
        proposals = await self._chat.propose(questions, names, self._known_tags)
        return [
            (line.part.id, by_name.get(proposal.speaker.casefold()), proposal)
            for line, proposal in zip(lines, proposals, strict=True)
            if proposal is not None
        ]

    @property
    def _known_tags(self) -> tuple[str, ...] | None:
        """The tags of the speech model; None: any, or it is not ready yet."""
        try:
            return self._speech.host.engine().info.card.tags
        except StudioError:
            return None

    def direct(
        self,
        project_id: str,
        owner_filter: str | None,
        parts: Sequence[str] | PartRange,
        changes: PartChanges,
        tags: Sequence[str] | None,
    ) -> int:
        """Change many parts at once; returns their number. ``tags``: of each sentence; None: unchanged.

        Raises NotFound, InvalidRequest, UnknownVoice.
        """
        self._speech.voices.check_for_project(project_id, owner_filter, changes.voice)
        return self._library.projects.edit_parts(project_id, owner_filter, parts, self.tagged(changes, tags))

    def tagged(self, changes: PartChanges, tags: Iterable[str] | None) -> PartChanges:
        """The changes, with these tags added. Raises InvalidRequest for a tag that the model does not know."""
        if tags is None:
            return changes
        names = [" ".join(tag.strip().strip("[]").split()) for tag in tags]
        if len(names) > MAX_DELIVERY_TAGS or not all(names):
            raise InvalidRequest(f"tags must be up to {MAX_DELIVERY_TAGS} words such as whisper", "tags")
        model_tags = self._known_tags
        for name in names:
            if any(sign in "[]<>|\n" for sign in name):
                raise InvalidRequest(f"a tag has no brackets or bars in it: {name[:40]!r}", "tags")
            if model_tags is not None and name.lower() not in {tag.lower() for tag in model_tags}:
                raise InvalidRequest(f"the model has no tag {name[:40]!r}; it has {', '.join(model_tags)}", "tags")
        return replace(changes, reword=lambda text: with_tags(text, names))

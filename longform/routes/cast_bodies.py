"""Request and response bodies for the cast of a project: characters, and lines to decide."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import Field

from longform.cast_service import LineInContext
from longform.chat_endpoint import MAX_LINES, Proposal
from longform.library.cast_repository import MAX_ALIASES, CastMember, CharacterChanges
from longform.library.project_records import ReplacedVoice
from manuscript.passages import MAX_NAME, NewCharacter
from studio.api.field_types import BEFORE, StrictBody, VoiceName, as_read

Name = Annotated[str, Field(max_length=MAX_NAME)]
GENDER = "female, male or neutral; blank: unknown."


class NewCharacterBody(StrictBody):
    """A character to add."""

    name: Name
    aliases: list[Name] = Field([], max_length=MAX_ALIASES, description="Other names of this person.")
    gender: str = Field("", description=GENDER)
    voice: VoiceName | None = Field(None, description="Absent or blank: the project's.")

    def character(self) -> NewCharacter:
        voice = (self.voice or "").strip() or None
        return NewCharacter(self.name, tuple(self.aliases), self.gender, voice)


class CharacterFields(StrictBody):
    name: Name | None = None
    aliases: list[Name] | None = Field(None, max_length=MAX_ALIASES, description="All other names of this person.")
    gender: str | None = Field(None, description=GENDER)
    voice: VoiceName | None = Field(None, description="For all its lines without their own; blank: the project's.")
    narrator: bool | None = Field(None, description="Whether this person tells the story, in the project's voice.")


class CharacterBody(CharacterFields):
    """Fields that are absent or null stay as they are."""

    before: CharacterFields | None = BEFORE

    def changes(self) -> CharacterChanges:
        return CharacterChanges(self.name, self.aliases, self.gender, self.voice, self.narrator, as_read(self.before))


class MergeCharacterBody(StrictBody):
    """The character to merge with."""

    into: str = Field(description="The id of the character who gets all lines and names.")


class RecastBody(StrictBody):
    """The characters that get a proposed voice."""

    missing: bool = Field(False, description="Only those without a voice.")


class ProposeBody(StrictBody):
    """Lines to ask the chat endpoint about."""

    ids: list[str] = Field(min_length=1, max_length=MAX_LINES)
    estimate: bool = Field(False, description="Ask nothing; return the number of questions and about how many tokens.")


def proposal_json(part: str, character: str | None, proposal: Proposal) -> dict[str, Any]:
    """``character`` is null for the narrator, whose ``name`` is blank, and for a name that is not in the cast."""
    return {"part": part, "character": character, "name": proposal.speaker, "tags": list(proposal.tags)}


def cast_json(members: list[CastMember], unsure_count: int, assistant: str | None) -> dict[str, Any]:
    """``assistant``: the model that may be asked for proposals."""
    narrator, *characters = map(member_json, members)
    answer = {"object": "project.cast", "narrator": narrator, "data": characters, "unsure": unsure_count}
    return answer | {"assistant": assistant}


def member_json(member: CastMember) -> dict[str, Any]:
    sample = None if member.sample is None else asdict(member.sample)
    names = {"id": member.id, "object": "project.character", "name": member.name, "aliases": list(member.aliases)}
    voices = {"gender": member.gender, "voice": member.voice, "narrator": member.is_narrator}
    return names | voices | {"lines": member.lines, "words": member.words, "sample": sample}


def replaced_voices_json(voices: Mapping[str, ReplacedVoice]) -> dict[str, Any]:
    """What a change replaced, for UndoBody."""
    return {"characters": [{"id": character} | asdict(one) for character, one in voices.items()]}


def line_json(line: LineInContext) -> dict[str, Any]:
    part = line.part
    context = {"id": part.id, "position": part.position, "text": part.text, "before": line.before, "after": line.after}
    return context | {
        "character": part.character,
        "people": list(line.people),
        "confidence": part.confidence,
        "reason": part.reason,
        "confirmed": part.confirmed,
    }

"""Request and response bodies for arranging parts: insert, split, merge, move, regenerate, find and replace."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from longform.library.project_records import NewPart
from longform.library.replacements import MAX_FIND, MAX_REPLACE, Matches, TextReplacement, UndoResult
from longform.routes.project_bodies import NewPartFields
from manuscript.passages import MAX_PARTS
from studio.api.field_types import NO_BOOLEAN, StrictBody
from studio.api.speech_bodies import RegenerateBody


class NewPartBody(NewPartFields):
    """A part to insert."""

    text: str
    after: str | None = Field(description="The id of the previous part; null: insert it first.")

    def part(self) -> NewPart:
        chapter, voice = (" ".join((words or "").split()) for words in (self.chapter, self.voice))
        return NewPart(self.text, chapter, voice or None, self.pause)


class SplitBody(StrictBody):
    """The position at which to split a part."""

    text: str = Field(description="The part's text as read before; if it has changed since, the response is 412.")
    at: Annotated[int, Field(ge=0), NO_BOOLEAN] = Field(
        description="Index of the first character of the second part, in Unicode code points."
    )


class MergeBody(StrictBody):
    """The part to merge with."""

    following: str = Field(description="The id of the part right after it.")
    text: str | None = Field(
        None,
        description="To undo a split: the text before it. The second part then does not go into the trash; if the text "
        "has changed since, the answer is 412.",
    )


class MoveBody(StrictBody):
    """The new position of a part."""

    position: Annotated[int, Field(ge=0, lt=MAX_PARTS), NO_BOOLEAN] = Field(description="Counted from 0.")
    position_before: Annotated[int, Field(ge=0, lt=MAX_PARTS), NO_BOOLEAN] | None = Field(
        None, description="The first part's position as read; if it has another by now, the response is 412."
    )


class PartIdsBody(StrictBody):
    """Parts of a project."""

    ids: list[str] = Field(min_length=1, max_length=MAX_PARTS)


class DeletePartsBody(PartIdsBody):
    text_before: str | None = Field(
        None, description="The text of all these parts as read; if one has changed since, the response is 412."
    )


class MovePartsBody(MoveBody, PartIdsBody):
    """The parts to move, and the new position of the first one; the others follow it in their order."""


class RegeneratePartBody(RegenerateBody):
    """The sentences of a part to regenerate."""

    text: str = Field(description="The part's text as read before; if it has changed since, the response is 412.")


class ReplaceBody(StrictBody):
    """The text to find in all parts, and its replacement."""

    find: str = Field(description=f"At most {MAX_FIND} characters.")
    replace: str = Field("", description=f"At most {MAX_REPLACE} characters; blank: remove the text.")
    match_case: bool = Field(False, description="Match case.")
    whole_words: bool = Field(False, description="Match whole words only.")
    dry_run: bool = Field(False, description="Count the matches and change nothing.")

    def replacement(self) -> TextReplacement:
        return TextReplacement(self.find, self.replace, self.match_case, self.whole_words)


def matches_json(matches: Matches, is_dry: bool) -> dict[str, Any]:
    figures = {"count": matches.count, "parts": matches.parts, "dry_run": is_dry}
    found = {"ids": matches.named, "positions": list(matches.positions)} if is_dry else {"id": matches.id}
    return {"object": "project.replacement"} | figures | found


def undo_json(result: UndoResult) -> dict[str, Any]:
    return {"object": "project.replacement.undone", "parts": result.parts, "left": result.left}

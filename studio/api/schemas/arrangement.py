"""Request and response bodies for arranging parts: insert, split, merge, move, regenerate, find and replace."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from studio.api.schemas.field_types import FINITE, NO_BOOLEAN, StrictBody, VoiceName
from studio.api.schemas.speech import RegenerateBody
from studio.library.projects.project_records import MAX_PARTS, MAX_PAUSE, NewPart
from studio.library.projects.replacements import MAX_FIND, MAX_REPLACE, Matches, TextReplacement, UndoResult


class NewPartBody(StrictBody):
    """A part to insert."""

    text: str
    after: str | None = Field(description="The id of the previous part; null: insert it first.")
    voice: VoiceName | None = Field(None, description="Absent or blank: the project's.")
    pause: Annotated[float, FINITE, Field(ge=0, le=MAX_PAUSE), NO_BOOLEAN] | None = Field(
        None, description="Seconds of silence after it; absent: the project's."
    )
    chapter: str = Field("", max_length=200, description="The title of the chapter that begins with it.")

    def part(self) -> NewPart:
        return NewPart(self.text, " ".join(self.chapter.split()), (self.voice or "").strip() or None, self.pause)


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


class RestoreBody(StrictBody):
    """The deleted parts to restore."""

    ids: list[str] = Field(min_length=1, max_length=MAX_PARTS)


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
    return {"object": "project.replacement"} | figures | ({"positions": list(matches.positions)} if is_dry else {})


def undo_json(result: UndoResult) -> dict[str, Any]:
    return {"object": "project.replacement.undone", "parts": result.parts, "left": result.left}

"""The wire format of how a project's parts are arranged: inserted, split, merged, moved, and words replaced in them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from studio.api.schemas.numbers import Number, Whole
from studio.api.schemas.speech import RegenerateBody
from studio.api.schemas.voices import VoiceName
from studio.library.projects.project_records import MAX_PARTS, MAX_PAUSE, NewPart
from studio.library.projects.replacements import MAX_FIND, MAX_REPLACE, Found, Undone, Wanted


class NewPartBody(BaseModel):
    """A part that is put among the others."""

    model_config = ConfigDict(extra="forbid")

    text: str
    after: str | None = Field(description="The id of the part before it; null: it is the first.")
    voice: VoiceName | None = Field(None, description="Absent or blank: the project's.")
    pause: Annotated[Number, Field(ge=0, le=MAX_PAUSE)] | None = Field(
        None, description="Seconds of silence after it; absent: the project's."
    )
    chapter: str = Field("", max_length=200, description="The title of the chapter that begins with it.")

    def part(self) -> NewPart:
        return NewPart(self.text, " ".join(self.chapter.split()), (self.voice or "").strip() or None, self.pause)


class SplitBody(BaseModel):
    """Where a part is split."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(description="The part's text as it was read: where it is another one by now, the answer is 412.")
    at: Annotated[Whole, Field(ge=0)] = Field(
        description="Of which character, counted from 0 in Unicode code points, the second part begins."
    )


class MergeBody(BaseModel):
    """With which part one is merged."""

    model_config = ConfigDict(extra="forbid")

    following: str = Field(description="The id of the part right after it.")


class MoveBody(BaseModel):
    """Where a part is to be."""

    model_config = ConfigDict(extra="forbid")

    position: Annotated[Whole, Field(ge=0, lt=MAX_PARTS)] = Field(description="Counted from 0.")


class RestoreBody(BaseModel):
    """Which deleted parts are restored."""

    model_config = ConfigDict(extra="forbid")

    ids: list[str] = Field(min_length=1, max_length=MAX_PARTS)


class RegeneratePartBody(RegenerateBody):
    """Which sentence of a part is regenerated."""

    text: str = Field(description="The part's text as it was read: where it is another one by now, the answer is 412.")


class ReplaceBody(BaseModel):
    """What to look for in all parts, and what is to stand in its place."""

    model_config = ConfigDict(extra="forbid")

    find: str = Field(description=f"At most {MAX_FIND} characters.")
    replace: str = Field("", description=f"At most {MAX_REPLACE} characters; blank: it is taken out.")
    match_case: bool = Field(False, description="Whether it is only meant in this case.")
    whole_words: bool = Field(False, description="Whether it must not be a piece of a longer word.")
    dry_run: bool = Field(False, description="Whether to count only, and change nothing.")

    def wanted(self) -> Wanted:
        return Wanted(self.find, self.replace, self.match_case, self.whole_words)


def found_json(found: Found, is_dry: bool) -> dict[str, Any]:
    return {"object": "project.replacement", "count": found.count, "parts": found.parts, "dry_run": is_dry}


def undone_json(undone: Undone) -> dict[str, Any]:
    return {"object": "project.replacement.undone", "parts": undone.parts, "left": undone.left}

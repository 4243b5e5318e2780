"""A script with a cast, as people write it: which turns it has, and who is named to speak them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from studio.errors import InvalidRequest
from studio.text import PART_BYTES, read_script

TURN_GAP = 0.3
"""Seconds of silence between two turns when nothing is said about it."""
MAX_GAP = 10.0
MAX_TURNS = 500
MAX_CAST = 32
MAX_NAME = 40
"""Characters of a speaker's name."""

_NAME = re.compile(r"^[ \t]*([^\W\d_][\w .'’-]{0,39}?)[ \t]*(?::(?=\s|\Z)|：)[ \t]*", re.MULTILINE)
_WORDS_IN_A_NAME = 4


@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker says before the next one does."""

    speaker: str | None
    """As written; None for what stands before the first name."""
    text: str
    line: int
    """Where it begins, from 1."""


def read_turns(script: str) -> tuple[Turn, ...]:
    """The turns of a script: a line that begins with a name and a colon begins one, other lines go on with it.

    A name begins with a letter and has at most 40 characters and four words. Raises InvalidRequest, with the line.
    """
    names = _names(script)
    turns = []
    before = script[: names[0].start() if names else len(script)]
    if before.strip():
        turns.append(Turn(None, before.strip(), 1))
    ends = [*(found.start() for found in names[1:]), len(script)]
    for found, end in zip(names, ends, strict=False):
        text = script[found.end() : end].strip()
        line = script.count("\n", 0, found.start(1)) + 1
        if not text:
            raise InvalidRequest(f"line {line}: {found[1]} has nothing to say", "input")
        turns.append(Turn(found[1], text, line))
    if len(turns) > MAX_TURNS:
        raise InvalidRequest(f"the script has {len(turns)} turns; at most {MAX_TURNS} are allowed", "input")
    return tuple(turns)


def begins_turn(line: str) -> bool:
    """Whether a line begins with a name and a colon."""
    return bool(_names(line.split("\n", 1)[0]))


def turns_of(text: str, is_speaker: Callable[[str], bool]) -> Iterator[tuple[str | None, str]]:
    """Speakers and what they say, in a text where only some names are speakers; None says what nobody is named for."""
    names = [found for found in _names(text) if is_speaker(found[1])]
    ends = [*(found.start() for found in names), len(text)]
    for found, start, end in zip([None, *names], [0, *(found.end() for found in names)], ends, strict=True):
        if said := text[start:end].strip():
            yield found[1] if found else None, said


def _names(script: str) -> list[re.Match[str]]:
    return [found for found in _NAME.finditer(script) if len(found[1].split()) <= _WORDS_IN_A_NAME]


def check_dialogue(script: str, cast: Mapping[str, str], gap: float, part_bytes: int = PART_BYTES) -> None:
    """Raises InvalidRequest for what could not be spoken whatever voices there are."""
    if not 0 <= gap <= MAX_GAP:
        raise InvalidRequest(f"turn_gap must be from 0 to {MAX_GAP:g} seconds", "turn_gap")
    if len(cast) > MAX_CAST:
        raise InvalidRequest(f"the cast has {len(cast)} names; at most {MAX_CAST} are allowed", "cast")
    for name, voice in cast.items():
        if not name.strip() or len(name) > MAX_NAME or not voice.strip():
            raise InvalidRequest(
                f"cast: {name[:MAX_NAME]!r} needs a name of 1 to {MAX_NAME} characters and a voice", "cast"
            )
    for turn in read_turns(script):
        try:
            read_script(turn.text, part_bytes)
        except InvalidRequest as error:
            raise InvalidRequest(f"line {turn.line}: {error}", "input") from None

"""A script with a cast, as people write it: which turns it has, and who is named to speak them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from studio.errors import InvalidRequest
from studio.speech.script.signs import clean_signs
from studio.speech.text import Script, check_pauses, is_blank, read_script

TURN_GAP = 0.3
"""Seconds of silence between two turns when nothing is said about it."""
MAX_GAP = 10.0
MAX_TURNS = 500
MAX_CAST = 32
MAX_NAME = 40
"""Characters of a speaker's name."""

_UNSEEN = "\u00ad\u200b-\u200f\u2060\ufeff"
_NAME = re.compile(
    rf"^[ \t{_UNSEEN}]*(?:\*\*)?([^\W\d_][\w .'’{_UNSEEN}-]{{0,39}}?)(?:\*\*)?[ \t]*"
    r"(?::(?:\*\*)?(?=\s|\Z)|：(?:\*\*)?)[ \t]*",
    re.MULTILINE,
)
"""Also in bold, as Markdown writes it."""
_WORDS_IN_A_NAME = 4


@dataclass(frozen=True, slots=True)
class Turn:
    """What one speaker says before the next one does."""

    speaker: str | None
    """As written; None for what stands before the first name."""
    written: str
    text: str
    """The same as it is read."""
    line: int
    """Where it begins, from 1."""
    script: Script
    """What is read, cut into what is said in one breath."""
    begins: int = 0
    """Where ``written`` begins in the script."""


Reading = Callable[[str | None, str], str]
"""Makes what is read of a speaker, None before the first name, and of what is written."""
Cut = Callable[[str], Script]
"""Cuts what is read into what is said in one breath."""


def as_written(_: str | None, text: str) -> str:
    return text


def read_turns(script: str, reading: Reading = as_written, cut: Cut = read_script) -> tuple[Turn, ...]:
    """The turns of a script: a line that begins with a name and a colon begins one, other lines go on with it.

    A name begins with a letter and has at most 40 characters and four words. Raises InvalidRequest, with the line.
    """
    names = _names(script)
    before = script[: names[0].start() if names else len(script)]
    turns = [] if is_blank(before) else [_turn(None, before, (1, 0), reading, cut)]
    if len(turns) + len(names) > MAX_TURNS:
        count = len(turns) + len(names)
        raise InvalidRequest(f"the script has {count} turns; at most {MAX_TURNS} are allowed", "input")
    ends = [*(found.start() for found in names[1:]), len(script)]
    for found, end in zip(names, ends, strict=False):
        line = script.count("\n", 0, found.start(1)) + 1
        turns.append(_turn(clean_signs(found[1]), script[found.end() : end], (line, found.end()), reading, cut))
    check_pauses(step for turn in turns for step in turn.script)
    return tuple(turns)


def _turn(speaker: str | None, text: str, at: tuple[int, int], reading: Reading, cut: Cut) -> Turn:
    """``at``: its line, and where its text begins in the script."""
    line, begins = at
    if is_blank(text):
        raise InvalidRequest(f"line {line}: {speaker} has nothing to say", "input")
    try:
        written = text.strip()
        read = reading(speaker, written)
        begins += len(text) - len(text.lstrip())
        return Turn(speaker, written, read, line, cut(read), begins)
    except InvalidRequest as error:
        raise InvalidRequest(f"line {line}: {error}", "input") from None


def begins_turn(line: str) -> bool:
    """Whether a line begins with a name and a colon."""
    return bool(_names(line.split("\n", 1)[0]))


def speaker_names(text: str) -> list[str]:
    """The names with which lines begin, in order; whether they are those of speakers is not known."""
    return [clean_signs(found[1]) for found in _names(text)]


def turns_of(text: str, is_speaker: Callable[[str], bool]) -> Iterator[tuple[str | None, str]]:
    """Speakers and what they say, in a text where only some names are speakers; None says what nobody is named for."""
    names = [found for found in _names(text) if is_speaker(clean_signs(found[1]))]
    ends = [*(found.start() for found in names), len(text)]
    for found, start, end in zip([None, *names], [0, *(found.end() for found in names)], ends, strict=True):
        if said := text[start:end].strip():
            yield clean_signs(found[1]) if found else None, said


def _names(script: str) -> list[re.Match[str]]:
    return [found for found in _NAME.finditer(script) if len(found[1].split()) <= _WORDS_IN_A_NAME]


def fold_speaker(name: str) -> str:
    """Speakers whose names fold to the same are the same: case, space and invisible signs do not count."""
    return " ".join(clean_signs(name).casefold().split())


def check_cast(cast: Mapping[str, str], gap: float) -> None:
    """Raises InvalidRequest for what could not be spoken whatever the script and the voices are."""
    if not 0 <= gap <= MAX_GAP:
        raise InvalidRequest(f"turn_gap must be from 0 to {MAX_GAP:g} seconds", "turn_gap")
    if len(cast) > MAX_CAST:
        raise InvalidRequest(f"the cast has {len(cast)} names; at most {MAX_CAST} are allowed", "cast")
    for name, voice in cast.items():
        if not name.strip() or len(name) > MAX_NAME or not voice.strip():
            raise InvalidRequest(
                f"cast: {name[:MAX_NAME]!r} needs a name of 1 to {MAX_NAME} characters and a voice", "cast"
            )

"""Splits a script with a cast into turns, and finds the speaker of each turn."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from speechtext.characters import clean_signs
from speechtext.errors import TextError
from speechtext.script import Script, check_pauses, is_blank, read_script

TURN_GAP = 0.3  # default seconds of silence between two turns
MAX_GAP = 10.0
MAX_TURNS = 500
MAX_CAST = 32
MAX_NAME = 40  # characters of a speaker's name

_UNSEEN = "\u00ad\u200b-\u200f\u2060\ufeff"
_NAME = re.compile(
    rf"^[ \t{_UNSEEN}]*(?:\*\*)?([^\W\d_][\w .'’{_UNSEEN}-]{{0,39}}?)(?:\*\*)?[ \t]*"
    r"(?::(?:\*\*)?(?=\s|\Z)|：(?:\*\*)?)[ \t]*",
    re.MULTILINE,
)
"""The name may be bold, as in Markdown."""
_WORDS_IN_A_NAME = 4


@dataclass(frozen=True, slots=True)
class Turn:
    """The text of one speaker up to the next one."""

    speaker: str | None  # the name as written; None before the first name
    written: str
    text: str  # the text as read
    line: int  # the line on which it begins, from 1
    script: Script  # the text as read, split into parts
    begins: int = 0  # start of ``written`` in the script


TurnReader = Callable[[str | None, str], str]
"""Converts a speaker (None before the first name) and a text as written to the text as read."""
SplitScript = Callable[[str], Script]  # splits a text as read into parts


def read_turns(
    script: str, reading: TurnReader = lambda _, text: text, split: SplitScript = read_script
) -> tuple[Turn, ...]:
    """The turns of a script: a line that begins with a name and a colon starts one, other lines continue it.

    A name begins with a letter and has at most 40 characters and four words. Raises TextError, with the line.
    """
    names = _names(script)
    before = script[: names[0].start() if names else len(script)]
    turns = [] if is_blank(before) else [_turn(None, before, (1, 0), reading, split)]
    if len(turns) + len(names) > MAX_TURNS:
        count = len(turns) + len(names)
        raise TextError(f"the script has {count} turns; at most {MAX_TURNS} are allowed", "input")
    ends = [*(match.start() for match in names[1:]), len(script)]
    for match, end in zip(names, ends, strict=False):
        line = script.count("\n", 0, match.start(1)) + 1
        turns.append(_turn(clean_signs(match[1]), script[match.end() : end], (line, match.end()), reading, split))
    check_pauses(step for turn in turns for step in turn.script)
    return tuple(turns)


def _turn(speaker: str | None, text: str, at: tuple[int, int], reading: TurnReader, split: SplitScript) -> Turn:
    """``at``: its line, and the start of its text in the script."""
    line, begins = at
    if is_blank(text):
        raise TextError(f"line {line}: there is no text after “{speaker}:”", "input")
    try:
        written = text.strip()
        read = reading(speaker, written)
        begins += len(text) - len(text.lstrip())
        return Turn(speaker, written, read, line, split(read), begins)
    except TextError as error:
        raise TextError(f"line {line}: {error}", "input") from None


def begins_turn(line: str) -> bool:
    """Whether a line begins with a name and a colon."""
    return bool(_names(line.split("\n", 1)[0]))


def speaker_names(text: str) -> list[str]:
    """The names with which lines begin, in order; they may not be speakers."""
    return [clean_signs(match[1]) for match in _names(text)]


def turns_of(text: str, is_speaker: Callable[[str], bool]) -> Iterator[tuple[str | None, str]]:
    """Speakers and their texts, in a text where only some names are speakers; None for text without a name."""
    names = [match for match in _names(text) if is_speaker(clean_signs(match[1]))]
    ends = [*(match.start() for match in names), len(text)]
    for match, start, end in zip([None, *names], [0, *(match.end() for match in names)], ends, strict=True):
        if words := text[start:end].strip():
            yield clean_signs(match[1]) if match else None, words


def _names(script: str) -> list[re.Match[str]]:
    return [match for match in _NAME.finditer(script) if len(match[1].split()) <= _WORDS_IN_A_NAME]


def fold_speaker(name: str) -> str:
    """Fold a name for comparison with other speakers' names: ignores case, spaces and invisible characters."""
    return " ".join(clean_signs(name).casefold().split())


def check_cast(cast: Mapping[str, str], gap: float) -> None:
    """Raise TextError for settings that are invalid for any script and voices."""
    if not 0 <= gap <= MAX_GAP:
        raise TextError(f"turn_gap must be from 0 to {MAX_GAP:g} seconds", "turn_gap")
    if len(cast) > MAX_CAST:
        raise TextError(f"the cast has {len(cast)} names; at most {MAX_CAST} are allowed", "cast")
    for name, voice in cast.items():
        if not name.strip() or len(name) > MAX_NAME or not voice.strip():
            raise TextError(f"cast: {name[:MAX_NAME]!r} needs a name of 1 to {MAX_NAME} characters and a voice", "cast")

"""A script with a cast, as people write it: which turns it has, and who speaks each of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from studio.errors import InvalidRequest, UnknownVoice
from studio.library import Voice
from studio.text import PART_BYTES, read_script
from studio.voices import VoiceShelf

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


@dataclass(frozen=True, slots=True)
class Role:
    """A turn and the voice that speaks it."""

    turn: Turn
    voice: Voice | None
    """None is the random voice; of a turn without a speaker, the request's own one is meant instead."""

    @property
    def label(self) -> str:
        return self.voice.slug if self.voice else "random"


def read_turns(script: str) -> tuple[Turn, ...]:
    """The turns of a script: a line that begins with a name and a colon begins one, other lines go on with it.

    A name begins with a letter and has at most 40 characters and four words. Raises InvalidRequest, with the line.
    """
    names = [found for found in _NAME.finditer(script) if len(found[1].split()) <= _WORDS_IN_A_NAME]
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


def cast_turns(script: str, cast: Mapping[str, str], shelf: VoiceShelf) -> tuple[Role, ...]:
    """The turns with their voices: by the cast, else a voice of the speaker's own name. Blocking.

    Raises InvalidRequest for a speaker who has no voice, UnknownVoice for a voice of the cast that there is not.
    """
    voices = {_fold(name): voice for name, voice in cast.items()}
    found: dict[str, Voice | None] = {}
    roles = []
    for turn in read_turns(script):
        name = _fold(turn.speaker or "")
        if turn.speaker is not None and name not in found:
            found[name] = _voice_of(turn, voices.get(name), shelf)
        roles.append(Role(turn, found.get(name)))
    return tuple(roles)


def _voice_of(turn: Turn, wanted: str | None, shelf: VoiceShelf) -> Voice | None:
    if wanted is not None:
        return shelf.find(wanted)
    try:
        return shelf.find(turn.speaker)
    except UnknownVoice:
        raise InvalidRequest(
            f"line {turn.line}: {turn.speaker!r} has no voice; give it one in cast, or do not begin the line with "
            "a name and a colon",
            "cast",
            "unknown_speaker",
        ) from None


def _fold(name: str) -> str:
    return " ".join(name.casefold().split())

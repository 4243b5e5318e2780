"""Proposes voices for the characters of a cast: of their gender, different from the narrator's and neighbours'."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from studio.library.projects.project_records import NewCharacter

if TYPE_CHECKING:
    from studio.library.voices.voice import Voice


@dataclass(frozen=True, slots=True)
class Role:
    """A character with the number of its lines."""

    character: NewCharacter
    lines: int
    neighbours: Mapping[str, int]
    """Numbers of lines of other characters, by name, directly before or after."""


def roles_of(characters: Iterable[NewCharacter], speakers: Iterable[str]) -> list[Role]:
    """``speakers``: the speaker's name for each line, without the narrator's lines."""
    lines = list(speakers)
    counts = Counter(lines)
    neighbours: dict[str, Counter[str]] = defaultdict(Counter)
    for before, after in pairwise(lines):
        if before != after:
            neighbours[before][after] += 1
            neighbours[after][before] += 1
    roles = [Role(character, counts[character.name], dict(neighbours[character.name])) for character in characters]
    return sorted(roles, key=lambda role: -role.lines)


def proposed_voices(
    roles: Sequence[Role], voices: Sequence[Voice], narrator: str | None, only_missing: bool = False
) -> list[Role]:
    """The roles in the same order, each with the slug of a voice; None if the library has none that fits.

    A character of known gender gets a voice of that gender if there is one. Characters with consecutive lines get
    different voices if possible, and no voice is used twice while others are left. ``narrator``: the slug of the voice
    that reads the narration; no character gets it. ``only_missing``: characters with a voice keep it.
    """
    pool = [voice for voice in voices if voice.slug != narrator]
    chosen = {role.character.name: role.character.voice for role in roles if only_missing and role.character.voice}
    uses = Counter(chosen.values())
    proposals = []
    for role in roles:
        if role.character.is_narrator or role.character.name in chosen:
            proposals.append(role)
            continue
        gender = role.character.gender
        candidates = [voice for voice in pool if voice.gender in (gender, "")] if gender in ("female", "male") else pool
        neighbours = Counter[str]()
        for name, count in role.neighbours.items():
            if name in chosen:
                neighbours[chosen[name]] += count

        def cost(voice: Voice, neighbours: Counter[str] = neighbours, gender: str = gender) -> tuple[int, int, bool]:
            return neighbours[voice.slug], uses[voice.slug], voice.gender != gender

        best = min(candidates or pool, key=cost, default=None)
        if best is not None:
            uses[best.slug] += 1
            chosen[role.character.name] = best.slug
        proposals.append(replace(role, character=replace(role.character, voice=best.slug if best else None)))
    return proposals

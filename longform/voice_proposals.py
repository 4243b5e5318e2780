"""Proposes voices for the characters of a cast, and checks that a project may use the voices chosen for it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from manuscript.passages import NewCharacter
from studio.errors import NotAllowed, UnknownVoice
from studio.library.names import fold, split_revision

if TYPE_CHECKING:
    from longform.library.project_repository import ProjectLibrary
    from studio.library.voice import Voice
    from studio.voices.resolver import VoiceResolver


@dataclass(frozen=True, slots=True)
class ProjectVoices:
    """Checks the voices of projects. Calls block."""

    library: ProjectLibrary
    voices: VoiceResolver

    def check(self, project_id: str, caller: str | None, name: str | None) -> str | None:
        """Like `check_for_owner`, where the owner is that of a project; returns the voice as a project stores it: by
        its slug, if this is its name. Raises NotFound."""
        if not name:
            return name
        voice = self.check_for_owner(self.library.projects.get(project_id, caller).owner, caller, name)
        plain = split_revision(name.strip())[0]
        return voice.slug + name.strip()[len(plain) :] if voice and fold(plain) == fold(voice.name) else name

    def check_for_owner(self, owner: str, caller: str | None, *names: str | None) -> Voice | None:
        """Raises UnknownVoice for a voice that the caller cannot use, NotAllowed for one that the project's owner
        cannot use, for whom its parts are generated. Returns the last one."""
        voice = None
        for name in filter(None, dict.fromkeys(names)):
            self.voices.seen_by(caller).find(name)
            try:
                voice = self.voices.seen_by(owner).find(name)
            except UnknownVoice:
                raise NotAllowed(
                    "the owner of the project cannot use this voice: share the voice first, or choose another one",
                    "voice",
                ) from None
        return voice


@dataclass(frozen=True, slots=True)
class Role:
    """A character with the number of its lines."""

    character: NewCharacter
    lines: int
    neighbours: Mapping[str, int]
    """Numbers of lines of other characters, by name, directly before or after."""
    sample: str = ""  # a typical line; blank if none was looked for


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
            is_other = voice.gender != gender if gender else not voice.gender  # often a clone of somebody, not a role
            return neighbours[voice.slug], uses[voice.slug], is_other

        best = min(candidates or pool, key=cost, default=None)
        if best is not None:
            uses[best.slug] += 1
            chosen[role.character.name] = best.slug
        proposals.append(replace(role, character=replace(role.character, voice=best.slug if best else None)))
    return proposals

"""The nouns of long form: Project, Part and what a part is to be spoken with; frozen, with units."""

from __future__ import annotations

import hashlib
import json
import secrets
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from studio.library.pronunciations.entries import EntryIndex, Pronunciation
from studio.library.takes.take import Take

MAX_PART_TEXT = 4000
"""Characters of one part."""
MAX_PARTS = 20_000
"""Of one project."""
MAX_PAUSE = 30.0
"""Seconds of silence between two parts."""

MAX_AUTHOR = 200
"""Length, like MAX_NAME."""
MAX_NAME = 200
"""Of a character."""
MAX_ALIASES = 50
"""Other names of one character."""
MAX_CHARACTERS = 2000
"""Characters in the cast of one project."""
SURE = 0.7
"""Of the confidence in a speaker: lines below it are for a person to decide."""
Loudness = Literal["none", "podcast", "acx"]

PartState = Literal["new", "queued", "speaking", "done", "stale", "failed"]
"""new: never asked for; stale: words, voice or settings are others than those of its take."""
PART_STATES: tuple[PartState, ...] = ("new", "queued", "speaking", "done", "stale", "failed")

ProjectState = Literal["new", "running", "paused", "done", "incomplete"]
"""incomplete: nothing is under way, and some parts are new, stale or failed beside others that are done."""


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """How the parts are spoken and put together; None leaves it to the voice, or to the studio."""

    voice: str | None = None
    """For parts without one of their own."""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    speed: float = 1.0
    seed: int | None = None
    """Of each part's first take; None draws one for every take."""
    pause: float = 0.5
    """Seconds of silence after a part that says nothing else."""
    chapter_pause: float = 1.5
    """Seconds of silence before a chapter, in the place of that."""
    scene_pause: float = 1.5
    """Seconds of silence after the last part of a scene."""
    normalize: bool | None = None
    """Whether numbers and the like are read as words; None leaves it to the model."""
    trim: bool = False
    """Whether the silence around each part is cut away, so that the pauses are all the silence between them."""
    loudness: Loudness = "none"
    """The standard that its files are to meet."""
    author: str = ""
    language: str = ""
    """BCP 47, such as en or pt-BR; what its files say, blank: nothing."""
    pronunciations: tuple[Pronunciation, ...] = ()
    """Of its own dictionary, which is kept beside it."""

    def as_dict(self) -> dict[str, Any]:
        """The settings without the dictionary."""
        settings = asdict(self)
        del settings["pronunciations"]
        return settings

    def recipe(self, text: str, voice: str | None) -> str:
        """Tells a part's words, voice and settings from others; takes of one recipe differ in their seeds alone."""
        return Recipes(self).of(text, voice)


@dataclass(frozen=True, slots=True)
class Direction:
    """How one part is spoken; None leaves it to the project."""

    speed: float | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None

    def over(self, settings: ProjectSettings) -> ProjectSettings:
        """The settings with this part's own values in the place of the project's."""
        own = {name: value for name in DIRECTED if (value := getattr(self, name)) is not None}
        return replace(settings, **own) if own else settings


DIRECTED = ("speed", "temperature", "top_p", "top_k")
"""The fields of a direction: the columns of parts, and settings of projects, of these names."""
AS_WRITTEN = Direction()
SPOKEN_WITH = ("voice", "temperature", "top_p", "top_k", "speed", "normalize")
"""The settings that recipes are made of; others need no part to be spoken again."""


class Recipes:
    """The recipes of many parts with the same settings; each is worked out once."""

    def __init__(self, settings: ProjectSettings) -> None:
        self.settings = settings
        self._phrases = EntryIndex(settings.pronunciations)
        self._known: dict[tuple[str, str | None, Direction], str] = {}

    def of(self, text: str, voice: str | None, direction: Direction = AS_WRITTEN) -> str:
        """As `ProjectSettings.recipe`."""
        key = text, voice, direction
        if key not in self._known:
            self._known[key] = self._recipe(text, voice, direction.over(self.settings))
        return self._known[key]

    def _recipe(self, text: str, voice: str | None, of: ProjectSettings) -> str:
        figures: list[object] = [text, voice or of.voice, of.temperature, of.top_p, of.top_k, of.speed]
        figures += [] if of.normalize is None else [of.normalize]  # so that takes from before it still fit
        figures += [[each.phrase, each.said, each.match_case] for each in self._phrases.in_text(text)]
        return hashlib.sha256(json.dumps(figures).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class NewPart:
    """A part on its way into the library."""

    text: str
    chapter: str = ""
    """The title of the chapter that begins with it; blank: none does."""
    voice: str | None = None
    pause: float | None = None
    start: float | None = None
    end: float | None = None
    scene: bool = False
    character: str | None = None
    """The id of a character of the same project, like the evidence as `Part` has it."""
    confidence: float | None = None
    reason: str | None = None
    confirmed: bool = False
    speed: float | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A part as it stands."""

    id: str
    project_id: str
    position: int
    chapter: str
    text: str
    voice: str | None
    pause: float | None
    """Seconds of silence after it; None is the project's."""
    start: float | None
    """When it is to be heard, in seconds; None: after the one before."""
    end: float | None
    state: PartState
    attempts: int
    error: str | None
    """Why the last attempt that failed did; it stays when the next one goes well."""
    chosen: str | None
    takes: tuple[Take, ...] = ()
    """Newest first."""
    scene: bool = False
    """Whether a scene ends with it: the project's pause after it is then the one of scenes."""
    character: str | None = None
    """The id of the character who speaks it; None: the narrator."""
    confidence: float | None = None
    """How sure it is that this character speaks, from 0 to 1; None where nobody is quoted."""
    reason: str | None = None
    """What tells the speaker: one of the reasons of `studio.projects.casting.attribution`."""
    confirmed: bool = False
    """Whether a person has decided who speaks."""
    speed: float | None = None
    """Like the next three fields a part's own; None: the project's."""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None

    @property
    def direction(self) -> Direction:
        return Direction(self.speed, self.temperature, self.top_p, self.top_k)

    @property
    def take(self) -> Take | None:
        """The chosen one."""
        return next((take for take in self.takes if take.id == self.chosen), None)


@dataclass(frozen=True, slots=True)
class NewCharacter:
    """A character on its way into the library."""

    name: str
    aliases: tuple[str, ...] = ()
    """Other names by which the text calls this person."""
    gender: str = ""
    """female, male or neutral; blank: unknown."""
    voice: str | None = None
    """None: the project's."""
    is_narrator: bool = False
    """Whether this person tells the story, in the project's voice."""
    id: str = field(default_factory=lambda: f"char_{secrets.token_hex(12)}")


@dataclass(frozen=True, slots=True)
class Project:
    """A project with the sums of its parts."""

    id: str
    owner: str = field(repr=False)
    title: str
    kind: str
    settings: ProjectSettings
    paused: bool
    created: float
    changed: float
    parts: dict[PartState, int]
    """How many parts are in each state."""
    characters: int
    characters_left: int
    """Of the parts that are queued or being spoken."""
    seconds: float
    """Of the chosen takes together, without pauses."""
    pace: float | None
    """Seconds of work for a character, so far; None: nothing was spoken yet."""
    cover: str | None = None
    """Tells its picture from others; None: it has none."""
    skipped: tuple[str, ...] = ()
    """What of its document was left out, a sentence each."""

    @property
    def state(self) -> ProjectState:
        if self.parts["queued"] or self.parts["speaking"]:
            return "paused" if self.paused else "running"
        total = sum(self.parts.values())
        if self.parts["done"] == total:
            return "done"
        return "new" if self.parts["new"] == total else "incomplete"


@dataclass(frozen=True, slots=True)
class ClaimedPart:
    """A part that the worker has claimed."""

    project_id: str
    part_id: str
    owner: str
    text: str
    voice: str | None
    settings: ProjectSettings
    """The project's, with the part's direction."""
    attempts: int
    seed: int | None
    """None: the voice's, or one that is drawn."""
    lease: str = ""
    """The token of this claim; the part is the worker's as long as its row has it."""

    @property
    def recipe(self) -> str:
        return self.settings.recipe(self.text, self.voice)

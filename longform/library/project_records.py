"""The records of long form: projects, parts and their settings; frozen, with units."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

from speechtext.dictionary import fold_phrase
from studio.library.checks import Right
from studio.library.records import Pronunciation
from studio.library.take import Take

MAX_CREDITS = 1000
"""Characters of a template of credits."""
Loudness = Literal["none", "podcast", "acx"]

_PREFIX_LENGTH = 3
"""Number of a phrase's characters in the index."""
_FEW = 16
"""Maximum number of entries for which searching for each one is faster."""

PartState = Literal["new", "queued", "speaking", "done", "stale", "failed"]
"""new: never queued; stale: text, voice or settings have changed since its take."""
PART_STATES: tuple[PartState, ...] = ("new", "queued", "speaking", "done", "stale", "failed")

ProjectState = Literal["new", "running", "paused", "done", "incomplete"]
"""incomplete: nothing is queued, and some parts are new, stale or failed while others are done."""


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """Settings for generating and assembling the parts; None leaves a value to the voice or the studio."""

    voice: str | None = None
    """The voice of all parts that have none of their own."""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    speed: float = 1.0
    seed: int | None = None
    """The seed of each part's first take; None picks a new seed for every take."""
    pause: float = 0.5
    """Seconds of silence after a part without its own pause."""
    chapter_pause: float = 1.5
    """Seconds of silence before a chapter, instead of ``pause``."""
    scene_pause: float = 1.5
    """Seconds of silence after the last part of a scene, instead of ``pause``."""
    normalize: bool | None = None
    """Whether numbers etc. are converted to words; None leaves it to the model."""
    trim: bool = False
    """Whether to trim the silence around each part, so that pauses have exactly their length."""
    cue_speed: float = 1.0
    """How many times faster, at most, a part with its own start is played so that the next one begins on time."""
    loudness: Loudness = "none"
    """The loudness standard of its files."""
    author: str = ""
    language: str = ""
    """BCP 47, such as en or pt-BR, for the files' tags; blank: no tag."""
    narrator: str = ""
    year: int | None = None
    bitrate: int | None = None
    """kbit/s of MP3 files; None leaves it to the loudness standard."""
    read_titles: bool = True
    """Whether the audio includes parts that consist only of a chapter's title."""
    opening_credits: str = ""
    """Template of the opening credits; blank: none. See `longform.credits`."""
    closing_credits: str = ""
    opening_part: str | None = None
    """The id of the part with the opening credits; None without one."""
    closing_part: str | None = None
    columns: dict[str, str] = field(default_factory=dict)
    """The roles of the columns of the table from which the project was made, by their names."""
    pronunciations: tuple[Pronunciation, ...] = ()
    """The entries of its own dictionary, which is stored separately."""

    def as_dict(self) -> dict[str, Any]:
        """The settings without the dictionary."""
        settings = asdict(self)
        del settings["pronunciations"]
        return settings

    def onto(self, current: ProjectSettings, before: ProjectSettings) -> ProjectSettings:
        """The current settings with what is different here from those ``before``: others may have changed the rest."""
        own, old = ({field.name: getattr(some, field.name) for field in fields(some)} for some in (self, before))
        return replace(current, **{name: value for name, value in own.items() if value != old[name]})

    def recipe(self, text: str, voice: str | None) -> str:
        """Identifies a part's text, voice and settings; takes with the same recipe differ only in their seeds."""
        return Recipes(self).of(text, voice)


@dataclass(frozen=True, slots=True)
class Direction:
    """Settings for speaking one part; None leaves a value to the project."""

    speed: float | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None

    def over(self, settings: ProjectSettings) -> ProjectSettings:
        """The settings, with this part's own values in place of the project's."""
        overrides = {name: value for name in DIRECTED if (value := getattr(self, name)) is not None}
        return replace(settings, **overrides) if overrides else settings


DIRECTED = ("speed", "temperature", "top_p", "top_k")
"""The fields of a direction: the columns of parts, and settings of projects, of these names."""
AS_WRITTEN = Direction()
SPOKEN_WITH = ("voice", "temperature", "top_p", "top_k", "speed", "normalize")
"""The settings that affect recipes; changing others does not make parts stale."""
RECIPE = (*SPOKEN_WITH, "pronunciations")


class EntryIndex:
    """Entries to search in many texts; the time depends on the text, not on the number of entries."""

    def __init__(self, entries: Iterable[Pronunciation]) -> None:
        self._entries = tuple(entries)
        self._found = dict[str, list[Pronunciation]]()
        self._unindexed: list[tuple[int, str]] = []
        """Positions and folded phrases of entries outside the index: too short, or too few to be worth it."""
        self._by_prefix: dict[str, list[tuple[int, str]]] = {}
        for position, entry in enumerate(self._entries):
            folded = fold_phrase(entry.phrase)
            prefix = folded[:_PREFIX_LENGTH]
            is_indexed = len(prefix) == _PREFIX_LENGTH and len(self._entries) > _FEW
            group = self._by_prefix.setdefault(prefix, []) if is_indexed else self._unindexed
            group.append((position, folded))

    def in_text(self, text: str) -> list[Pronunciation]:
        """The entries whose words may be in a text, in their order; looked for once in each text."""
        if text not in self._found:
            self._found[text] = self._search(text) if self._entries else []
        return self._found[text]

    def _search(self, text: str) -> list[Pronunciation]:
        folded = fold_phrase(text)
        candidates = list(self._unindexed)
        if self._by_prefix:
            prefixes = {folded[start : start + _PREFIX_LENGTH] for start in range(len(folded))}
            candidates += [entry for prefix in prefixes & self._by_prefix.keys() for entry in self._by_prefix[prefix]]
        return [
            self._entries[position]
            for position in sorted(position for position, phrase in candidates if phrase in folded)
        ]


class Recipes:
    """The recipes of many parts with the same settings, each computed once."""

    def __init__(self, settings: ProjectSettings, former: Recipes | None = None) -> None:
        """``former``: those with the settings before, of which the entries found in texts are still right if the
        dictionary is the same."""
        self.settings = settings
        is_same = former is not None and former.settings.pronunciations == settings.pronunciations
        self._phrases: EntryIndex = former._phrases if former and is_same else EntryIndex(settings.pronunciations)
        self._recipes: dict[tuple[str, str | None, Direction], str] = {}
        self.outcomes: dict[tuple[object, ...], tuple[Any, Any]] = {}
        """The outcomes that were worked out with them, after what each follows from: see `outcome_of`."""

    def of(self, text: str, voice: str | None, direction: Direction = AS_WRITTEN) -> str:
        """`ProjectSettings.recipe` of these settings, computed once for each text, voice and direction."""
        key = text, voice, direction
        if key not in self._recipes:
            self._recipes[key] = self._recipe(text, voice, direction.over(self.settings))
        return self._recipes[key]

    def _recipe(self, text: str, voice: str | None, settings: ProjectSettings) -> str:
        values: list[object] = [
            text,
            voice or settings.voice,
            settings.temperature,
            settings.top_p,
            settings.top_k,
            settings.speed,
        ]
        values += [] if settings.normalize is None else [settings.normalize]  # so that older takes still match
        values += [[entry.phrase, entry.said, entry.match_case] for entry in self._phrases.in_text(text)]
        return hashlib.sha256(json.dumps(values).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class NewPart:
    """A part to be added to a project."""

    text: str
    chapter: str = ""
    """The title of the chapter that begins with it; blank if none does."""
    voice: str | None = None
    """None: the character's, else the project's."""
    pause: float | None = None
    """Seconds of silence after it; None for the project's pause."""
    start: float | None = None
    """Its start in seconds; None: after the previous part."""
    end: float | None = None
    scene: bool = False
    """Whether a scene ends with it; the pause after it is then the project's scene pause."""
    character: str | None = None
    """The id of the character of the same project who speaks it; None: the narrator."""
    confidence: float | None = None
    """The confidence that this character speaks, from 0 to 1; None without a quotation."""
    reason: str | None = None
    """The reason for the choice of speaker: one of the reasons of `manuscript.attribution`."""
    confirmed: bool = False
    """Whether a person has decided who speaks."""
    speed: float | None = None
    """Like the next three fields, the part's own value; None: the project's."""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    continues: bool | None = None
    """Whether it continues the paragraph of the part before it; None: unknown."""
    name: str = ""
    """The id of its row in a table, which also names its file; blank if it has none."""
    cells: str = ""
    """Its row as last read from a table: a JSON object of cells by column; blank: it is not from a table."""
    credits: str = ""
    """The text of the credits that it was last given, with which it begins unless somebody has changed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(NewPart):
    """A stored part."""

    id: str
    project_id: str
    position: int
    """Counted from 0."""
    state: PartState
    attempts: int
    error: str | None
    """The reason of its last failure; None once it has got a take after that."""
    chosen: str | None
    sent: str | None = None
    """The take that was in the last zip of takes; None: none was."""
    takes: tuple[Take, ...] = ()
    """Newest first."""

    @property
    def direction(self) -> Direction:
        return Direction(self.speed, self.temperature, self.top_p, self.top_k)

    @property
    def take(self) -> Take | None:
        """The chosen take."""
        return next((take for take in self.takes if take.id == self.chosen), None)

    @property
    def is_title(self) -> bool:
        """Whether it is only its chapter's title; punctuation at the end and line breaks may differ."""
        text, title = ("".join(filter(str.isalnum, field)) for field in (self.text, self.chapter))
        return text == title != ""


@dataclass(frozen=True, slots=True)
class PartChanges:
    """Changes to a part; None leaves a field as it is."""

    text: str | None = None
    text_before: str | None = None
    """The text on which the changes are based; a different text is not overwritten. None: any."""
    voice: str | None = None
    """Blank for the project's voice."""
    pause: float | None = None
    """Below 0 for the project's pause."""
    take: str | None = None
    """The id of the take to choose. Like the text, for one part only."""
    take_before: str | None = None
    """The chosen take on which the changes are based; another choice is not overwritten. None: any."""
    chapter: str | None = None
    """A new title of the chapter that begins with the part. Its heading is changed too, unless ``text`` is given.
    For one part only."""
    chapter_before: str | None = None
    """The chapter's title on which the change is based; another one is not overwritten. None: any."""
    reword: Callable[[str], str] | None = None
    """Returns the new text of a part, from its current text."""
    character: str | None = None
    """The id of the character who speaks; blank: the narrator. The part gets that voice, unless ``voice`` is given, and
    is confirmed, unless ``confirmed`` says otherwise."""
    confirmed: bool | None = None
    scene: bool | None = None
    speed: float | None = None
    """Below 0 for the project's value; the same for the next three."""
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    credits: str | None = None
    """The text of the credits in ``text``. For one part only."""


@dataclass(frozen=True, slots=True)
class ReplacedValues:
    """What a change replaced in parts, to undo it: fields by their columns."""

    ids: tuple[str, ...]
    before: dict[str, Any]
    after: dict[str, Any]
    """Parts with other values have been changed since."""


@dataclass(frozen=True, slots=True)
class ReplacedVoice:
    """The voice of a character that a change replaced, and whether it was the narrator, to undo it."""

    before: str | None
    after: str | None
    own: Sequence[str] = ()
    """The ids of lines that had the new voice already, as their own, and keep it when the change is undone."""
    narrator: bool | None = None
    """Whether it spoke as the narrator before; None: the change left that as it was."""


def replaced_values(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> list[ReplacedValues]:
    """The differences between the rows of parts before and after a change; parts with the same ones are together."""
    new_rows, groups = {row["id"]: row for row in after}, dict[tuple[Any, ...], list[str]]()
    for old in before:
        new = new_rows[old["id"]]
        if changes := [(name, value, new[name]) for name, value in old.items() if new[name] != value]:
            groups.setdefault(tuple(changes), []).append(old["id"])
    return [
        ReplacedValues(tuple(ids), {name: old for name, old, _ in changes}, {name: new for name, _, new in changes})
        for changes, ids in groups.items()
    ]


@dataclass(frozen=True, slots=True)
class PartRange:
    """All parts from one to another, by their ids."""

    first: str
    last: str


@dataclass(frozen=True, slots=True)
class Project:
    """A project with the totals of its parts."""

    id: str
    owner: str = field(repr=False)
    title: str
    kind: str
    settings: ProjectSettings
    paused: bool
    created: float
    changed: float
    parts: dict[PartState, int]
    """Number of parts in each state."""
    characters: int
    characters_left: int
    """Characters of the parts that are queued or being generated."""
    characters_missing: int
    """Characters of the parts that are new, stale or failed."""
    seconds: float
    """Seconds of all chosen takes, without pauses."""
    pace: float | None
    """Average seconds of work per character; None before the first take."""
    cover: str | None = None
    """Identifies its cover; None without one."""
    skipped: tuple[str, ...] = ()
    """The omissions from its document, one sentence each."""
    sharing: str = "private"
    """One of SHARINGS."""
    right: Right = "own"
    """The right of the caller for whom it was read."""

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

    part: Part
    owner: str
    settings: ProjectSettings
    """The project's settings, with the part's direction."""
    seed: int | None
    """None: the voice's seed, or a random one."""
    lease: str = ""
    """The token of this claim; the worker owns the part as long as its row has it."""

    @property
    def recipe(self) -> str:
        return self.settings.recipe(self.part.text, self.part.voice)

"""Proof: the findings of a check in the audio of a project's parts, and the figures of a book; frozen, with units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from studio.library.take import Take

Kind = Literal[
    "left_out", "added", "changed", "repeated", "cut_end", "silence",
    "no_speech", "too_long", "too_short", "level", "pace", "voice", "late", "note",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)
"""too_long, too_short: for the text; level, pace, voice: they differ from what is usual for the voice; late: a subtitle
begins after its time; note: written by a listener."""
MAX_NOTE = 500  # characters
OPEN_NOTE = "findings.kind = 'note' and not findings.accepted"
"""A condition for SQL: a listener's note that was not accepted."""


@dataclass(frozen=True, slots=True)
class ProofFinding:
    """A doubtful spot in a take, from second to second of its audio."""

    kind: Kind
    weight: int  # how likely a listener is to be disturbed, from 1 to 100
    start: float
    end: float
    first: int = 0
    """The range of the take's text concerned; ``last`` is exclusive, and the range may be empty."""
    last: int = 0
    heard: str = ""
    """The words heard in their place; the words of a note; the difference in a level, a pace or a time; the voice of
    the project that a take sounds like instead of its own."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of checking a take."""

    version: int  # version of the check: results of another version are outdated
    recogniser: str  # blank: only its sound was checked, and its words were not compared
    words: int
    wrong: int  # Words that were left out, changed, added or repeated; 0 if they were not compared
    speech_s: float  # seconds without silence
    level: float | None
    """dB of full scale; None without speech, where tags ask for a delivery, and for audio too long or short."""
    pace: float | None
    """Letters per second of speech; None in the same cases, and for a text that is too short."""
    findings: tuple[ProofFinding, ...] = ()
    print: bytes = b""
    """The voiceprints of its halves; blank where a voice cannot be compared. See
    `longform.library.usual_sound`."""

    @property
    def weight(self) -> int:
        """Total weight of all findings, by which takes are compared."""
        return sum(finding.weight for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Spot:
    """A finding in the chosen take of a part, or a listener's note on any of its takes."""

    id: str
    finding: ProofFinding
    acceptance: int  # identifies the decision that it is fine; 0: nobody has accepted it
    part_id: str
    position: int
    take_id: str
    take_number: int  # its number among the part's takes, the oldest of which is 1
    is_chosen: bool  # whether the part's chosen take is this one
    text: str  # the text of the take
    state: str  # state of the part; if that is stale, the take has an earlier text

    @property
    def accepted(self) -> bool:
        return self.acceptance > 0


@dataclass(frozen=True, slots=True)
class ToCheck:
    """The chosen take of a part that has not been checked."""

    part_id: str
    place: int  # a number by which the parts of a project are sorted; it may be less than 0
    position: int  # counted from 0
    take: Take


@dataclass(frozen=True, slots=True)
class ProofFigures:
    """Figures of the parts with audio of their current text."""

    parts: int
    checked: int
    compared: int
    """Checked parts whose words were compared; of the others, only the sound was checked."""
    words: int  # number of words in these parts
    wrong: int
    seconds: float  # total seconds of the checked audio
    changed: int
    """Parts that were checked and have since got another text, voice or settings: without audio of these, not counted
    above."""
    open: dict[Kind, int]  # findings that were not accepted, by kind

    @property
    def per_thousand(self) -> float | None:
        """Wrong words per 1,000; None if no words were compared."""
        return 1000 * self.wrong / self.words if self.words else None

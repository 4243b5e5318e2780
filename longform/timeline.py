"""The timeline of a project: its takes one after the other with pauses, or at the times of subtitles.

Two people who speak at the same time in subtitles do so here. A take that would delay the next subtitle can be played
faster, up to a limit.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil

from longform.library.project_records import Part, ProjectSettings
from studio.errors import DamagedAudio
from studio.library.take import Take

MOST_AT_ONCE = 8
"""Takes that sound at the same time: mixing reads all of their files, and nobody understands more voices."""

MOST_NAMED = 20  # damaged parts that an error names


@dataclass(frozen=True, slots=True)
class Placed:
    """A part's take on the timeline. All numbers are samples at the timeline's rate, which may not be the take's."""

    part: Part
    take: Take
    start: int
    length: int  # samples of the whole take, at its speed on the timeline
    skipped: int = 0  # samples trimmed from the beginning of the take
    dropped: int = 0  # samples trimmed from its end
    speed: float = 1.0
    """How many times faster it is played, so that the next subtitle begins on time."""

    @property
    def end(self) -> int:
        return self.start + self.length - self.skipped - self.dropped

    def faster(self, speed: float) -> Placed:
        """The same take, played ``speed`` times as fast."""
        length, skipped, dropped = (round(samples / speed) for samples in (self.length, self.skipped, self.dropped))
        return Placed(self.part, self.take, self.start, length, skipped, dropped, speed)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The placed takes, in the order in which they begin. Those of two people who speak at once overlap."""

    placed: tuple[Placed, ...]
    sample_rate: int
    missing: int  # number of parts without a take of their current text; they are left out
    tail: int = 0  # samples of silence after the last part

    @property
    def samples(self) -> int:
        return max(placed.end for placed in self.placed) + self.tail if self.placed else 0

    @property
    def fingerprint(self) -> str:
        """A hash of the audio."""
        lines = [str(self.sample_rate)]
        for placed in self.placed:
            speed = "" if placed.speed == 1 else f" {placed.speed}"
            lines.append(f"{placed.take.audio} {placed.start} {placed.skipped} {placed.dropped}{speed}")
        return hashlib.sha256("\n".join([*lines, str(self.tail)]).encode()).hexdigest()[:32]

    def seconds(self, samples: int) -> float:
        return samples / self.sample_rate

    def delay(self, placed: Placed) -> float:
        """Seconds by which a take begins after its part's own start."""
        return 0.0 if placed.part.start is None else max(0.0, self.seconds(placed.start) - placed.part.start)

    @property
    def chapters(self) -> list[tuple[str, int, int]]:
        """Title, first sample and end of each chapter. Parts before the first heading belong to its chapter."""
        starts = [(placed.part.chapter, placed.start) for placed in self.placed if placed.part.chapter]
        ends = [start for _, start in [*starts, ("", self.samples)][1:]]
        return [
            (title, start if number else 0, end)
            for number, ((title, start), end) in enumerate(zip(starts, ends, strict=True))
        ]

    def by_chapter(self, head: float = 0.0, tail: float = 0.0) -> list[tuple[str, Timeline]]:
        """One timeline per chapter, with the chapter's title; a project without chapters is one without a title.

        ``head`` and ``tail`` are seconds of silence before and after each.
        """
        starts = [number for number, placed in enumerate(self.placed) if placed.part.chapter][1:]
        spans = zip([0, *starts], [*starts, len(self.placed)], strict=True)

        def title(placed: Sequence[Placed]) -> str:
            return next((take.part.chapter for take in placed if take.part.chapter), "")

        chapters = [self.placed[start:end] for start, end in spans if start < end]
        return [(title(placed), self.cut_out(placed, head, tail)) for placed in chapters]

    def cut_out(self, placed: Sequence[Placed], head: float = 0.0, tail: float = 0.0) -> Timeline:
        """These consecutive takes, with ``head`` and ``tail`` seconds of silence before and after them."""
        offset = placed[0].start - round(head * self.sample_rate)
        shifted = tuple(replace(take, start=take.start - offset) for take in placed)
        return Timeline(shifted, self.sample_rate, 0, round(tail * self.sample_rate))

    def only(self, part_ids: Collection[str]) -> Timeline:
        """These parts at their times, with silence in place of the others: as many samples as the whole."""
        placed = tuple(take for take in self.placed if take.part.id in part_ids)
        return replace(self, placed=placed, tail=self.samples - max(take.end for take in placed))


Edges = Callable[[Take], tuple[int, int]]
"""Samples of silence at the beginning and the end of a take."""


def lay_out(parts: Sequence[Part], settings: ProjectSettings, edges: Edges | None = None) -> Timeline:
    """The timeline of all parts that are done.

    Each take starts after the previous one and its pause, or at the part's own start if that is later; of two people
    who speak at once, at the same time. ``edges`` trims the silence around each take, or without ``settings.trim``
    around those that may be played faster. The rate is that of most takes: the others, made with another model, are
    resampled.
    """
    parts = parts if settings.read_titles else list(_without_titles(parts))
    takes = [(part, part.take) for part in parts if part.state == "done" and part.take is not None]
    counts = Counter(take.sample_rate for _, take in takes)
    rate = max(counts, key=lambda rate: (counts[rate], rate), default=44_100)
    placed: list[Placed] = []
    sounding: list[Placed] = []  # the last take, and earlier ones that still sound when it begins
    for number, (part, take) in enumerate(takes):
        free = [_free(before, part, settings, rate) for before in sounding]
        ends = sorted(before.end for before in sounding)
        free += ends[len(ends) - MOST_AT_ONCE :][:1] if len(ends) >= MOST_AT_ONCE else []
        start = max([round((part.start or 0.0) * rate), *free])
        skipped = dropped = 0
        if edges is not None and (settings.trim or part.start is not None):
            skipped, dropped = (round(edge * rate / take.sample_rate) for edge in edges(take))
        length = ceil(take.samples * rate / take.sample_rate)
        new = Placed(part, take, start, length, skipped, dropped)
        following = (other for other, _ in islice(takes, number + 1, number + 1 + MOST_AT_ONCE))
        new = _on_time(new, next((other for other in following if not _at_once(part, other)), None), settings, rate)
        sounding = [before for before in sounding if before.end > start] + [new]
        placed.append(new)
    return Timeline(tuple(placed), rate, len(parts) - len(takes))


def damaged(parts: Sequence[Part]) -> DamagedAudio:
    """The error for these parts, in their order."""
    numbers = [str(part.position + 1) for part in parts[:MOST_NAMED]]
    if len(parts) > MOST_NAMED:
        numbers.append(f"{len(parts) - MOST_NAMED} more")
    named = " and ".join(filter(None, [", ".join(numbers[:-1]), numbers[-1]]))
    which, them = ("parts", "them") if len(parts) > 1 else ("part", "it")
    remedy = f"generate {them} again, or restore a backup"
    return DamagedAudio(f"the audio of {which} {named} is missing from the library or damaged: {remedy}")


def _at_once(before: Part, part: Part) -> bool:
    """Whether two people speak these parts, and the second begins before the first has ended."""
    if before.end is None or part.start is None or part.start >= before.end:
        return False
    return (before.character, before.voice) != (part.character, part.voice)


def _free(before: Placed, part: Part, settings: ProjectSettings, rate: int) -> int:
    """The sample from which a part may begin beside an earlier take."""
    if _at_once(before.part, part):
        return before.start  # in their order
    return before.end + round(_pause(before.part, part, settings) * rate)


def _on_time(placed: Placed, following: Part | None, settings: ProjectSettings, rate: int) -> Placed:
    """The take, faster if that lets the following part begin at its own start, or nearer to it."""
    if settings.cue_speed == 1 or placed.part.start is None or following is None or following.start is None:
        return placed
    samples, available = placed.end - placed.start, round(following.start * rate) - placed.start
    if samples <= available:
        return placed
    # Rounded up: a thousandth is not heard, and the same audio has the same fingerprint.
    needed = ceil(1000 * samples / available) / 1000 if available > 0 else settings.cue_speed
    return placed.faster(min(needed, settings.cue_speed))


def _without_titles(parts: Sequence[Part]) -> Iterator[Part]:
    """The parts without those that are only titles; the chapter then begins with the part after the title."""
    title = ""
    for part in parts:
        if part.is_title:
            title = part.chapter
        else:
            yield replace(part, chapter=title) if title and not part.chapter else part
            title = ""


def _pause(before: Part, part: Part, settings: ProjectSettings) -> float:
    if part.start is not None:
        return 0.0  # it has its own start, and is already late if the previous take has only just ended
    if before.pause is not None:
        return before.pause
    if part.chapter:
        return settings.chapter_pause
    return settings.scene_pause if before.scene else settings.pause

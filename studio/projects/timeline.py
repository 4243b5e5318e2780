"""The timeline of a project: its takes one after the other with pauses, or at the times of subtitles."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from studio.errors import InvalidRequest
from studio.library.projects.project_records import Part, ProjectSettings
from studio.library.takes.take import Take


@dataclass(frozen=True, slots=True)
class Placed:
    """A part's take on the timeline. Positions are samples at the timeline's rate."""

    part: Part
    take: Take
    start: int
    skipped: int = 0
    """Samples trimmed from the beginning of the take."""
    dropped: int = 0
    """Samples trimmed from its end."""

    @property
    def end(self) -> int:
        return self.start + self.take.samples - self.skipped - self.dropped


@dataclass(frozen=True, slots=True)
class Timeline:
    """The placed takes, in order and without overlaps."""

    placed: tuple[Placed, ...]
    sample_rate: int
    missing: int
    """Number of parts without a take of their current text; they are left out."""
    tail: int = 0
    """Samples of silence after the last part."""

    @property
    def samples(self) -> int:
        return self.placed[-1].end + self.tail if self.placed else 0

    @property
    def fingerprint(self) -> str:
        """A hash of the audio."""
        lines = [f"{placed.take.audio} {placed.start} {placed.skipped} {placed.dropped}" for placed in self.placed]
        return hashlib.sha256("\n".join([*lines, str(self.tail)]).encode()).hexdigest()[:32]

    def seconds(self, samples: int) -> float:
        return samples / self.sample_rate

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
        return replace(self, placed=placed, tail=self.samples - placed[-1].end)


Edges = Callable[[Take], tuple[int, int]]
"""Samples of silence at the beginning and the end of a take."""


def lay_out(parts: Sequence[Part], settings: ProjectSettings, edges: Edges | None = None) -> Timeline:
    """The timeline of all parts that are done.

    Each take starts after the previous one and its pause, or at the part's own start if that is later. ``edges`` trims
    the silence around each take. Raises InvalidRequest for mixed sample rates.
    """
    parts = parts if settings.read_titles else list(_without_titles(parts))
    takes = [(part, part.take) for part in parts if part.state == "done" and part.take is not None]
    rate = takes[0][1].sample_rate if takes else 44_100
    placed: list[Placed] = []
    for part, take in takes:
        if take.sample_rate != rate:
            raise InvalidRequest(
                f"part {part.position + 1} has {take.sample_rate} Hz and others have {rate} Hz: regenerate it",
                "parts",
            )
        at = placed[-1].end + round(_pause(placed[-1].part, part, settings) * rate) if placed else 0
        skipped, dropped = edges(take) if edges else (0, 0)
        placed.append(Placed(part, take, max(at, round((part.start or 0.0) * rate)), skipped, dropped))
    return Timeline(tuple(placed), rate, len(parts) - len(takes))


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

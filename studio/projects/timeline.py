"""When each part of a project is heard: take after take with the pauses between, or at the times of subtitles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from studio.errors import InvalidRequest
from studio.library.projects.records import Part, PartTake, ProjectSettings


@dataclass(frozen=True, slots=True)
class Placed:
    """A part's take at its place, in samples of the timeline's rate."""

    part: Part
    take: PartTake
    start: int
    """The first sample."""

    @property
    def end(self) -> int:
        return self.start + self.take.samples


@dataclass(frozen=True, slots=True)
class Timeline:
    """What is to be heard, in order and without overlaps."""

    placed: tuple[Placed, ...]
    sample_rate: int
    missing: int
    """Parts that are left out: they have no take of their present words."""

    @property
    def samples(self) -> int:
        return self.placed[-1].end if self.placed else 0

    def seconds(self, samples: int) -> float:
        return samples / self.sample_rate

    @property
    def chapters(self) -> list[tuple[str, int, int]]:
        """Title, first sample and end of each chapter; what comes before the first one belongs to it."""
        starts = [(each.part.chapter, each.start) for each in self.placed if each.part.chapter]
        ends = [start for _, start in [*starts, ("", self.samples)][1:]]
        return [
            (title, start if number else 0, end)
            for number, ((title, start), end) in enumerate(zip(starts, ends, strict=True))
        ]


def lay_out(parts: Sequence[Part], settings: ProjectSettings) -> Timeline:
    """Every part that is done, at its place: as soon as the one before and its pause are over, or at its own start
    where it has one that is later. Nothing is after the last take. Raises InvalidRequest for mixed sample rates."""
    done = [(part, part.take) for part in parts if part.state == "done" and part.take is not None]
    takes = [(part, take) for part, take in done if take is not None]
    rate = takes[0][1].sample_rate if takes else 44_100
    placed: list[Placed] = []
    for part, take in takes:
        if take.sample_rate != rate:
            raise InvalidRequest(
                f"part {part.position + 1} was spoken at {take.sample_rate} Hz and others at {rate}: speak it again",
                "parts",
            )
        at = placed[-1].end + round(_pause(placed[-1].part, part, settings) * rate) if placed else 0
        placed.append(Placed(part, take, max(at, round((part.start or 0.0) * rate))))
    return Timeline(tuple(placed), rate, len(parts) - len(takes))


def _pause(before: Part, part: Part, settings: ProjectSettings) -> float:
    if part.start is not None:
        return 0.0  # it has a time of its own, and is late already if the one before has only just ended
    if before.pause is not None:
        return before.pause
    return settings.chapter_pause if part.chapter else settings.pause

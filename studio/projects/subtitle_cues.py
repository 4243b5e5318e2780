"""What is heard when, sentence by sentence: the cues of subtitles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from studio.library.takes.take import Timed
from studio.projects.timeline import Timeline
from studio.speech.timing.words import sentences

Cue = tuple[float, float, str]
"""From when to when, in seconds, and what is said."""


def cues(timeline: Timeline, words: Mapping[str, Sequence[Timed]]) -> Iterator[Cue]:
    """A sentence each; a whole part where it came as a subtitle, and where its words' times are not known.

    ``words``: by the ids of takes.
    """
    for placed in timeline.placed:
        start, end = timeline.seconds(placed.start), timeline.seconds(placed.end)
        known = words.get(placed.take.id) if placed.part.start is None else None
        spoken = sentences(placed.take.text, known) if known else []
        if not spoken:
            yield start, end, placed.part.text
        for each in spoken:
            yield _within(start, end, start - timeline.seconds(placed.skipped), each)


def _within(start: float, end: float, offset: float, each: Timed) -> Cue:
    """At its place, and not in the silence that is left out around a take."""
    return min(max(start, offset + each.start), end), min(max(start, offset + each.end), end), each.text

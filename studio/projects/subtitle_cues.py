"""The cues of a project's subtitles, one per sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from studio.library.takes.take import Timed
from studio.projects.timeline import Timeline
from studio.speech.timing.words import sentences

Cue = tuple[float, float, str]
"""Start and end in seconds, and the text."""


def cues(timeline: Timeline, words: Mapping[str, Sequence[Timed]]) -> Iterator[Cue]:
    """One cue per sentence; one for the whole part if it came from a subtitle or has no word times.

    ``words``: timed words by take id.
    """
    for placed in timeline.placed:
        start, end = timeline.seconds(placed.start), timeline.seconds(placed.end)
        timed = words.get(placed.take.id) if placed.part.start is None else None
        cues_of_part = sentences(placed.take.text, timed) if timed else []
        if not cues_of_part:
            yield start, end, placed.part.text
        offset = start - timeline.seconds(placed.skipped)
        for cue in cues_of_part:  # never in the silence that is trimmed around the take
            yield min(max(start, offset + cue.start), end), min(max(start, offset + cue.end), end), cue.text

"""The cues of a project's subtitles, one per sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from studio.library.takes.take import Timed
from studio.projects.documents.subtitles import WrittenCue
from studio.projects.timeline import Placed, Timeline
from studio.speech.timing.words import sentences
from studio.work.job import check_job

WordTimes = Callable[[Sequence[str]], Mapping[str, Sequence[Timed]]]
"""Finds the timed words of takes by their ids."""
AT_ONCE = 100
"""Takes whose words are read at a time: a book has a million words."""


def cues(timeline: Timeline, word_times: WordTimes, characters: Mapping[str, str]) -> Iterator[WrittenCue]:
    """One cue per sentence; one for the whole part if it came from a subtitle or has no word times.

    ``characters``: names by id, of a project with a cast.
    """
    for placed, words in with_words(timeline, word_times):
        start, end = timeline.seconds(placed.start), timeline.seconds(placed.end)
        speaker = characters.get(placed.part.character or "", "")
        cues_of_part = sentences(placed.take.text, words) if placed.part.start is None else []
        if not cues_of_part:
            yield start, end, placed.part.text, speaker
        offset = start - timeline.seconds(placed.skipped)
        for cue in cues_of_part:  # never in the silence that is trimmed around the take
            begin, finish = min(max(start, offset + cue.start), end), min(max(start, offset + cue.end), end)
            yield begin, finish, cue.text, speaker


def with_words(timeline: Timeline, word_times: WordTimes) -> Iterator[tuple[Placed, Sequence[Timed]]]:
    """The placed takes with their words, which are empty if they have no times."""
    for at in range(0, len(timeline.placed), AT_ONCE):
        check_job()
        placed = timeline.placed[at : at + AT_ONCE]
        words = word_times([entry.take.id for entry in placed])
        yield from ((entry, words.get(entry.take.id, ())) for entry in placed)

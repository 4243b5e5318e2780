"""Cuts the sample that shops offer of a book: its beginning or some of its parts, up to the end of a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, takewhile

from audio.splice import FADE, quietest
from longform.render import samples_at
from longform.timed_text import WordTimes
from longform.timeline import Placed, Timeline
from speechtext.word_times import Timed, sentences
from studio.errors import InvalidRequest, NotFound
from studio.library.audio_files import AudioFiles

MIN_SECONDS, MAX_SECONDS = 10, 300  # limits for the length in seconds; ACX requires 1 to 5 minutes
_ENDS = tuple(".!?…。！？")
_CLOSING = "\"'”’»«›‹“‘)]）」』"


def sample_of(
    timeline: Timeline,
    files: AudioFiles,
    word_times: WordTimes,
    limit: float,
    first: str | None,
    last: str | None,
    left_out: Sequence[str | None] = (),
    head: float = 0.0,
    tail: float = 0.0,
) -> Timeline:
    """A timeline of at most ``limit`` seconds that ends with a sentence, with silence before and after it included.

    ``first`` and ``last`` are ids of parts; None: from the first part that is not among ``left_out``, up to the end.
    Blocking. Raises NotFound for a part without audio, and InvalidRequest.
    """
    ids = [placed.part.id for placed in timeline.placed]
    begin = next((at for at, part_id in enumerate(ids) if part_id not in left_out), 0)
    begin = begin if first is None else _index(ids, first, "first")
    end = len(ids) - 1 if last is None else _index(ids, last, "last")
    if end < begin:
        raise InvalidRequest("last must not be before first", "last")
    chosen, offset = timeline.placed[begin : end + 1], timeline.placed[begin].start
    stop = offset + round((limit - head - tail) * timeline.sample_rate)
    fitting = list(takewhile(lambda placed: placed.end <= stop, chosen))
    if len(fitting) < len(chosen):
        following = chosen[len(fitting)]
        words = word_times([following.take.id]).get(following.take.id, ())
        if following.speed == 1 and (cut := _cut(following, timeline.sample_rate, stop, words, files)):
            fitting.append(cut)
        else:
            fitting = _up_to_a_sentence(fitting)
    if not fitting:
        position = chosen[0].part.position + 1
        raise InvalidRequest(
            f"no sentence of part {position} ends within {limit:g} s; allow more seconds or begin with another part",
            "seconds",
        )
    return timeline.cut_out(fitting, head, tail)


def _index(ids: Sequence[str], part_id: str, field: str) -> int:
    if part_id not in ids:
        raise NotFound(f"the project has no part {part_id[:80]!r} with audio", field)
    return ids.index(part_id)


def _up_to_a_sentence(fitting: list[Placed]) -> list[Placed]:
    """The parts without the last ones that end within a sentence or are titles, if any others are left."""
    for count in range(len(fitting), 0, -1):
        part = fitting[count - 1].part
        if part.text.rstrip().rstrip(_CLOSING).endswith(_ENDS) and not part.is_title:
            return fitting[:count]
    return fitting


def _cut(placed: Placed, rate: int, stop: int, words: Sequence[Timed], files: AudioFiles) -> Placed | None:
    """The take up to the last sentence that ends before ``stop``; None without one."""
    timed = sentences(placed.take.text, words)
    offset = placed.start - placed.skipped
    for sentence, following in reversed(list(pairwise(timed))):
        end, start = round(sentence.end * rate), round(following.start * rate)
        if offset + (end + max(start, end)) // 2 <= stop:
            samples = samples_at(files.path(placed.take.audio), placed.take.sample_rate, rate)
            at = min(quietest(samples, end, max(start, end), round(FADE * rate / 2), rate), stop - offset)
            return replace(placed, dropped=placed.length - at) if at > placed.skipped else None
    return None

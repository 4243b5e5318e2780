"""Reads and writes SubRip and WebVTT subtitles."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from studio.errors import InvalidDocument
from studio.projects.documents.passages import Document, Passage, decode_text

MAX_REPEATED = 8
"""Lines of a subtitle that may repeat the previous one."""
MAX_SPEAKER = 80
"""Characters of a speaker's name in a cue."""

WrittenCue = tuple[float, float, str, str]
"""Start and end in seconds, the text, and its speaker, or blank."""

_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})(?:[,.:](\d{1,3}))?"
_TIMES = re.compile(rf"\s*{_TIME}\s*--?>\s*{_TIME}(?:\s.*)?")
_LIKE_A_TIME = re.compile(r"\s*\d{1,3}:\d\d:")
_TIMED_WORD = re.compile(r"<(?:\d{1,3}:)?\d\d:\d\d\.\d{3}>")
"""As in live transcripts."""
_MARKUP = re.compile(r"</?[a-zA-Z][^<>]{0,100}>|<\d[\d:.]{0,20}>|\{\\[^{}]{0,100}\}|[♪♫]|^\s*[-‐–—]+(?![-‐–—\d])\s*")


def read_srt(data: bytes) -> Document:
    """Read subtitles as players do: by their time lines, even if everything else is missing; sorted by start time.

    Raises InvalidDocument with the line.
    """
    lines = decode_text(data).split("\n")
    is_vtt = lines[0].lstrip().startswith("WEBVTT")
    cues = [(at, times) for at, line in enumerate(lines) if (times := _times(line, lines[at - 1] if at else "", at))]
    if not cues:
        at = next((at for at, line in enumerate(lines) if line.strip()), 0)
        raise _no_times(at)
    passages = []
    number = ""
    for index, (at, (start, end)) in enumerate(cues):
        number = _number_above(lines, at, number)
        following = cues[index + 1][0] if index + 1 < len(cues) else len(lines)
        text = _text(_text_lines(lines[at + 1 : following], number, following < len(lines), is_vtt))
        if text:
            passages.append(Passage(text, start=start, end=max(start, end)))
    passages.sort(key=lambda passage: passage.start or 0.0)
    if is_vtt and any(map(_TIMED_WORD.search, lines)):
        passages = list(_without_repeats(passages))
    return Document(tuple(passages), prose=False)


def write_srt(cues: Iterable[WrittenCue]) -> Iterable[str]:
    """Yield SubRip subtitles, which have no place for a speaker."""
    for number, (start, end, text, _) in enumerate(cues, start=1):
        yield f"{number}\n{_clock(start)} --> {_clock(end)}\n{_without_blank_lines(text)}\n\n"


def write_vtt(cues: Iterable[WrittenCue]) -> Iterable[str]:
    """Yield WebVTT subtitles with their speakers. A cue needs a duration: the shortest is a millisecond."""
    yield "WEBVTT\n\n"
    for start, end, text, speaker in cues:
        words = html.escape(_without_blank_lines(text), quote=False)
        if speaker:
            words = f"<v {html.escape(' '.join(speaker[:MAX_SPEAKER].split()), quote=False)}>{words}</v>"
        yield f"{_clock(start, '.')} --> {_clock(max(end, start + 0.001), '.')}\n{words}\n\n"


def _without_blank_lines(text: str) -> str:
    """A blank line would end the cue."""
    return "\n".join(line for line in text.splitlines() if line.strip())


def _times(line: str, before: str, at: int) -> tuple[float, float] | None:
    """Start and end in seconds; None for any other line. Raises InvalidDocument for malformed times."""
    if len(line) > 300 or (match := _TIMES.fullmatch(line)) is None:
        if "-->" in line[:100] or (before.strip().isdigit() and _LIKE_A_TIME.match(line)):
            raise _no_times(at)
        return None
    start, end = (_seconds(match.groups()[index : index + 4]) for index in (0, 4))
    return start, end


def _no_times(at: int) -> InvalidDocument:
    expected = "expected the times of a subtitle, such as 00:01:02,500 --> 00:01:04,000"
    return InvalidDocument(f"line {at + 1}: {expected}", "file")


def _seconds(fields: tuple[str | None, ...]) -> float:
    hours, minutes, seconds, fraction = (field or "0" for field in fields)
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + int(fraction.ljust(3, "0")) / 1000


def _number_above(lines: list[str], at: int, before: str) -> str:
    """The number of the subtitle with its times in this line; without one, the number after ``before``."""
    if at and lines[at - 1].strip().isdigit():
        return lines[at - 1].strip()
    return _next(before)


def _next(number: str) -> str:
    return str(int(number[:9]) + 1) if number.isdigit() else "1"


def _text_lines(lines: list[str], number: str, is_followed: bool, is_vtt: bool) -> list[str]:
    """The lines below a subtitle's times, without notes and without the number or name of the next subtitle."""
    if is_vtt:
        blank = next((at for at, line in enumerate(lines) if not line.strip()), len(lines))
        return lines[:blank]  # a blank line ends it; names, notes and styles follow
    end = len(lines)
    if is_followed and end and lines[end - 1].strip().isdigit():
        return lines[: end - 1]
    while end and not lines[end - 1].strip():
        end -= 1
    is_last_of_two = end > 1 and not lines[end - 2].strip()
    if is_last_of_two and lines[end - 1].strip() == _next(number):
        end -= 1
    return lines[:end]


def _text(lines: Iterable[str]) -> str:
    """The text without markup, speaker dashes and music signs; ``\\N`` is a line break."""
    lines = "\n".join(lines).replace("\\N", "\n").replace("\\h", " ").split("\n")
    words = (html.unescape(_MARKUP.sub("", _MARKUP.sub("", line))).strip() for line in lines)
    return "\n".join(word for word in words if word)


def _without_repeats(passages: Iterable[Passage]) -> Iterator[Passage]:
    """Drop lines repeated from the previous subtitle, as in live transcripts that roll up."""
    previous: list[str] = []
    for passage in passages:
        lines = passage.text.split("\n")
        repeated = next(
            (count for count in range(min(len(lines), MAX_REPEATED), 0, -1) if lines[:count] == previous[-count:]), 0
        )
        if lines[repeated:]:
            yield replace(passage, text="\n".join(lines[repeated:]))
        previous = lines


def _clock(seconds: float, point: str = ",") -> str:
    milliseconds = round(seconds * 1000)
    return (
        f"{milliseconds // 3_600_000:02}:{milliseconds // 60_000 % 60:02}:"
        f"{milliseconds // 1000 % 60:02}{point}{milliseconds % 1000:03}"
    )

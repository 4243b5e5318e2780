"""Reads SubRip, WebVTT and SubStation Alpha subtitles with their speakers; writes SubRip and WebVTT."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from manuscript.cue_text import CueText
from manuscript.encodings import decode_text
from manuscript.passages import Document, InvalidDocument, Passage

MAX_REPEATED = 8  # lines of a subtitle that may repeat the previous one
MAX_HEADER = 20  # lines in which SubStation Alpha's first section begins
MAX_SPEAKER = 80  # characters of a speaker's name in a cue

WrittenCue = tuple[float, float, str, str]  # start and end in seconds, the text, and its speaker, or blank

_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})(?:[,.:](\d{1,3}))?"
_TIMES = re.compile(rf"\s*{_TIME}\s*--?>\s*{_TIME}(?:\s.*)?")
_LIKE_A_TIME = re.compile(r"\s*\d{1,3}:\d\d:")
_PART_OF_A_TIME = re.compile(r"\d:\d\d[:,.]\d")
_TIMED_WORD = re.compile(r"<(?:\d{1,3}:)?\d\d:\d\d\.\d{3}>")  # as in live transcripts
_DIALOGUE = re.compile(r"Dialogue:\s*(?=\S)", re.IGNORECASE)
_FORMAT = re.compile(r"Format:\s*", re.IGNORECASE)
_ASS_FORMAT = "layer, start, end, style, name, marginl, marginr, marginv, effect, text"
"""The fields of a line of dialogue in a file that does not name them."""
_ASS_TIME = re.compile(r"\s*(\d{1,2}):(\d{1,2}):(\d{1,2})[.:](\d{1,3})\s*")
_DRAWING = re.compile(r"\\p([0-9]{1,3})")
"""The scale of a drawing, whose coordinates follow instead of words; 0: words again."""
_OVERRIDE = re.compile(r"\{[^{}]{0,500}\}")


def read_srt(data: bytes) -> Document:
    """Read subtitles as players do: by their time lines, even if everything else is missing; sorted by start time.

    Raises InvalidDocument with the line.
    """
    lines = decode_text(data).split("\n")
    if any(line.strip().casefold() in ("[script info]", "[events]") for line in lines[:MAX_HEADER]):
        return _read_ass(lines)
    is_vtt = lines[0].lstrip().startswith("WEBVTT")
    cues = [(at, times) for at, line in enumerate(lines) if (times := _times(line, lines[at - 1] if at else "", at))]
    if not cues:
        at = next((at for at, line in enumerate(lines) if line.strip()), 0)
        raise _no_times(at)
    passages: list[Passage] = []
    read = CueText()
    number = ""
    for index, (at, (start, end)) in enumerate(cues):
        above = lines[at - 1].strip() if at else ""
        number = above if above.isdigit() else _next(number)
        following = cues[index + 1][0] if index + 1 < len(cues) else len(lines)
        text_lines = _text_lines(lines[at + 1 : following], number, following < len(lines), is_vtt)
        passages += _timed(read.turns(text_lines), start, max(start, end))
    passages.sort(key=lambda passage: passage.start or 0.0)
    if is_vtt and any(map(_TIMED_WORD.search, lines)):
        passages = list(_without_repeats(passages))
    return Document(tuple(passages), prose=False, skipped=read.skipped())


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
        is_damaged = "-->" in line[:100] and _PART_OF_A_TIME.search(line[:100])  # else the arrow is among the words
        if is_damaged or (before.strip().isdigit() and _LIKE_A_TIME.match(line)):
            raise _no_times(at)
        return None
    return _seconds(match.groups()[:4]), _seconds(match.groups()[4:])


def _no_times(at: int) -> InvalidDocument:
    expected = "expected the times of a subtitle, such as 00:01:02,500 --> 00:01:04,000"
    return InvalidDocument(f"line {at + 1}: {expected}")


def _next(number: str) -> str:
    return str(int(number[:9]) + 1) if number.isdigit() else "1"


def _text_lines(lines: list[str], number: str, is_followed: bool, is_vtt: bool) -> list[str]:
    """The lines below a subtitle's times, without notes and without the number or name of the next subtitle."""
    if is_vtt:
        lines = lines[next((at for at, line in enumerate(lines) if not line or line.strip()), 0) :]  # as players
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


def _timed(turns: list[tuple[str, str]], start: float, end: float) -> Iterator[Passage]:
    """The turns of a cue; the second of two speakers begins when, by the letters, the first one has ended."""
    letters = sum(len(text) for _, text in turns)
    at = 0
    for speaker, text in turns:
        begins = start + (end - start) * at / letters
        at += len(text)
        yield Passage(text, start=begins, end=start + (end - start) * at / letters, speaker=speaker)


def _read_ass(lines: list[str]) -> Document:
    """SubStation Alpha: its lines of dialogue, without comments, drawings and overrides; the name is the speaker."""
    names, read = [name.strip() for name in _ASS_FORMAT.split(",")], CueText()
    passages: list[Passage] = []
    is_events = False
    for at, line in enumerate(lines):
        if line.startswith("["):
            is_events = line.strip().casefold() == "[events]"
        elif is_events and (match := _FORMAT.match(line)):
            names = [name.strip().casefold() for name in line[match.end() :].split(",")]
        elif match := _DIALOGUE.match(line):
            fields = dict(zip(names, line[match.end() :].split(",", len(names) - 1), strict=False))
            times = [_ASS_TIME.fullmatch(fields.get(name, "")) for name in ("start", "end")]
            if "text" not in fields or None in times:
                expected = (
                    "expected a line of dialogue, such as Dialogue: 0,0:00:01.00,0:00:03.00,Default,Anna,0,0,0,,Hello"
                )
                raise InvalidDocument(f"line {at + 1}: {expected}")
            start, end = (_seconds(match.groups()) for match in times if match)
            text = _without_drawings(fields["text"]).replace("\\n", "\n")
            name = " ".join((fields.get("name") or fields.get("actor") or "")[:MAX_SPEAKER].split())
            passages += _timed(read.turns([text], name), start, max(start, end))
    if not passages:
        raise InvalidDocument("the subtitles have no lines of dialogue with words to speak")
    passages.sort(key=lambda passage: passage.start or 0.0)
    return Document(tuple(passages), prose=False, skipped=read.skipped())


def _without_drawings(text: str) -> str:
    """The words of a line of dialogue, without overrides and what they make a drawing."""
    words, at, is_drawing = list[str](), 0, False
    for override in _OVERRIDE.finditer(text):
        words.append("" if is_drawing else text[at : override.start()])
        scales = _DRAWING.findall(override[0])
        is_drawing, at = scales[-1].strip("0") != "" if scales else is_drawing, override.end()
    return "".join([*words, "" if is_drawing else text[at:]])


def _seconds(fields: Iterable[str | None]) -> float:
    hours, minutes, seconds, fraction = (field or "0" for field in fields)
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + int(fraction.ljust(3, "0")) / 1000


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

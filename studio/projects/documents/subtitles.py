"""SubRip subtitles: what is said from when to when; reading them, and writing them with the times that speech has."""

from __future__ import annotations

import re
from collections.abc import Iterable

from studio.errors import InvalidDocument
from studio.projects.documents.passages import Document, Passage, text_of

_TIMES = re.compile(
    r"\s*(\d{1,3}):([0-5]\d):([0-5]\d)[,.](\d{1,3})\s*-->\s*(\d{1,3}):([0-5]\d):([0-5]\d)[,.](\d{1,3})\b.*"
)
_MARKUP = re.compile(r"</?[a-zA-Z][^>]{0,100}>|\{\\[^}]{0,100}\}")


def read_srt(data: bytes) -> Document:
    """Raises InvalidDocument, with the line."""
    lines = text_of(data).split("\n")
    passages: list[Passage] = []
    at = 0
    while at < len(lines):
        if not lines[at].strip():
            at += 1
            continue
        if lines[at].strip().isdigit() and at + 1 < len(lines):
            at += 1
        start, end = _times(lines[at], at + 1)
        if passages and start < (passages[-1].start or 0.0):
            raise InvalidDocument(f"line {at + 1}: this subtitle begins before the one above it", "file")
        at += 1
        words = []
        while at < len(lines) and lines[at].strip():
            words.append(_MARKUP.sub("", lines[at]).strip())
            at += 1
        if text := "\n".join(word for word in words if word):
            passages.append(Passage(text, start=start, end=end))
    return Document(tuple(passages), prose=False)


def write_srt(cues: Iterable[tuple[float, float, str]]) -> Iterable[str]:
    """Subtitles of (start, end, text) in seconds, one piece each."""
    for number, (start, end, text) in enumerate(cues, start=1):
        words = "\n".join(line for line in text.splitlines() if line.strip())
        yield f"{number}\n{_clock(start)} --> {_clock(end)}\n{words}\n\n"


def _times(line: str, number: int) -> tuple[float, float]:
    found = _TIMES.fullmatch(line)
    if not found:
        raise InvalidDocument(
            f"line {number}: expected the times of a subtitle, such as 00:01:02,500 --> 00:01:04,000", "file"
        )
    start, end = (_seconds(found.groups()[index : index + 4]) for index in (0, 4))
    if end < start:
        raise InvalidDocument(f"line {number}: this subtitle ends before it begins", "file")
    return start, end


def _seconds(fields: tuple[str, ...]) -> float:
    hours, minutes, seconds, fraction = fields
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds) + int(fraction.ljust(3, "0")) / 1000


def _clock(seconds: float) -> str:
    milliseconds = round(seconds * 1000)
    return (
        f"{milliseconds // 3_600_000:02}:{milliseconds // 60_000 % 60:02}:"
        f"{milliseconds // 1000 % 60:02},{milliseconds % 1000:03}"
    )

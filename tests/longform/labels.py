"""Reads labelled prose, and compares an attribution with it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from manuscript.attribution import attribute

FOLDER = Path(__file__).parents[1] / "data" / "dialogue"
_MARK = re.compile(r"\{([^|{}]+)\||\}")


@dataclass(frozen=True)
class Labelled:
    """``speakers``: the speaker of each character of each paragraph; None: narration, "?": undecidable."""

    paragraphs: list[str]
    speakers: list[list[str | None]]
    aliases: dict[str, str]


def read(path: Path) -> Labelled:
    header, _, body = path.read_text(encoding="utf-8").partition("\n")
    aliases = {}
    for entry in re.findall(r"([^,()]+?)\s*(?:\(([^)]*)\))?\s*(?:,|$)", header.lstrip("# ")):
        name = entry[0].strip()
        for alias in (name, *filter(None, (part.strip() for part in entry[1].split(",")))):
            aliases[alias.lower()] = name
    paragraphs: list[str] = []
    speakers: list[list[str | None]] = []
    speaker: str | None = None
    for block in body.strip().split("\n\n"):
        text, at = "", 0
        who: list[str | None] = []
        for mark in _MARK.finditer(block):
            piece = block[at : mark.start()]
            text, who, at = text + piece, who + [speaker] * len(piece), mark.end()
            speaker = mark[1]
        piece = block[at:]
        paragraphs.append(text + piece)
        speakers.append(who + [speaker] * len(piece))
    return Labelled(paragraphs, speakers, aliases)


@dataclass
class Score:
    """Characters of words classified correctly, of all; lines with the correct speaker, of all that have one."""

    right: int = 0
    characters: int = 0
    named: int = 0
    lines: int = 0

    def __add__(self, other: Score) -> Score:
        return Score(*(a + b for a, b in zip(self._all(), other._all(), strict=True)))

    def _all(self) -> tuple[int, ...]:
        return self.right, self.characters, self.named, self.lines


def score(labelled: Labelled, misses: list[str] | None = None) -> Score:
    answer = attribute(labelled.paragraphs)
    names = {name: person.name for person in answer.characters for name in person.names}
    result = Score()
    got: list[list[tuple[bool, str | None]]] = [[(False, None)] * len(text) for text in labelled.paragraphs]
    for line in answer.lines:
        got[line.paragraph][line.start : line.end] = [(line.is_speech, line.speaker)] * (line.end - line.start)
    for number, (text, wanted) in enumerate(zip(labelled.paragraphs, labelled.speakers, strict=True)):
        for at, sign in enumerate(text):
            if sign.isalnum():
                result.characters += 1
                result.right += got[number][at][0] == (wanted[at] is not None)
        for start, end in _runs(wanted):
            middle = next(at for at in range(start, end) if text[at].isalnum())
            speaker = got[number][middle][1]
            result.lines += wanted[start] != "?"
            is_right = _same(speaker, wanted[start], names, labelled.aliases)
            result.named += is_right and wanted[start] != "?"
            if misses is not None and not is_right and wanted[start] != "?":
                misses.append(f"{text[start:end][:60]} | wanted {wanted[start]}, got {speaker}")
    return result


def _runs(wanted: list[str | None]) -> list[tuple[int, int]]:
    runs, start = [], None
    for at, speaker in enumerate([*wanted, None]):
        if start is not None and (at == len(wanted) or speaker != wanted[start]):
            runs.append((start, at))
            start = None
        if start is None and at < len(wanted) and speaker is not None:
            start = at
    return runs


def _same(speaker: str | None, wanted: str | None, names: dict[str, str], aliases: dict[str, str]) -> bool:
    if speaker is None or wanted is None:
        return False
    known = {speaker.lower(), *(name.lower() for name, person in names.items() if person == names.get(speaker))}
    return any(aliases.get(name) == wanted for name in known)

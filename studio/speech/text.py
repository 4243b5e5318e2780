"""A script cut into what is said in one breath and the silences between: at sentence ends, never inside a tag."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from studio.errors import InvalidRequest

PART_BYTES = 300
"""A part has at most so many bytes of UTF-8: about 20 s of English, and as long in scripts of 2 or 3 bytes a letter."""
MAX_PAUSE = 10.0
MAX_PAUSES = 600.0
"""Seconds of silence in one script."""

_PAUSE = re.compile(r"\[pause:\s*(\d{1,5}(?:\.\d{1,3})?)\s*(ms|s)\s*\]", re.IGNORECASE)
TAG = re.compile(r"\[[^\[\]]*\]|<\|[^|>]*\|>")
"""What is no text to say: [whisper], [pause:1s], <|speaker:0|>."""
_OPENED = re.compile(r"\[[^\[\]]*\Z|<(?:\|[^|>]*\|?)?\Z")
_SPEAKER = re.compile(r"<\|speaker:\d+\|>")
_END = re.compile(
    # Scripts that put a space after a sentence. A run of stops is looked at from its first one only: else a line of
    # dots would be gone through from each of them.
    r"(?:(?<![.!?…])[.!?…]+|(?<![؟۔।॥])[؟۔।॥]+)[\"'”’»)\]]*(?=\s)"
    r"|[。！？｡]+[”’」』）]*"  # scripts that do not
    r"|\n\s*(?=\n)|\n(?=\s*\S)"  # lines
)
_STOPS = ".!?…؟۔।॥"
_CLOSING = "\"'”’»)]"
_CLAUSE = re.compile(r"[,;:،؛—–](?=\s)|[、，；：]")
_BLANK = re.compile(r"\s+")
_INSIDE = re.compile(r"\S")
_BEFORE_A_WORD = re.compile(r"[\s(\"'“‘]")
_NEAR = 64
"""Characters that are looked at on one side of a place: no abbreviation, and no letter with its marks, is longer."""
_FAR = 256
"""Characters that are looked at again when more text comes: no tag, and no end of a sentence, is longer."""
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe0e\ufe0f")
"""Characters that are letters or marks by their category, and that nobody sees."""
_ABBREVIATIONS = frozenset(
    re.findall(
        r"\S+",
        "mr mrs ms dr prof st sr jr vs etc eg ie e.g i.e nos fig vol approx dept est inc ltd co corp gen col capt "
        "a.m p.m u.s u.k z.b d.h u.a bzw ca nr str hr fr evtl ggf usw m mme mlle p.ex sig sra av",
    )
)


@dataclass(frozen=True, slots=True)
class Words:
    """What the model says in one go."""

    text: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Real silence."""

    seconds: float


Script = tuple[Words | Pause, ...]


def is_blank(text: str) -> bool:
    """Whether there is nothing in it that anybody could see, or say."""
    return all(sign.isspace() or unicodedata.category(sign) in ("Cc", "Cf") or sign in _UNSEEN for sign in text)


def read_script(text: str, part_bytes: int = PART_BYTES) -> Script:
    """Words and pauses in order; every word is in it once. ``[pause:1.5s]`` and ``[pause:300ms]`` are pauses.

    A part after the first of a speaker begins with the speaker's tag again. Raises InvalidRequest for a pause
    that is too long, for too many of them, and when there is nothing but pauses.
    """
    steps: list[Words | Pause] = []
    speaker = ""
    at = 0
    for mark in (*_PAUSE.finditer(text), None):
        for part in split_text(text[at : mark.start() if mark else len(text)], part_bytes):
            tags = _SPEAKER.findall(part)
            steps.append(Words(part if not speaker or _SPEAKER.match(part) else speaker + part))
            speaker = tags[-1] if tags else speaker
        if mark:
            steps.append(Pause(_seconds(mark)))
            at = mark.end()
    check_pauses(steps)
    if not any(isinstance(step, Words) for step in steps):
        raise InvalidRequest("input has pauses only: there is nothing to say", "input")
    return tuple(steps)


def check_pauses(script: Iterable[Words | Pause]) -> None:
    """Raises InvalidRequest for more than MAX_PAUSES seconds of them together."""
    silence = sum(step.seconds for step in script if isinstance(step, Pause))
    if silence > MAX_PAUSES:
        told = f"the pauses last {silence:g} s together; at most {MAX_PAUSES:g} s are allowed"
        raise InvalidRequest(told, "input")


class Sentences:
    """A text that is still being written, taken sentence by sentence."""

    def __init__(self) -> None:
        self._held = ""  # what is no complete sentence yet
        self._pauses = ""  # before it: alone they are nothing to say

    @property
    def size(self) -> int:
        """Characters that are held back."""
        return len(self._held) + len(self._pauses)

    def add(self, text: str) -> list[str]:
        """The sentences that are complete with this, in time that depends on ``text`` alone.

        A sentence is complete when something follows its end: a point may still become a number or an ellipsis.
        Pauses that stand alone begin the sentence after them.
        """
        start = _undecided(self._held)
        self._held += text
        *sentences, rest = _cut(self._held, _sentence_ends(self._held, start))
        self._held = rest if not sentences or rest.strip() else ""
        return self._with_words(sentences)

    def flush(self) -> list[str]:
        """What is held, complete or not; pauses that stand alone go on waiting for a sentence."""
        rest, self._held = self._held, ""
        return self._with_words([rest])

    def _with_words(self, pieces: Iterable[str]) -> list[str]:
        sentences = []
        for piece in pieces:
            if is_blank(_PAUSE.sub("", piece)):
                self._pauses += "".join(f"{mark[0]} " for mark in _PAUSE.finditer(piece))
            else:
                sentences.append(self._pauses + piece.strip())
                self._pauses = ""
        return sentences


def _undecided(text: str) -> int:
    """From where on what comes next can still make a difference: an opened tag, or the end of a sentence or line."""
    begin = max(0, len(text) - _FAR)
    tail = _mask(text[begin:])
    at = len(tail.rstrip().rstrip(_CLOSING).rstrip(_STOPS))
    opened = _OPENED.search(tail)
    return begin + (min(at, opened.start()) if opened else at)


def _seconds(mark: re.Match[str]) -> float:
    seconds = float(mark[1]) / (1000 if mark[2].lower() == "ms" else 1)
    if seconds > MAX_PAUSE:
        raise InvalidRequest(f"{mark[0]} is too long a pause; at most {MAX_PAUSE:g} s are allowed", "input")
    return seconds


def split_text(text: str, limit: int) -> list[str]:
    """Pieces of at most ``limit`` bytes: whole sentences, as many as fit; one that alone is too long is cut further."""
    parts: list[str] = []
    held = ""
    for sentence in _cut(text, _sentence_ends(text)):
        if held and _size(held + sentence) > limit:
            parts.append(held)
            held = ""
        held += sentence
        if _size(held.strip()) > limit:
            *whole, held = _shorten(held, limit)
            parts += whole
    return [part.strip() for part in (*parts, held) if not is_blank(part)]


def sentences_of(text: str) -> list[str]:
    """All of a text, sentence by sentence."""
    return _cut(text, _sentence_ends(text))


def _shorten(text: str, limit: int) -> list[str]:
    """Pieces of at most ``limit`` bytes: cut after a clause, else at a space, else between two letters."""
    masked, end = _mask(text), len(text.rstrip())
    tags = [found.span() for found in TAG.finditer(text)]
    cuts, start, tag = list[int](), 0, 0
    while True:
        at = cuts[-1] if cuts else 0
        found = _INSIDE.search(text, max(start, at))
        start = found.start() if found else end
        if _size(text[start : min(end, start + limit + 1)]) <= limit:
            return _cut(text, cuts)
        while tag < len(tags) and tags[tag][1] <= at:
            tag += 1
        cuts.append(_last_place(text, masked, at, at + _fitting(text[at : at + limit], limit), tags[tag : tag + limit]))


def _last_place(text: str, masked: str, at: int, window: int, tags: list[tuple[int, int]]) -> int:
    """Where to cut what begins ``at``, before ``window``; ``tags`` are the spans of those that come next."""
    third = (window - at) // 3
    cuts = [found.end() for found in _CLAUSE.finditer(masked, at, window) if found.end() - at > third]
    cuts = cuts or [found.end() for found in _BLANK.finditer(masked, at, window)]
    return cuts[-1] if cuts else _between_letters(text, at, window, tags)


def _sentence_ends(text: str, start: int = 0) -> list[int]:
    """Those from ``start`` on, which must not be inside a tag."""
    masked = text[:start] + _mask(text[start:])
    return [found.end() for found in _END.finditer(masked, start) if not _goes_on(masked, found)]


def _goes_on(text: str, end: re.Match[str]) -> bool:
    """Whether a full stop ends an abbreviation, an initial or an ordinal number and not a sentence."""
    if end[0] != ".":
        return False
    following = _INSIDE.search(text, end.end())
    if following and following[0].islower():
        return True
    last = _BEFORE_A_WORD.split(text[max(0, end.start() - _NEAR) : end.start()])[-1]
    return last.lower() in _ABBREVIATIONS or bool(re.fullmatch(r"(?:\w\.)*[A-ZÀ-Þ]|\d{1,2}", last))


def _mask(text: str) -> str:
    """The text with the insides of tags made harmless, position for position."""
    return TAG.sub(lambda tag: "x" * len(tag[0]), text)


def _cut(text: str, cuts: list[int]) -> list[str]:
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def _fitting(text: str, limit: int) -> int:
    """How many characters from the first on fit into ``limit`` bytes; at least one."""
    return max(1, len(text.encode()[:limit].decode(errors="ignore")))


def _between_letters(text: str, at: int, cut: int, tags: list[tuple[int, int]]) -> int:
    """The nearest place before ``cut``, and after ``at``, that is inside no tag and parts no letter from its marks."""
    for first, end in tags:
        if first < cut < end:
            return first if first > at else end
    for place in range(cut, max(at, cut - _NEAR), -1):
        if place == len(text) or not _joined(text[place - 1], text[place]):
            return place
    return cut


def _joined(left: str, right: str) -> bool:
    return bool(unicodedata.combining(right)) or right in "\u200d\ufe0f" or left == "\u200d"


def _size(text: str) -> int:
    return len(text.encode())

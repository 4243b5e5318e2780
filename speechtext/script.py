"""Splits a script into parts and silences: at sentence ends, never inside a tag."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from speechtext.characters import INVISIBLE
from speechtext.errors import NothingToSay, TextError
from speechtext.sentence_ends import find_ends
from speechtext.tags import PAUSE, TAG, manner_of, manner_tags, pauses_before_manner

PART_BYTES = 300
"""Maximum UTF-8 bytes of a part: about 20 s of English, and of scripts with 2 or 3 bytes per letter."""
MAX_PAUSE = 10.0
MAX_PAUSES = 600.0  # maximum total seconds of silence in one script

_CLAUSE = re.compile(r"[,;:،؛—–](?=\s)|[、，；：]")
_UNENDED = re.compile(r"(?<=\w)(?=[^\S\n]*\n[^\S\n]*\n\s*\S)")
"""The end of a paragraph that does not end a sentence, such as a heading or a list item."""
_BLANK = re.compile(r"\s+")
_INSIDE = re.compile(r"\S")
_NEAR = 64  # characters examined before a position: no letter with its marks is longer
_SPEAKER = re.compile(r"<\|speaker:\d+\|>")
_MARKS = re.compile(rf"{PAUSE.pattern}|<\|[^|>]*\|>", re.IGNORECASE)
_LEADING_PAUSES = re.compile(rf"(?:\s*{PAUSE.pattern})+\s*", re.IGNORECASE)
_SELECTORS = "\ufe0e\ufe0f"
_READ_ALOUD = "%&@"  # read aloud, though punctuation by their category


@dataclass(frozen=True, slots=True)
class Words:
    """Text that the model generates at once."""

    text: str


@dataclass(frozen=True, slots=True)
class Pause:
    """Inserted silence."""

    seconds: float


Script = tuple[Words | Pause, ...]


def is_blank(text: str) -> bool:
    """Whether a text has no visible or audible character."""
    return all(
        sign.isspace() or sign in INVISIBLE or sign in _SELECTORS or unicodedata.category(sign) in ("Cc", "Cf")
        for sign in text
    )


def has_words(text: str, tags_are_words: bool = False) -> bool:
    """Whether a text has a letter, a digit or another character that is read aloud, outside tags unless they count
    too."""
    rest = (_MARKS if tags_are_words else TAG).sub("", text)
    return any(sign.isalnum() or sign in _READ_ALOUD or unicodedata.category(sign) == "Sc" for sign in rest)


def read_script(text: str, part_bytes: int = PART_BYTES, apart: bool = False, one_line: bool = False) -> Script:
    """Words and pauses in order; every word occurs once. ``[pause:1.5s]`` and ``[pause:300ms]`` are pauses.

    A speaker's later parts begin with the speaker's tag again. ``apart``: a sentence that begins with a tag is a
    separate part, for a model that follows tags only there. ``one_line``: line breaks become spaces, and a paragraph
    that only a break ends gets a full stop, for a model that skips words at line breaks. Raises TextError for a
    pause that is too long, for too many of them, and for a text with only pauses.
    """
    steps: list[Words | Pause] = []
    speaker = ""
    at = 0
    for mark in (*PAUSE.finditer(text), None):
        for part in split_text(text[at : mark.start() if mark else len(text)], part_bytes, apart):
            tags = _SPEAKER.findall(part)
            words = " ".join(_UNENDED.sub(".", part).split()) if one_line and "\n" in part else part
            steps.append(Words(words if not speaker or _SPEAKER.match(words) else speaker + words))
            speaker = tags[-1] if tags else speaker
        if mark:
            seconds = float(mark[1]) / (1000 if mark[2].lower() == "ms" else 1)
            if seconds > MAX_PAUSE:
                raise TextError(f"the pause {mark[0]} is too long; at most {MAX_PAUSE:g} s are allowed", "input")
            steps.append(Pause(seconds))
            at = mark.end()
    check_pauses(steps)
    if not any(isinstance(step, Words) for step in steps):
        raise NothingToSay("input has no words to say, only pauses or invisible characters", "input")
    return tuple(steps)


def check_pauses(script: Iterable[Words | Pause]) -> None:
    """Raises TextError if the pauses add up to more than MAX_PAUSES seconds."""
    silence = sum(step.seconds for step in script if isinstance(step, Pause))
    if silence > MAX_PAUSES:
        raise TextError(f"the pauses add up to {silence:g} s; at most {MAX_PAUSES:g} s are allowed", "input")


class Sentences:
    """Splits a text that is still being written into sentences."""

    def __init__(self) -> None:
        self._held = ""  # an incomplete sentence
        self._settled, self._has_word = 0, False  # of the held text, see Ends
        self._pauses = ""  # before it, because pauses alone are not a sentence

    @property
    def size(self) -> int:
        """Number of characters held back."""
        return len(self._held) + len(self._pauses)

    def add(self, text: str) -> list[str]:
        """The sentences completed by this text, the same as for the whole text; the time depends only on ``text``.

        A sentence is complete when the text after its end has begun: a point may still become a number or an ellipsis,
        and "Why?" may be followed by a speaker tag. Pauses on their own belong to the next sentence.
        """
        self._held += text
        ends = find_ends(self._held, self._settled, self._has_word, is_whole=False)
        *sentences, rest = _cut(self._held, ends.places)
        self._settled, self._has_word = ends.settled - len(self._held) + len(rest), ends.has_word
        self._held = rest
        return self._with_words(sentences)

    def flush(self) -> list[str]:
        """The rest, complete or not; pauses on their own keep waiting for a sentence."""
        rest, self._held = self._held, ""
        self._settled, self._has_word = 0, False
        return self._with_words(_cut(rest, find_ends(rest).places))

    def _with_words(self, pieces: Iterable[str]) -> list[str]:
        sentences = []
        for piece in pieces:
            if is_blank(PAUSE.sub("", piece)):
                self._pauses += "".join(f"{mark[0]} " for mark in PAUSE.finditer(piece))
            else:
                leading = _LEADING_PAUSES.match(piece)
                first = "".join(f"{mark[0]} " for mark in PAUSE.finditer(leading[0])) if leading else ""
                sentences.append(self._pauses + first + piece[leading.end() if leading else 0 :].strip())
                self._pauses = ""
        return sentences


def split_text(text: str, limit: int, apart: bool = False) -> list[str]:
    """Pieces of at most ``limit`` bytes: as many whole sentences as fit; a longer sentence is split further.

    ``apart``: see `read_script`.
    """
    parts: list[str] = []
    rest = ""
    is_manner = False
    for sentence in _split_manners(sentences_of(text)) if apart else sentences_of(text):
        was_manner, is_manner = is_manner, apart and bool(manner_of(sentence))
        if rest and (is_manner or was_manner or _size(rest + sentence) > limit):
            parts.append(rest)
            rest = ""
        rest += sentence
        if _size(rest.strip()) > limit:
            *complete, rest = _shorten(rest, limit)
            parts += complete
    return [part.strip() for part in (*parts, rest) if not is_blank(part)]


def _split_manners(sentences: Iterable[str]) -> list[str]:
    """The sentences; a pause tag before another tag belongs to the previous sentence."""
    pieces: list[str] = []
    for sentence in sentences:
        place = pauses_before_manner(sentence) if pieces else 0
        if place:
            pieces[-1] += sentence[:place]
        pieces.append(sentence[place:])
    return pieces


def sentences_of(text: str) -> list[str]:
    """The sentences of a whole text."""
    return _cut(text, find_ends(text).places)


def _shorten(text: str, limit: int) -> list[str]:
    """Pieces of at most ``limit`` bytes: split after a clause, else at a space, else between two letters."""
    masked, end = TAG.sub(lambda tag: "x" * len(tag[0]), text), len(text.rstrip())
    tags = [match.span() for match in TAG.finditer(text)]
    cuts, start, tag = list[int](), 0, 0
    while True:
        at = cuts[-1] if cuts else 0
        match = _INSIDE.search(text, max(start, at))
        start = match.start() if match else end
        if _size(text[start : min(end, start + limit + 1)]) <= limit:
            return _cut(text, cuts)
        while tag < len(tags) and tags[tag][1] <= at:
            tag += 1
        fitting = len(text[at : at + limit].encode()[:limit].decode(errors="ignore"))
        cuts.append(_last_place(text, masked, at, at + max(1, fitting), tags[tag : tag + limit]))


def _last_place(text: str, masked: str, at: int, window: int, tags: list[tuple[int, int]]) -> int:
    """Where to split the text from ``at``, before ``window``; ``tags`` are the spans of the next tags."""
    min_length = (window - at) // 3
    cuts = [match.end() for match in _CLAUSE.finditer(masked, at, window) if match.end() - at > min_length]
    cuts = cuts or [match.end() for match in _BLANK.finditer(masked, at, window)]
    return cuts[-1] if cuts else _between_letters(text, at, window, tags)


def _cut(text: str, cuts: list[int]) -> list[str]:
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def _between_letters(text: str, at: int, cut: int, tags: list[tuple[int, int]]) -> int:
    """The nearest position before ``cut``, and after ``at``, that is not inside a tag or between a letter and its
    marks."""
    for first, end in tags:
        if first < cut < end:
            return first if first > at else end
    for place in range(cut, max(at, cut - _NEAR), -1):
        left, right = text[place - 1], text[place : place + 1]
        is_joined = right and (unicodedata.combining(right) or right in "\u200d\ufe0f" or left == "\u200d")
        if not is_joined:
            return place
    return cut


def _size(text: str) -> int:
    return len(text.encode())


def with_tags(text: str, tags: Sequence[str]) -> str:
    """The text with these tags before each sentence, instead of those it begins with; pauses stay.

    Models obey a tag up to the end of its sentence, so each sentence needs it.
    """
    return "".join(_with_tags(sentence, tags) for sentence in sentences_of(text))


def _with_tags(sentence: str, tags: Sequence[str]) -> str:
    for tag in reversed(manner_tags(sentence)):
        following = sentence[tag.end() :]
        sentence = sentence[: tag.start()] + (following.lstrip(" ") if following.strip() else following)
    if not tags or not has_words(sentence):
        return sentence
    begin = len(sentence) - len(sentence.lstrip())
    return f"{sentence[:begin]}{''.join(f'[{tag}]' for tag in tags)} {sentence[begin:]}"

"""ElevenLabs' alignments: the times of all characters of a text, from the times of its words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from speechtext.word_times import Timed, places_of
from studio.speech.word_times import Spoken

_AFTER_A_WORD = re.compile(r"[^\w\s\[({<«“‘¿¡]*\s*")
"""What belongs to the word before it: closing punctuation and spaces."""


class Character(NamedTuple):
    """A character and its times in seconds."""

    sign: str
    start: float
    end: float


class Alignments:
    """The characters of a text, in the order in which they are spoken. Use one for each take."""

    def __init__(self, text: str) -> None:
        self._text, self._written_to, self._read_to = text, 0.0, 0.0

    def add(self, spoken: Spoken) -> tuple[list[Character], list[Character]]:
        """The characters of a passage as written, and as read. Blocking: time grows with the text that follows."""
        places = places_of(self._text, [word.text for word in spoken.words])
        size = 0
        if spoken.words:
            size = min(places[-1] + len(spoken.words[-1].text), len(self._text))
            size += len(_AFTER_A_WORD.match(self._text, size)[0])  # type: ignore[index]  # it matches any text
        written = spread(self._text[:size], spoken.words, places, self._written_to, spoken.end)
        self._text = self._text[size:]
        self._written_to = spoken.end if written else self._written_to
        read: list[Character] = []
        for number, (part, words) in enumerate(spoken.read, 1):
            end = spoken.end if number == len(spoken.read) else words[-1].end if words else self._read_to
            text = f" {part}" if self._read_to else part  # separates it from the part before in the joined text
            read += spread(text, words, places_of(text, [word.text for word in words]), self._read_to, end)
            self._read_to = end
        return written, read

    def rest(self) -> list[Character]:
        """The characters that no word reached, such as a closing bracket, at the end."""
        rest, self._text = self._text, ""
        return [Character(sign, self._written_to, self._written_to) for sign in rest]


class VoiceSegments:
    """The turns of a dialogue, as ranges of the characters of each passage."""

    def __init__(self, turns: Sequence[tuple[str, int, str]]) -> None:
        """``turns``: the voice, the index of the input and the text of each."""
        self._turns, self._at, stop = list[tuple[str, int, int, int]](), 0, 0
        for voice_id, index, text in turns:
            self._turns.append((voice_id, index, stop, stop + len(text)))
            stop += len(text) + 1  # turns are joined by a line end

    def add(self, written: Sequence[Character]) -> list[dict[str, Any]]:
        """The segments of the next characters."""
        begin, self._at = self._at, self._at + len(written)
        spans = (
            (voice_id, index, max(start, begin) - begin, min(stop, self._at) - begin)
            for voice_id, index, start, stop in self._turns
        )
        return [
            {
                "voice_id": voice_id,
                "start_time_seconds": round(written[start].start, 3),
                "end_time_seconds": round(written[stop - 1].end, 3),
                "character_start_index": start,
                "character_end_index": stop,
                "dialogue_input_index": index,
            }
            for voice_id, index, start, stop in spans
            if start < stop
        ]


def spread(text: str, words: Sequence[Timed], places: Sequence[int], start: float, end: float) -> list[Character]:
    """Each word's time divided equally over its characters, and each gap's over those between the words.

    ``places``: the start of each word in the text; ``start``, ``end``: times of the whole text.
    """
    spans, at, time = list[Character](), 0, start
    for word, place in zip(words, places, strict=True):
        word_start = max(word.start, time)
        spans += _divided(text[at:place], time, word_start)
        at = max(at, min(place + len(word.text), len(text)))
        time = max(word.end, word_start)
        spans += _divided(text[place:at], word_start, time)
    return spans + _divided(text[at:], time, max(end, time))


def in_seconds(characters: Sequence[Character]) -> dict[str, Any] | None:
    """The form of responses; None without characters."""
    if not characters:
        return None
    return {
        "characters": [character.sign for character in characters],
        "character_start_times_seconds": [round(character.start, 3) for character in characters],
        "character_end_times_seconds": [round(character.end, 3) for character in characters],
    }


def in_milliseconds(characters: Sequence[Character], offset: float) -> dict[str, Any] | None:
    """The form of sockets, with times later by ``offset`` seconds; None without characters."""
    if not characters:
        return None
    starts = [round((character.start + offset) * 1000) for character in characters]
    ends = [round((character.end + offset) * 1000) for character in characters]
    return {
        "chars": [character.sign for character in characters],
        "charStartTimesMs": starts,
        "charDurationsMs": [end - start for start, end in zip(starts, ends, strict=True)],
    }


def _divided(text: str, start: float, end: float) -> list[Character]:
    step = (end - start) / len(text) if text else 0.0
    return [Character(sign, start + step * at, start + step * (at + 1)) for at, sign in enumerate(text)]

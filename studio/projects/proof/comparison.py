"""Compares a text with its transcript: words left out, added, changed or repeated, and early ends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from studio.library.projects.proof_records import Kind
from studio.library.takes.take import Timed
from studio.projects.proof.spelling import are_alike, fold, is_one_piece, parts_of
from studio.speech.reading import normalised
from studio.speech.reading.language import looks_english
from studio.speech.script.brackets import TAG
from studio.speech.timing.words import places_of, with_times_as_written, words_in
from studio.work.job import check_job

SUBSTITUTED = 1.3
"""Cost of aligning two different words: more than leaving out or adding one, less than both together."""
ALIKE = 0.1
"""Cost of a word that sounds alike: lower than any fault, so that both are paired."""
JOINED = 0.2
"""Cost of two words heard as one, or one as two: "any more", "anymore"."""
LONGEST_REPEAT = 40
"""Maximum words of a repetition: longer loops are detected while the audio is generated."""
END_WORDS = 2
"""Maximum unmatched words at a missing end: a cut word is heard as another one."""
SLACK = 0.01
"""Seconds by which consecutive words may overlap."""
_CONTRACTED = {"s", "d", "m", "re", "ve", "ll"}
"""Endings that recognisers add or leave out."""
_IN_FIGURES = {"and", "a", "oh", "zero", "point"}
"""Optional words in spoken figures: "two hundred (and) five"."""
_CONTINUES = re.compile(r"[.,:'’-]\w|%$")
"""Recognisers return the pieces of "$3.50" and "twenty-one" as separate words."""
_NUMBER = re.compile(
    r"\d+(?:st|nd|rd|th|s)?|(?:zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|"
    r"(?:m|b|tr)illion|(?:thir|four|fif|six|seven|eigh|nine)teen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty)(?:th|s)?"
)
_NAME = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|St|Prof)\.|^|[^.!?…:;\"“”‘«»„\s—(\[])\s+[\"“‘«„(]?$")
"""Text before a capital that does not begin a sentence."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Words of the text, by number, and the words heard in their place, with start and end in seconds."""

    kind: Kind
    first: int
    """The number of the first word concerned; ``last`` is exclusive, and the range may be empty."""
    last: int
    start: float
    end: float
    heard: str
    """The recogniser's spelling."""
    certainty: float
    """The recogniser's confidence in the words heard, from 0 to 1; 1 for words not heard."""


class HeardWord(NamedTuple):
    """A word that was heard, with start and end in seconds, and the recogniser's confidence from 0 to 1."""

    text: str
    start: float
    end: float
    certainty: float = 1.0


class _Token(NamedTuple):
    folded: str
    word: int
    """The number of its word in the text as typed."""
    is_name: bool


class _Pair(NamedTuple):
    """Indices of aligned tokens and heard words; one of the two ranges may be empty."""

    tokens: range
    words: range
    is_match: bool


class Text:
    """A text as typed and as read, prepared for comparisons. Blocking: milliseconds."""

    def __init__(self, typed: str, read: str, language: str = "") -> None:
        """``read``: the text given to the model for ``typed``; ``language``: BCP 47, blank: guessed."""
        self.is_english = language.partition("-")[0].lower() == "en" if language else looks_english(typed)
        read = normalised(read) if self.is_english else read  # some models get figures as typed
        read_words = [read[start:end] for start, end in words_in(read)]
        typed_words = with_times_as_written(
            typed, [Timed(word, float(at), float(at + 1)) for at, word in enumerate(read_words)]
        )
        self._typed = typed
        self.read = read_words
        """The words as read."""
        self.words = [word.text for word in typed_words]
        """The words as typed."""
        self.places = places_of(typed, self.words)
        """The index of each word's first character."""
        self._blocks = [(int(word.start), max(int(word.start) + 1, ceil(word.end))) for word in typed_words]
        by_read = [0] * len(read_words)
        for number, (start, end) in enumerate(self._blocks):
            by_read[start:end] = [number] * len(by_read[start:end])
        names = [self._is_name(typed, number) for number in range(len(self.words))]
        self.tokens = [
            _Token(part, number, bool(names) and names[number])
            for word, number in zip(read_words, by_read, strict=True)
            for part in parts_of(word)
        ]

    def _is_name(self, typed: str, number: int) -> bool:
        word, place = self.words[number], self.places[number]
        return word[:1].isupper() and len(word) > 1 and bool(_NAME.search(typed[max(0, place - 20) : place]))

    def typed(self, first: int, last: int) -> str:
        """These words as typed, folded and joined."""
        return "".join(fold(word) for word in self.words[first:last])

    def has_name(self, first: int, last: int) -> bool:
        """Whether any of these words is a name: it has a capital, and does not begin a sentence."""
        return any(token.is_name for token in self.tokens if first <= token.word < last)

    def characters(self, first: int, last: int) -> tuple[int, int]:
        """The start and end of these words; without words, both are the start of the next one."""
        if first < last:
            return self.places[first], self.places[last - 1] + len(self.words[last - 1])
        place = self.places[first] if first < len(self.places) else len(self._typed)
        return place, place

    def between(self, first: int, last: int) -> str:
        """These words as typed, with the punctuation between them."""
        start, end = self.characters(first, last)
        return TAG.sub(" ", self._typed[start:end])

    def read_between(self, first: int, last: int) -> str:
        """These words as read."""
        return " ".join(self.read[self._blocks[first][0] : self._blocks[last - 1][1]]) if first < last else ""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of comparing a text with the words heard."""

    differences: tuple[Difference, ...]
    """In order."""
    times: dict[int, tuple[float, float]]
    """Start and end in seconds of the words that were heard, by their numbers."""


def compare(text: Text, words: Sequence[HeardWord]) -> Comparison:
    """Find where the audio has other words than the text. Blocking; the time grows with the product of their words.

    Raises TooCostly, Cancelled.
    """
    tokens = _tokens(words, text.is_english)
    pairs = _align(text.tokens, tokens)
    times: dict[int, tuple[float, float]] = {}
    for pair in pairs:
        if pair.is_match:
            for at in pair.tokens:
                start = times.get(text.tokens[at].word, (tokens[pair.words.start].start,))[0]
                times[text.tokens[at].word] = start, tokens[pair.words.stop - 1].end
    differences = [
        _difference(text, words, tokens, span, heard_span)
        for span, heard_span in _runs(pairs)
        if not _is_same(text, tokens, span, heard_span)
    ]
    return Comparison(tuple(differences), times)


def _tokens(words: Sequence[HeardWord], is_english: bool) -> list[HeardWord]:
    """The parts of the words heard, folded, with figures as words if the text has them as words."""
    raw_words = list[HeardWord]()
    for word in words:
        if raw_words and _CONTINUES.match(word.text):
            raw_words[-1] = HeardWord(
                raw_words[-1].text + word.text,
                raw_words[-1].start,
                word.end,
                min(raw_words[-1].certainty, word.certainty),
            )
        elif fold(word.text):
            raw_words.append(word)
    text = " ".join(word.text for word in raw_words)
    read = normalised(text) if is_english else text
    if read != text:
        read_words = [read[start:end] for start, end in words_in(read)]
        timed_words = with_times_as_written(
            read, [Timed(word.text.strip(".,;:!?…\"'"), word.start, word.end) for word in raw_words]
        )
        at, words = 0, list[HeardWord]()
        for timed in timed_words:
            while at + 1 < len(raw_words) and raw_words[at].end <= timed.start:
                at += 1
            words.append(HeardWord(*timed, raw_words[at].certainty))
        raw_words = words if len(words) == len(read_words) else raw_words
    return [
        HeardWord(part, *word[1:])
        for raw_word in raw_words
        for word in _split_letters(raw_word)
        for part in parts_of(word.text)
    ]


def _split_letters(word: HeardWord) -> list[HeardWord]:
    """The characters of a word in a script without spaces, each with its share of the time."""
    spans = words_in(word.text)
    if len(spans) < 2:
        return [word]
    step = (word.end - word.start) / len(spans)
    return [
        HeardWord(word.text[start:end], word.start + step * at, word.start + step * (at + 1), word.certainty)
        for at, (start, end) in enumerate(spans)
    ]


def _align(tokens: Sequence[_Token], words: Sequence[HeardWord]) -> list[_Pair]:
    """The cheapest way to pair the words of the text and of the audio, in order."""
    rows, columns = len(tokens), len(words)
    cost = [[float(column) for column in range(columns + 1)]]
    for i in range(1, rows + 1):
        check_job()
        row, above = [float(i)], cost[i - 1]
        for j in range(1, columns + 1):
            best = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + _substitution(tokens[i - 1], words[j - 1].text))
            if i > 1 and best > cost[i - 2][j - 1] + JOINED and _is_joined(tokens[i - 2 : i], words[j - 1 : j]):
                best = cost[i - 2][j - 1] + JOINED
            if j > 1 and best > above[j - 2] + JOINED and _is_joined(tokens[i - 1 : i], words[j - 2 : j]):
                best = above[j - 2] + JOINED
            row.append(best)
        cost.append(row)
    return _path(cost, tokens, words)


def _path(cost: list[list[float]], tokens: Sequence[_Token], words: Sequence[HeardWord]) -> list[_Pair]:
    pairs, i, j = list[_Pair](), len(tokens), len(words)
    while i or j:
        current = cost[i][j]
        for di, dj, price in _steps(tokens, words, i, j):
            if abs(cost[i - di][j - dj] + price - current) < 1e-6:
                is_match = bool(di and dj) and price < SUBSTITUTED
                pairs.append(_Pair(range(i - di, i), range(j - dj, j), is_match))
                i, j = i - di, j - dj
                break
    return pairs[::-1]


def _steps(tokens: Sequence[_Token], words: Sequence[HeardWord], i: int, j: int) -> Iterator[tuple[int, int, float]]:
    if i and j:
        yield 1, 1, _substitution(tokens[i - 1], words[j - 1].text)
    if i > 1 and j and _is_joined(tokens[i - 2 : i], words[j - 1 : j]):
        yield 2, 1, JOINED
    if i and j > 1 and _is_joined(tokens[i - 1 : i], words[j - 2 : j]):
        yield 1, 2, JOINED
    if i:
        yield 1, 0, 1.0
    if j:
        yield 0, 1, 1.0


def _substitution(token: _Token, word: str) -> float:
    if token.folded == word:
        return 0.0
    return ALIKE if are_alike(token.folded, word, token.is_name) else SUBSTITUTED


def _is_joined(tokens: Sequence[_Token], words: Sequence[HeardWord]) -> bool:
    is_name = any(token.is_name for token in tokens)
    return is_one_piece("".join(token.folded for token in tokens), "".join(word.text for word in words), is_name)


def _runs(pairs: Sequence[_Pair]) -> Iterator[tuple[range, range]]:
    """Merge neighbouring pairs that do not match."""
    run = list[_Pair]()
    for pair in (*pairs, _Pair(range(0), range(0), True)):
        if not pair.is_match:
            run.append(pair)
        elif run:
            yield range(run[0].tokens.start, run[-1].tokens.stop), range(run[0].words.start, run[-1].words.stop)
            run = []


def _is_same(text: Text, words: Sequence[HeardWord], span: range, heard_span: range) -> bool:
    """Whether both are the same in another spelling, as read or as typed, or differ only in optional words."""
    expected, heard = ([text.tokens[at].folded for at in span], [words[at].text for at in heard_span])
    if not expected or not heard:
        extra = expected or heard
        at = span.start
        neighbours = [token.folded for token in text.tokens[max(0, at - 2) : span.stop + 2]]
        is_figure = any(_NUMBER.fullmatch(word) for word in neighbours)
        return all(word in _CONTRACTED or (is_figure and word in _IN_FIGURES) for word in extra)
    numbers = {text.tokens[at].word for at in span}
    joined, typed = "".join(heard), text.typed(min(numbers), max(numbers) + 1)
    is_name = any(text.tokens[at].is_name for at in span)
    if is_one_piece("".join(expected), joined, is_name) or is_one_piece(typed, joined, is_name):
        return True
    # Figures may be read in several ways.
    return not text.is_english and any(map(str.isdigit, typed)) != any(map(str.isdigit, joined))


def _difference(
    text: Text, raw_words: Sequence[HeardWord], words: Sequence[HeardWord], span: range, heard_span: range
) -> Difference:
    before = words[heard_span.start - 1].end if heard_span.start else 0.0
    after = words[heard_span.stop].start if heard_span.stop < len(words) else words[-1].end if words else 0.0
    start, end = (
        (words[heard_span.start].start, words[heard_span.stop - 1].end) if heard_span else (before, max(before, after))
    )
    first, last = _words_of(text, span)
    certainty = sum(words[at].certainty for at in heard_span) / len(heard_span) if heard_span else 1.0
    kind = _kind(text, words, span, heard_span)
    bounds = start + SLACK, end - SLACK
    heard = " ".join(word.text for word in raw_words if heard_span and word.end > bounds[0] and word.start < bounds[1])
    return Difference(kind, first, last, start, end, heard, certainty)


def _words_of(text: Text, span: range) -> tuple[int, int]:
    if span:
        return text.tokens[span.start].word, text.tokens[span.stop - 1].word + 1
    at = text.tokens[span.start].word if span.start < len(text.tokens) else len(text.words)
    return at, at


def _kind(text: Text, words: Sequence[HeardWord], span: range, heard_span: range) -> Kind:
    is_end = span.stop == len(text.tokens) and heard_span.stop == len(words)
    if is_end and len(heard_span) <= END_WORDS and len(span) > len(heard_span):
        return "cut_end"
    if not span:
        return "repeated" if _is_repeated(words, heard_span) else "added"
    return "changed" if heard_span else "left_out"


def _is_repeated(words: Sequence[HeardWord], span: range) -> bool:
    """Whether the words repeat those directly before or after them."""
    size = len(span)
    if size > LONGEST_REPEAT:
        return False
    repeated = [word.text for word in words[span.start : span.stop]]
    neighbours = words[max(0, span.start - size) : span.start], words[span.stop : span.stop + size]
    return any(
        len(neighbour) == size and all(map(are_alike, repeated, (word.text for word in neighbour)))
        for neighbour in neighbours
    )

"""Compares a text with its transcript: words left out, added, changed or repeated, and early ends."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf
from typing import NamedTuple

from rapidfuzz.distance import LCSseq

from longform.library.proof_records import Kind
from longform.proof.spelling import are_alike, fold, is_one_piece, parts_of
from speechtext.errors import check_job
from speechtext.language import looks_english
from speechtext.reading import normalised
from speechtext.tags import TAG
from speechtext.word_times import Timed, places_of, with_times_as_written, words_in

ALONE = 10  # cost of leaving out or adding a word
SUBSTITUTED = 13
"""Cost of aligning two different words: more than leaving out or adding one, less than both together."""
ALIKE = 1  # cost of a word that sounds alike: lower than any fault, so that both are paired
JOINED = 2  # cost of two words heard as one, or one as two: "any more", "anymore"
LONGEST_REPEAT = 40
"""Maximum words of a repetition: longer loops are detected while the audio is generated."""
EXACT = 40_000
"""Products of the numbers of words up to which all pairs are tried: 200 words each, 0.1 s."""
BAND = LONGEST_REPEAT
"""Words beside the longest common sequence that are tried: a repetition can then be the first or the second time."""
END_WORDS = 2  # maximum unmatched words at a missing end: a cut word is heard as another one
SLACK = 0.01  # seconds by which consecutive words may overlap
_CONTRACTED = {"s", "d", "m", "re", "ve", "ll"}  # endings that recognisers add or leave out
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
    heard: str  # in the recogniser's spelling
    certainty: float  # the recogniser's confidence in the words heard, from 0 to 1; 1 for words not heard


class HeardWord(NamedTuple):
    """A word that was heard, with start and end in seconds, and the recogniser's confidence from 0 to 1."""

    text: str
    start: float
    end: float
    certainty: float = 1.0


class _Token(NamedTuple):
    folded: str
    word: int  # the number of its word in the text as typed
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
        self.words = [word.text for word in typed_words]  # as typed
        self.places = places_of(typed, self.words)  # of the first character of each of these
        self._blocks = [(int(word.start), max(int(word.start) + 1, ceil(word.end))) for word in typed_words]
        by_read = [0] * len(read_words)
        for number, (start, end) in enumerate(self._blocks):
            by_read[start:end] = [number] * len(by_read[start:end])
        names = [
            word[:1].isupper() and len(word) > 1 and bool(_NAME.search(typed[max(0, place - 20) : place]))
            for word, place in zip(self.words, self.places, strict=True)
        ]
        self.tokens = [
            _Token(part, number, bool(names) and names[number])
            for word, number in zip(read_words, by_read, strict=True)
            for part in parts_of(word)
        ]

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
    """The result of comparing a text with the words heard: the differences in order."""

    differences: tuple[Difference, ...]
    times: dict[int, tuple[float, float]]
    """Start and end in seconds of the words that were heard, by their numbers."""


def compare(text: Text, words: Sequence[HeardWord]) -> Comparison:
    """Find where the audio has other words than the text. Blocking: seconds for the longest part.

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
    second_above, above = dict[int, float](), dict[int, float]()
    steps = list[dict[int, tuple[int, int, bool]]]()
    """How many tokens and words the best last step pairs and whether they match, by the numbers of both."""
    heard = ["", *(word.text for word in words)]
    heard_twice = ["", *map("".join, pairwise(heard))]  # with the word before
    for i, columns in enumerate(_corridor(tokens, words)):
        check_job()
        token = tokens[i - 1] if i else _Token("", 0, False)
        twice, is_name = token.folded, token.is_name  # with the token before
        if i > 1:
            twice, is_name = f"{tokens[i - 2].folded}{twice}", is_name or tokens[i - 2].is_name
        row, steps_of_row = dict[int, float](), dict[int, tuple[int, int, bool]]()
        left, diagonal, further = inf, above.get(columns.start - 1, inf), above.get(columns.start - 2, inf)
        for j in columns:
            up = above.get(j, inf)
            alone, step = (up + ALONE, (1, 0, False)) if up <= left else (left + ALONE, (0, 1, False))
            best = alone + 1  # words are paired where that costs as much
            if diagonal < best:
                price = _substitution(token, heard[j])
                if diagonal + price < best:
                    best, step = diagonal + price, (1, 1, price < SUBSTITUTED)
            joined = second_above.get(j - 1, inf) + JOINED
            if joined < best and is_one_piece(twice, heard[j], is_name):
                best, step = joined, (2, 1, True)
            joined = further + JOINED
            if joined < best and is_one_piece(token.folded, heard_twice[j], token.is_name):
                best, step = joined, (1, 2, True)
            left = row[j] = min(best, alone) if i or j else 0
            steps_of_row[j] = step
            diagonal, further = up, diagonal
        second_above, above = above, row
        steps.append(steps_of_row)
    pairs, i, j = list[_Pair](), len(tokens), len(words)
    while i or j:
        of_tokens, of_words, is_match = steps[i][j]
        pairs.append(_Pair(range(i - of_tokens, i), range(j - of_words, j), is_match))
        i, j = i - of_tokens, j - of_words
    return pairs[::-1]


def _corridor(tokens: Sequence[_Token], words: Sequence[HeardWord]) -> list[range]:
    """The numbers of words with which each number of tokens may be paired: all of them in short texts.

    In longer ones, those within BAND of the longest common sequence, so that the work grows with the text alone.
    """
    rows, columns = len(tokens), len(words)
    if rows * columns <= EXACT:
        return [range(columns + 1)] * (rows + 1)
    first, last = [columns] * (rows + 1), [0] * (rows + 1)
    i = j = 0
    folded = [token.folded for token in tokens]
    for block in LCSseq.editops(folded, [word.text for word in words]).as_matching_blocks():
        height = max(block.a - i, 1)
        for row in range(i, block.a + 1):  # from one common word to the next one, along the diagonal
            first[row] = min(first[row], j + (block.b - j) * (row - i) // height)
            last[row] = max(last[row], min(block.b, j + ceil((block.b - j) * (row - i + 1) / height)))
        i, j = block.a + block.size, block.b + block.size
        for step in range(block.size + 1):
            first[block.a + step] = min(first[block.a + step], block.b + step)
            last[block.a + step] = max(last[block.a + step], block.b + step)
    return [range(max(0, start - BAND), min(columns, end + BAND) + 1) for start, end in zip(first, last, strict=True)]


def _substitution(token: _Token, word: str) -> int:
    if token.folded == word:
        return 0
    return ALIKE if are_alike(token.folded, word, token.is_name) else SUBSTITUTED


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
        neighbours = text.tokens[max(0, span.start - 2) : span.stop + 2]
        is_figure = any(_NUMBER.fullmatch(token.folded) for token in neighbours)
        return all(word in _CONTRACTED or (is_figure and word in _IN_FIGURES) for word in expected or heard)
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
    start, end, certainty, heard = before, max(before, after), 1.0, ""
    if heard_span:
        start, end = words[heard_span.start].start, words[heard_span.stop - 1].end
        certainty = sum(words[at].certainty for at in heard_span) / len(heard_span)
        heard = " ".join(word.text for word in raw_words if word.end > start + SLACK and word.start < end - SLACK)
    first = text.tokens[span.start].word if span.start < len(text.tokens) else len(text.words)
    last = text.tokens[span.stop - 1].word + 1 if span else first
    kind: Kind = "changed" if heard_span else "left_out"
    is_end = span.stop == len(text.tokens) and heard_span.stop == len(words)
    if is_end and len(heard_span) <= END_WORDS and len(span) > len(heard_span):
        kind = "cut_end"
    elif not span:
        kind = "repeated" if _is_repeated(words, heard_span) else "added"
    return Difference(kind, first, last, start, end, heard, certainty)


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

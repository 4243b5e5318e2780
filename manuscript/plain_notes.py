"""Finds what is no part of the book in a plain text: starred footnotes, a transcriber's notes, numbers of lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from manuscript.headings import is_heading, is_scene_break

Block = list[str]  # the stripped lines between two blank ones

WITHIN_FRONT = 20  # blocks in which a transcriber's note stands at the front
BACK = 0.8  # the share of a text after which a transcriber's notes run to its end
MAX_DISTANCE = 8  # blocks from a mark to its note: a paragraph may have several, and notes of two
LEAST_NUMBERED = 3  # lines with a number in the margin
STEPS = range(2, 21)
"""Lines from one numbered line to the next: mostly five or ten. Lists number every line."""
MAX_DIGITS = 5
_APART = ("  ", "\t")  # ends or begins the gap between a line and its number
_STARS = r"[*†‡§]{1,3}"
_MARK = re.compile(rf"(?<=[\w.,;:!?\"”’')\]]){_STARS}(?![\w*†‡§])")
_NOTE = re.compile(rf"{_STARS}[ \t]?(?=[\w\"“‘'(\[])")
_PAIRS = re.compile(r"(?<![\w*])(\*{1,3})(?=[^\s*])[^*]{1,500}(?<=[^\s*])\1(?![\w*])")
_TRANSCRIBER = re.compile(
    r"[\[*=_\s]{0,9}(?:Transcriber.{0,2}s?.{0,2}\s(?:end\s?)?(?:notes?|comments?|corrections?)|errata\b.{0,40}\btranscriber|"
    r"(?:list of )?(?:typographical )?errors? (?:corrected|noted|and (?:anomalies|inconsistencies))|"
    r"notes? (?:of|by|from) the transcriber)\b",
    re.IGNORECASE,
)
_ABOUT_FILES = re.compile(
    r"\b(?:e-?texts?|e-?books?|html|ascii|utf-8|latin-1|gutenberg|transcri\w{1,8}|typograph\w{1,6}|misprints?|"
    r"proofread\w{0,4}|hyphenat\w{1,4}|spellings?|underscores?|page numbers?)\b",
    re.IGNORECASE,
)
"""What notes about the making of a file mention, and stories seldom at their front."""


def without_star_notes(blocks: Sequence[Block]) -> tuple[list[Block], int]:
    """The blocks without notes that begin with a star and without their marks, and the number of notes.

    A block is a note only if a mark above it waits for one; so items of lists and emphasis stay.
    """
    waiting: list[int] = []  # blocks of marks without their notes
    marked, notes = set[int](), set[int]()
    for at, block in enumerate(blocks):
        text = " ".join(block)
        waiting = [mark for mark in waiting if at - mark <= MAX_DISTANCE]
        is_note = waiting and _NOTE.match(text) and not _PAIRS.match(text) and not is_scene_break(text)
        if is_note:
            marked.add(waiting.pop(0))
            notes.add(at)
            continue
        waiting += [at] * len(_MARK.findall(_PAIRS.sub("", text)))
    if not notes:
        return list(blocks), 0
    remaining = [_without_marks(block) if at in marked else block for at, block in enumerate(blocks) if at not in notes]
    return remaining, len(notes)


def without_transcriber(blocks: Sequence[Block]) -> tuple[list[Block], bool]:
    """The blocks without the transcriber's notes at the front and at the end, and whether there were any."""
    titles = [at for at, block in enumerate(blocks) if _is_title(block[0])]
    end = next((at for at in titles if at >= BACK * len(blocks) and at > WITHIN_FRONT), len(blocks))
    left_out = set(range(end, len(blocks)))
    for title in (at for at in titles if at < min(end, WITHIN_FRONT)):
        left_out.add(title)
        for at in range(title + 1, min(end, WITHIN_FRONT)):
            text = " ".join(blocks[at])
            if is_heading(text) or not _ABOUT_FILES.search(text):
                break
            left_out.add(at)
    return [block for at, block in enumerate(blocks) if at not in left_out], bool(left_out)


def without_line_numbers(blocks: Sequence[Block]) -> tuple[list[Block], int]:
    """The blocks without the numbers of lines of verse in the margin, and how many there were.

    Numbers count the lines: they grow by the number of lines from one to the next, always by the same step.
    """
    places, numbers, line_count = list[tuple[int, int, str]](), list[tuple[int, int]](), 0
    for at, block in enumerate(blocks):
        for row, line in enumerate(block):
            line_count += 1
            number, rest = _in_margin(line)
            if number:
                places.append((at, row, rest))
                numbers.append((number, line_count))
    steps = [
        number - before if number - before == count - above and number - before in STEPS else 0
        for (before, above), (number, count) in pairwise(numbers)
    ]
    [(step, times)] = Counter(filter(None, steps)).most_common(1) or [(0, 0)]
    if times < LEAST_NUMBERED - 1:
        return list(blocks), 0
    remaining = [list(block) for block in blocks]
    numbered = {place for pair, found in zip(pairwise(places), steps, strict=True) if found == step for place in pair}
    for at, row, rest in numbered:
        remaining[at][row] = rest
    return remaining, len(numbered)


def _in_margin(line: str) -> tuple[int, str]:
    """The number before or after a line, apart from it, and the line without it; 0 if there is none."""
    head, tail = line.split(maxsplit=1)[0], line.rsplit(maxsplit=1)[-1]
    if tail.isdecimal() and len(tail) <= MAX_DIGITS and (rest := line[: -len(tail)]).endswith(_APART) and rest.strip():
        return int(tail), rest.rstrip()
    if head.isdecimal() and len(head) <= MAX_DIGITS and (rest := line[len(head) :]).startswith(_APART) and rest.strip():
        return int(head), rest.lstrip()
    return 0, line


def _without_marks(block: Block) -> Block:
    """Without the marks of notes, and without pairs of stars around emphasis, which look like them."""
    text = _PAIRS.sub(lambda pair: pair[0][len(pair[1]) : -len(pair[1])], "\n".join(block))
    return _MARK.sub("", text).split("\n")


def _is_title(line: str) -> bool:
    """Whether a line is the title of a transcriber's notes, or begins them after a colon or a full stop."""
    title = _TRANSCRIBER.match(line)
    return title is not None and (
        line.isupper() or line[title.end() : title.end() + 1] in ("", ":", ".", "]", "*", "=", "_")
    )

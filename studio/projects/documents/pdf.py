"""PDF: its text as paragraphs, without what repeats on each page; read by a program of its own, within limits."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from threading import Semaphore
from typing import Any

from studio.errors import InvalidDocument
from studio.library.projects.records import MAX_AUTHOR
from studio.projects.documents.headings import is_heading
from studio.projects.documents.passages import MAX_TEXT, Document, Passage

PROGRAM = Path(__file__).with_name("pdf_text.py")
SECONDS = 150
"""After which a PDF is given up."""
FEW = 8
"""Letters and digits a page; with fewer it is a scan, of which at most a page number can be read."""
EDGE = 2
"""Lines at the top and at the bottom of a page that may be repeated on the others."""
MAX_TITLE = 200

_AT_ONCE = Semaphore(2)
"""Others wait: reading takes a whole core."""
_HYPHEN = re.compile(r"(?<=[^\W\d_])[-\u00ad]\Z")
_ENDS = re.compile(r"[.!?:…。！？][\"'”’»)\]]*\Z")
_NUMBER = re.compile(r"\d+")


def read_pdf(data: bytes) -> Document:
    """Lines become paragraphs again, by their lengths; the outline's first two levels, or headings, begin chapters.

    Raises InvalidDocument for a scan without text, one with a password, and what takes too long or too much memory.
    """
    told = _extracted(data)
    if "error" in told:
        raise InvalidDocument(f"this PDF cannot be read: {told['error']}", "file")
    pages = [[" ".join(line.split()) for line in page.splitlines()] for page in told["pages"]]
    signs = sum(sign.isalnum() for page in pages for line in page for sign in line)
    if signs < FEW * max(1, len(pages)):
        raise InvalidDocument(
            "this PDF has no text, as if its pages were scanned: have a program for text recognition (OCR) make one",
            "file",
        )
    if signs > MAX_TEXT:
        raise InvalidDocument(f"the PDF has more than {MAX_TEXT} characters of text", "file")
    chapters: dict[int, list[str]] = {}
    for page, title in told["outline"]:
        chapters.setdefault(page, []).append(" ".join(title.split())[:MAX_TITLE])
    passages = tuple(_passages(_without_edges(pages, chapters), chapters))
    title, author = (" ".join(str(told[name]).split())[:MAX_TITLE] for name in ("title", "author"))
    return Document(passages, True, title, author[:MAX_AUTHOR])


def _extracted(data: bytes) -> dict[str, Any]:
    """What the program tells. Raises InvalidDocument when it came to no end."""
    command = [sys.executable, "-I", str(PROGRAM)]
    try:
        with _AT_ONCE:
            done = subprocess.run(
                command, input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=SECONDS, check=False
            )
    except subprocess.TimeoutExpired:
        raise InvalidDocument("this PDF takes too long to read", "file") from None
    if done.returncode or not done.stdout:
        raise InvalidDocument("this PDF takes too long, or too much memory, to read", "file")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _without_edges(pages: list[list[str]], chapters: Mapping[int, list[str]]) -> list[list[str]]:
    """The pages without their numbers, and without the short lines that many of them have at an end.

    What could be the title of a chapter stays.
    """
    whole = [[line for line in page if line] for page in pages]
    usual = _usual_length(whole)
    edges = Counter(
        edge
        for number, page in enumerate(whole)
        for line in {*page[:EDGE], *page[-EDGE:]}
        for edge in {_form(line, number), (line.casefold(), -1)}
    )

    def stays(number: int, page: list[str], at: int) -> bool:
        line = page[at]
        if EDGE <= at < len(page) - EDGE or is_heading(line) or _title_of(line, chapters.get(number, ())):
            return True
        if line == str(number + 1):
            return False
        often = max(edges[_form(line, number)], edges[(line.casefold(), -1)])
        return len(line) > 0.8 * usual or often <= max(2, len(whole) / 3)

    return [[line for at, line in enumerate(page) if stays(number, page, at)] for number, page in enumerate(whole)]


def _form(line: str, page: int) -> tuple[str, int]:
    """The same for lines that differ only in the number of their page, however pages are counted."""
    found = _NUMBER.search(line)
    offset = int(found[0][:9]) - page if found else 0
    return _NUMBER.sub("0", line.casefold(), count=1), offset


def _usual_length(pages: Iterable[list[str]]) -> int:
    """Of a line that is full."""
    lengths = sorted(len(line) for page in pages for line in page)
    return lengths[len(lengths) * 3 // 4] if lengths else 0


def _passages(pages: Sequence[list[str]], chapters: Mapping[int, list[str]]) -> Iterator[Passage]:
    """Paragraphs, which may go on from one page to the next, but not into a chapter."""
    usual = _usual_length(pages)
    held = before = chapter = ""
    for number, page in enumerate(pages):
        titles = chapters.get(number, [])
        found = [_title_of(line, titles) for line in page]
        unseen = next((title for title in titles if title not in found), "")  # it begins with its page
        if unseen:
            yield from _passage(held, chapter)
            held, chapter = "", unseen
        for line, title in zip(page, found, strict=True):
            if title:
                yield from _passage(held, chapter)
                yield from _passage(line, title)
                held = before = chapter = ""
                continue
            if held and _ends_before(before, line, usual):
                yield from _passage(held, chapter)
                held = chapter = ""
            held, before = _joined(held, line), line
    yield from _passage(held, chapter)


def _title_of(line: str, titles: Iterable[str]) -> str:
    """The title that a line is, maybe without its number; blank where it is none."""
    letters = _letters(line)
    return next((each for each in titles if len(letters) > 1 and _letters(each).endswith(letters)), "")


def _letters(text: str) -> str:
    return "".join(sign for sign in text.casefold() if sign.isalnum())


def _ends_before(line: str, following: str, usual: int) -> bool:
    """Whether a paragraph ends with a line: a short one, where the next begins anew."""
    if is_heading(following) or is_heading(line):
        return True
    if following[:1].islower() or _HYPHEN.search(line):
        return False
    return len(line) < (0.85 if _ENDS.search(line) else 0.6) * usual


def _joined(held: str, line: str) -> str:
    if not held:
        return line
    if _HYPHEN.search(held) and line[:1].islower():
        return held[:-1] + line
    return f"{held} {line}"


def _passage(text: str, chapter: str) -> Iterator[Passage]:
    if any(sign.isalnum() for sign in text):
        yield Passage(text, chapter=chapter or (text if is_heading(text) else ""))

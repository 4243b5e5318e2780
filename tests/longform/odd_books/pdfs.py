"""PDFs as printers, converters and scientists make them."""

from __future__ import annotations

from tests.longform.odd_books.odd_book import OddBook
from tests.studio.documents import pdf, placed

LONG = "This is a line that is as long as the lines of a page of print are, more or less"


def two_columns_row_by_row() -> OddBook:
    left = ("Left column line one is", "about cats and how they", "sleep all the day long.")
    right = ("Right column line one is", "about dogs and how they", "run all the day long.")
    pieces = [(40.0, 700.0, 14.0, "The whole page has this line above its two narrow columns.")]
    for row, texts in enumerate(zip(left, right, strict=True)):
        pieces += [(x, 660.0 - 12 * row, 9.0, text) for x, text in zip((40.0, 220.0), texts, strict=True)]
    texts = ("about cats and how they sleep", "Right column line one is about dogs")
    return OddBook("x.pdf", pdf([placed(*pieces)]), (), texts)


def two_columns_in_one_line() -> OddBook:
    row = "({}) Tj 180 0 Td (and the right one goes on here) Tj -180 -14 Td\n"
    rows = "".join(row.format(f"The left column has its line {number}") for number in "abcdefgh")
    return OddBook("x.pdf", pdf([f"BT /F1 9 Tf 40 700 Td\n{rows}ET".encode()]), (), ("The left column",), skipped=1)


def running_heads_of_chapters() -> OddBook:
    def page(number: int, chapter: str, begins: bool) -> list[str]:
        head = [chapter] if begins else [f"{number}  {chapter.upper()}" if number % 2 else "A BOOK OF HEADS"]
        return [*head, f"{LONG} {number},", f"{LONG},", f"and so on to the end of {number}.", f"- {number} -"]

    pages = [page(number, f"Chapter {1 + number // 6}", number % 6 == 0) for number in range(24)]
    chapters = tuple(f"Chapter {number}" for number in range(1, 5))
    return OddBook(
        "x.pdf", pdf([["iv"], *pages]), chapters, ("are, more or less 0,",), ("BOOK OF HEADS", "CHAPTER", "- 7 -", "iv")
    )


def outline_over_headings() -> OddBook:
    pages = [
        [
            "1",
            "The Long Title of",
            "the Beginning",
            f"{LONG},",
            "with a well-",
            "known exam-",
            "ple of well-known words.",
        ],
        [f"{LONG}.", "Chapter 9", "is not in the outline.", "2.1. The End", "It ended."],
    ]
    outline = [(0, "1 The Long Title of the Beginning"), (1, "The End")]
    texts = ("with a well-known example of well-known words.", "Chapter 9", "It ended.")
    return OddBook("x.pdf", pdf(pages, outline), tuple(title for _, title in outline), texts, title="A PDF")


def notes_and_their_marks() -> OddBook:
    pieces = (
        (72.0, 700.0, 12.0, "The king had a dog"), (175.0, 704.5, 7.0, "1"), (180.0, 700.0, 12.0, " and ten to the 10"),
        (280.0, 704.5, 7.0, "6"), (290.0, 700.0, 12.0, " cats."), (330.0, 704.5, 7.0, "2"),
        (72.0, 684.0, 12.0, "They lived long."), (72.0, 100.0, 8.0, "1 A terrier."), (72.0, 90.0, 8.0, "2 See there."),
    )  # fmt: skip
    texts = ("The king had a dog and ten to the 10⁶ cats. They lived long.",)
    return OddBook("x.pdf", pdf([placed(*pieces)]), (), texts, ("dog1", "cats.2", "terrier", "See there"), skipped=1)


def contents_and_chapters() -> OddBook:
    listed = ["Contents", "Chapter 1 The Rain . . . . . . 2", "Chapter 2 The Sun . . . . . . . 3", "Index . . . . . 4"]
    pages = [
        listed,
        ["Chapter 1", "The Rain", f"{LONG}."],
        ["Chapter 2", "The Sun", f"{LONG}.", "* * *", "It was over."],
    ]
    texts = ("as long as", "as long as", "It was over.")
    return OddBook(
        "x.pdf", pdf(pages), ("Chapter 1 The Rain", "Chapter 2 The Sun"), texts, (". . .", "Index", "*"), skipped=1
    )


def chapters_above_prose() -> OddBook:
    def page(number: int, *titles: str) -> bytes:
        lines = [
            "It was a bright cold day in the month of April and the clocks of the",
            "town were silent.",
            f"{LONG}.",
        ]
        large = [(72.0, 740.0 - 20 * at, 18.0, title) for at, title in enumerate((f"CHAPTER {number}", *titles))]
        return placed(*large, *((72.0, 640.0 - 14 * at, 12.0, line) for at, line in enumerate(lines)))

    pages = [page(1), page(2, "Down the", "Long Hole")]
    texts = ("It was a bright cold day in the month of April and the clocks of the town",)
    return OddBook("x.pdf", pdf(pages), ("CHAPTER 1", "CHAPTER 2 Down the Long Hole"), texts)


def turned_pages() -> OddBook:
    rows = [("The king had a dog", 12, 0.0), ("1", 7, 4.5), (" and a cat.", 12, 0.0)]
    drawn = [
        f"BT /F1 {size} Tf 0 1 -1 0 {200 - rise} {100 + 105 * at} Tm ({text}) Tj ET"
        for at, (text, size, rise) in enumerate(rows)
    ]
    lines = [f"BT /F1 12 Tf 0 1 -1 0 {214 + 14 * at} 100 Tm ({LONG}.) Tj ET" for at in range(3)]
    texts = ("The king had a dog and a cat.", f"{LONG}. {LONG}. {LONG}.")
    return OddBook("x.pdf", pdf(["\n".join([*drawn, *lines]).encode()]), (), texts)


PDFS = (
    two_columns_row_by_row, two_columns_in_one_line, running_heads_of_chapters, outline_over_headings,
    notes_and_their_marks, contents_and_chapters, chapters_above_prose,
    turned_pages,
)  # fmt: skip

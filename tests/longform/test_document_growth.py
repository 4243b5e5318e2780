"""Twice the document costs every reader at most three times the work; a document beyond a limit costs little."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from manuscript.cast import Casting, split_by_speaker
from manuscript.documents import Document, Passage, into_parts, read_document
from manuscript.passages import InvalidDocument
from tests.growth import PIECES, check, cost, pieces
from tests.studio.documents import docx, epub, page, pdf

DOCUMENTS: dict[str, Callable[[str], bytes]] = {
    "txt": str.encode,
    "md": str.encode,
    "csv": lambda text: b"text\n" + text.encode(),
    "srt": lambda text: b"1\n00:00:01,000 --> 00:00:02,000\n" + text.encode(),
    "epub": lambda text: epub({"a.xhtml": page(text)}),
    "epub, cut off": lambda text: epub({"a.xhtml": f"<p>Hi</p>{text}"}),
}
HARD = {name: PIECES[name] for name in ("lines", "letters", "blanks", "blank lines", "opened tags", "names")} | {
    "quotes": "> ",
    "emphasis": "*a _b",
    "links": "[a](<b",
    "code": "`a``",
    "opened markup": "<a ",
    "closed markup": "</",
    "comments": "<!--",
    "entities": "&am",
    "paragraphs": "<p>a</p>\n\n",
    "rows": '"a",b\n',
    "tiny paragraphs": "a\n\n",
    "headings": "Chapter 1: a\n\n",
    "notes": "a[^1]\n\n[^1]: a\n\n",
    "emphasis of words": "_a ",
    "illustrations": "[Illustration: ",
    "cues": "\n2\n00:00:01,000 --> 00:00:02,000\nHello\n",
}


MARKED_UP = {
    "emphasis",
    "links",
    "code",
    "opened markup",
    "closed markup",
    "comments",
    "entities",
    "paragraphs",
    "notes",
}
"""Nothing but letters to the other formats."""
READ = [(name, kind) for name in DOCUMENTS for kind in HARD if name.startswith(("md", "epub")) or kind not in MARKED_UP]


@pytest.mark.parametrize(("format_name", "kind"), READ)
def test_documents_are_read_in_linear_time(format_name: str, kind: str) -> None:
    def read(text: str) -> object:
        document = read_document(DOCUMENTS[format_name](text), format_name.partition(",")[0])
        return into_parts(document)

    check(read, pieces(HARD[kind]), 2048)


DIALOGUE = {name: PIECES[name] for name in ("sentences", "letters", "blanks", "names", "quotes") if name in PIECES} | {
    "single words": "\u2018a\u2019 ",
    "single openings": "\u2018a ",
    "double words": "\u201ca\u201d ",
    "double openings": "\u201ca ",
    "nested": "\u201c\u2018a\u2019 b\u201d ",
    "straight": '"a" ',
    "straight single": "'a' ",
    "dashes": "\u2014 a, dit Anna. ",
    "tags": "\u201ca,\u201d said Anna. ",
    "addressed": "\u201ca, Anna, a.\u201d said Ben. ",
    "capitals": "Aa Bb Cc ",
    "unbalanced": "\u201ca \u00abb \u2018c\u201d ",
    "script": "Anna: a\n\nBen: b\n\n",
    "turns": "\u201ca.\u201d\n\n",
}


@pytest.mark.parametrize("kind", DIALOGUE)
def test_speakers_are_found_in_linear_time(kind: str) -> None:
    def cast(text: str) -> object:
        passages = tuple(Passage(paragraph) for paragraph in text.split("\n\n"))
        return split_by_speaker(Document(passages, prose=True), Casting({}), find_speakers=True)

    check(cast, pieces(DIALOGUE[kind]), 4096)


PAGES = {
    "raised digits": "a<sup>1</sup>",
    "raised digits alone": "<sup>1</sup>",
    "marks": "<a href='#x'>[1]</a>",
    "open links": "<a href='#x'>",
    "lists": "<ol><li>a",
    "items": "<li>a</li>",
    "deep": "<div>",
    "ids": "<a id='x'></a> ",
    "headings": "<h2>a</h2>",
    "open headings": "<h1>a<br/>",
    "rules": "<hr/>",
    "page numbers": "<span class='pagenum'> <b>",
    "numbers of lines": "<p class='page'>a",
    "formulas": "<math><mi>a</mi></math>",
    "deep formulas": "<math><mrow><mi>a",
    "formulas with text": "<math>a</x>",
    "initials": "<p>A</p><p>b c</p>",
    "verses": "<sup>1</sup>A ",
    "links in a row": "<p><a href='#x'>Chapter</a></p>",
    "notes": "<aside epub:type='footnote' id='x'>a</aside>",
    "drawings": "<svg><text>a</text></svg>",
    "open drawings": "<svg><text>",
    "sections": "<![CDATA[a]]>",
    "open sections": "<![CDATA[",
    "attributes": "<p a='1' b='2' c>",
}
ONE_TAG = {"attributes of one tag": "a='1' ", "names of one tag": "a "}


@pytest.mark.parametrize("kind", PAGES | ONE_TAG)
def test_a_page_of_an_epub_is_read_in_linear_time(kind: str) -> None:
    before = "<p " if kind in ONE_TAG else ""
    make = pieces((PAGES | ONE_TAG)[kind])
    check(lambda text: read_document(epub({"a.xhtml": f"{before}{text}>"}), "epub"), make, 2048)


@pytest.mark.parametrize("piece", ["<!ENTITY a 'b'>", "<!ENTITY a '", "<!--", "<?a ", "'\"", "<!ENTITY a '&a;'>"])
def test_declarations_of_a_page_are_read_in_linear_time(piece: str) -> None:
    make = pieces(piece)
    check(
        lambda text: read_document(epub({"a.xhtml": f"<!DOCTYPE a [{text[1:]}]><p>a{'&a;' * 99}"}), "epub"), make, 2048
    )


def test_table_of_contents_is_followed_in_linear_time() -> None:
    def read(text: str) -> object:
        numbers = range(len(text) // 100)
        links = "".join(f"<li><a href='a.xhtml#n{number}'>Title {number}</a></li>" for number in numbers)
        body = "".join(f"<h2 id='n{number}'>Title {number}</h2><hr/>" for number in numbers)
        return read_document(epub({"a.xhtml": page(f"{body}a")}, nav=f"<nav epub:type='toc'>{links}</nav>"), "epub")

    check(read, pieces("a"), 4096)


WORD = {
    "paragraphs": "<w:p><w:r><w:t>a b</w:t></w:r></w:p>",
    "blank paragraphs": "<w:p/>",
    "headings": "<w:p><w:pPr><w:pStyle w:val='h'/></w:pPr><w:r><w:t>a</w:t></w:r></w:p>",
    "items": "<w:p><w:pPr><w:numPr><w:numId w:val='1'/></w:numPr></w:pPr><w:r><w:t>a</w:t></w:r></w:p>",
    "runs": "<w:r><w:t>a b. </w:t></w:r>",
    "initials": "<w:p><w:r><w:t>A</w:t></w:r></w:p><w:p><w:r><w:t>b c</w:t></w:r></w:p>",
    "raised runs": "<w:r><w:rPr><w:vertAlign w:val='superscript'/></w:rPr><w:t>1</w:t></w:r>",
}


@pytest.mark.parametrize("kind", WORD)
def test_a_word_document_is_read_in_linear_time(kind: str) -> None:
    styles = "<w:style w:styleId='h'><w:name w:val='heading 1'/></w:style>"
    level = "<w:lvl w:ilvl='0'><w:numFmt w:val='decimal'/><w:lvlText w:val='%1.'/></w:lvl>"
    numbering = f"<w:abstractNum w:abstractNumId='0'>{level}</w:abstractNum>"
    numbering += "<w:num w:numId='1'><w:abstractNumId w:val='0'/></w:num>"

    def read(text: str) -> object:
        markup = WORD[kind] * (len(text) // len(WORD[kind]))
        body = markup if WORD[kind].startswith("<w:p") else f"<w:p>{markup}</w:p>"
        last = "<w:p><w:r><w:t>z</w:t></w:r></w:p>"
        return read_document(docx(f"{body}{last}", styles=styles, numbering=numbering), "docx")

    check(read, pieces("a"), 4096)


COSTLY = {
    ("paragraphs", "txt"): "I\n\n",
    ("paragraphs", "md"): "I\n\n",
    ("items", "md"): "- I\n",
    ("brackets", "md"): "[",
    ("images", "md"): "![",
    ("rows", "csv"): "text\n",
}
MANY: dict[str, Callable[[], bytes]] = {
    "tags.epub": lambda: epub({"a.xhtml": page("<b>" * 2_100_000)}),
    "attributes.epub": lambda: epub({"a.xhtml": f"<p {'a ' * 2_100_000}>a"}),
    "entities.epub": lambda: epub(dict.fromkeys("ab", f"<!DOCTYPE a [<!ENTITY a '{'a ' * 9999}'>]><p>{'&a;' * 40}")),
    "paragraphs.docx": lambda: docx("<w:p/>" * 300_000),
}


@pytest.mark.parametrize("name", MANY)
def test_book_beyond_a_limit_is_refused(name: str) -> None:
    data = MANY[name]()
    with pytest.raises(InvalidDocument, match="has more than"):
        into_parts(read_document(data, name.partition(".")[2]))


@pytest.mark.parametrize(("name", "kind"), COSTLY)
def test_document_beyond_a_limit_is_refused_without_reading_it(name: str, kind: str) -> None:
    """300,000 pieces cost less to refuse than 120,000 would cost to read."""
    piece = COSTLY[name, kind]

    def read(text: str) -> object:
        return into_parts(read_document(text.encode(), kind))

    def is_refused(text: str) -> None:
        with pytest.raises(InvalidDocument, match="has more than"):
            read(text)

    assert cost(is_refused, piece * 300_000) < 8 * cost(read, piece * 15_000)


def test_a_long_book_is_read_in_seconds() -> None:
    sentence = "<p>It was a dark and stormy night, and nobody of them said “No” to that. So it went on.</p>"
    pages = {f"{number}.xhtml": page(f"<h1>Chapter {number}</h1>{sentence * 580}") for number in range(30)}

    def read(book: bytes) -> None:
        assert len(into_parts(read_document(book, "epub"))) > 3_000

    book = epub(pages)
    started = time.thread_time()
    read(book)
    assert time.thread_time() - started < 5  # about half of one on a core of today


def test_wrapped_paragraph_is_joined_in_linear_time() -> None:
    """Copying the whole paragraph for every line is measurable only if it exceeds the processor's cache."""
    line = pieces("A line that is long enough to have been wrapped by somebody,\n")
    check(lambda text: read_document(text.encode(), "txt"), line, 1 << 19)


def pdf_of_equal_lines(size: int) -> str:
    """No line is shorter than the others, as in a list of telephone numbers or a program."""
    line = "This is a line of just as many signs as all the others are ab"
    count = size // len(line)
    return pdf([[line] * min(50, count - at) for at in range(0, count, 50)]).decode("latin-1")


def pdf_of_bookmarks(size: int) -> str:
    """All bookmarks point to one page with as many lines."""
    count = size // 20
    titles = [f"{number} The Same Title" for number in range(count)]
    return pdf([titles], [(0, title) for title in titles]).decode("latin-1")


@pytest.mark.parametrize(("make", "size"), [(pdf_of_equal_lines, 1 << 16), (pdf_of_bookmarks, 1 << 13)])
def test_a_pdf_is_read_in_linear_time(make: Callable[[int], str], size: int) -> None:
    def read(text: str) -> object:
        return into_parts(read_document(text.encode("latin-1"), "pdf"))

    check(read, make, size)

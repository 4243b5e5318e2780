"""Word documents, PDFs and Markdown: the text that is read aloud, and clear errors for the rest."""

from __future__ import annotations

import io
import zipfile
from html import escape

import pytest

from manuscript.documents import into_parts, read_document
from manuscript.passages import InvalidDocument
from tests.studio.documents import docx, epub, page, pdf


def p(text: str, style: str = "", more: str = "") -> str:
    return f'<w:p><w:pPr><w:pStyle w:val="{style}"/>{more}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>'


STYLES = "".join(
    f'<w:style w:styleId="{style}"><w:name w:val="{name}"/></w:style>'
    for style, name in (("berschrift1", "heading 1"), ("Titel", "Title"), ("V1", "toc 1"))
)


def test_word_document_is_read_as_displayed() -> None:
    box = f"<mc:Choice>{p('In a box.')}</mc:Choice><mc:Fallback>{p('In a box.')}</mc:Fallback>"
    body = (
        p("My Book", "Titel") + p("One 3", "V1") + p("One", "berschrift1")
        + "<w:p><w:r><w:t>Café &amp; </w:t></w:r><w:del><w:r><w:delText>not this</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t xml:space='preserve'>tea</w:t><w:br/><w:t>here.</w:t></w:r></w:ins>"
        "<w:r><w:instrText>PAGE</w:instrText></w:r></w:p>"
        f"<w:tbl><w:tr><w:tc>{p('A cell.')}</w:tc></w:tr></w:tbl><w:p><w:r>{box}<w:t>After.</w:t></w:r></w:p>"
        + "<w:altChunk/>" + p("***") + p("Two", more='<w:outlineLvl w:val="1"/>') + p("The end.", "Standard")
    )  # fmt: skip
    about = "<dc:title></dc:title><dc:creator>Ann A.</dc:creator><dc:language>de-DE</dc:language>"
    document = read_document(docx(body, about, STYLES), "docx")
    assert (document.title, document.author, document.language) == ("My Book", "Ann A.", "de-DE")
    assert [(passage.text, passage.chapter) for passage in document.passages] == [
        ("My Book", ""), ("One", "One"), ("Café & tea here.", ""), ("A cell.", ""), ("In a box.", ""), ("After.", ""),
        ("Two", "Two"), ("The end.", ""),
    ]  # fmt: skip
    assert [words.partition(":")[0] for words in document.skipped] == [
        "The table of contents is left out.", "1 document in this one is left out",
    ]  # fmt: skip


MATHS = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'


def m(name: str, *children: str) -> str:
    return f"<m:{name} {MATHS}>{''.join(children)}</m:{name}>"


def run(text: str) -> str:
    return m("r", m("t", text))


def test_equations_of_a_word_document_are_read_or_listed() -> None:
    power, fraction = m("sSup", m("e", run("c")), m("sup", run("2"))), m("f", m("num", run("a")), m("den", run("bc")))
    total = m("nary", m("naryPr", f'<m:chr {MATHS} m:val="∑"/>'), m("sub", run("i=1")), m("sup"), m("e", run("speed")))
    texts = [r"$E=m c^{2}$", r"$\frac{a}{b c}$", r"$\sum_{i=1} \text{ speed }$", "n", ""]
    formulas = [run("E=m") + power, fraction, total, run("n"), ""]
    body = "".join(
        f"<w:p><w:r><w:t>Here</w:t></w:r>{m('oMath', each)}<w:r><w:t>.</w:t></w:r></w:p>" for each in formulas
    )
    document = read_document(docx(body), "docx")
    assert [passage.text for passage in document.passages] == [f"Here{text or ' '}." for text in texts]
    assert document.skipped == ("1 formula is left out: it is too long, or empty.",)


def test_initial_in_a_frame_of_its_own_belongs_to_the_paragraph_below() -> None:
    body = p("T", more='<w:framePr w:dropCap="drop"/>') + p("he ferry left.")
    assert [passage.text for passage in read_document(docx(body), "docx").passages] == ["The ferry left."]


@pytest.mark.parametrize(
    ("creator", "subtitle", "author"),
    [
        ("", "by Jane Doe", "Jane Doe"), ("python-docx", "Jane Doe", "Jane Doe"), ("Ann A.", "by Jane Doe", "Ann A."),
        ("Microsoft Office User", "von Johann Wolfgang von Goethe", "Johann Wolfgang von Goethe"),
        ("", "Par Voltaire", "Voltaire"), ("", "J. R. O’Neill & Mary-Ann Li", "J. R. O’Neill & Mary-Ann Li"),
        ("", "BY ANN AND BO LEE", "ANN AND BO LEE"), ("", "JANE DOE", "JANE DOE"), ("", "A Novel", ""),
        ("", "By the sea", ""), ("", "De la Terre à la Lune", ""), ("", "Ein Roman", ""), ("User", "Chapter One", ""),
        ("", "Voltaire", ""), ("", "Tales of the Night", ""), ("", "It was late.", ""), ("", "by", ""),
    ],
)  # fmt: skip
def test_author_of_a_word_document_is_taken_from_metadata_or_subtitle(creator: str, subtitle: str, author: str) -> None:
    styles = STYLES + '<w:style w:styleId="U"><w:name w:val="Subtitle"/></w:style>'
    body = p("My Book", "Titel") + p(escape(subtitle), "U") + p("One", "berschrift1") + p("Jane Doe", "U")
    document = read_document(docx(body, f"<dc:creator>{creator}</dc:creator>", styles), "docx")
    assert document.author == author


TABLE = [
    (["Day", "High water", ""], ["Day, High water"]),
    (["Tuesday:", "4:15", "3.2 m"], ["Tuesday: 4:15, 3.2 m"]),
    (["ROMEO.", "But soft"], ["ROMEO.", "But soft"]),
    (["Chapter 1", "7"], ["Chapter 1", "7"]),
    (["a", "long " * 13], ["a", ("long " * 13).strip()]),
]


def test_short_cells_of_a_row_are_joined_into_one_line() -> None:
    cell = "<w:tc>{}</w:tc>".format
    rows = "".join(f"<w:tr>{''.join(cell(p(text)) for text in row)}</w:tr>" for row, _ in TABLE)
    two = f"<w:tr>{cell(p('left') + p('below'))}{cell(p('right'))}</w:tr>"
    nested = f"<w:tr>{cell(f'<w:tbl>{two}</w:tbl>' + p('x'))}{cell(p('y'))}</w:tr>"
    table = f"{p('Before.')}<w:tbl>{rows}{two}</w:tbl><w:tbl>{nested}</w:tbl>"
    lines = [line for _, lines in TABLE for line in lines]
    found = [each.text for each in read_document(docx(table), "docx").passages]
    assert found == ["Before.", *lines, "left", "below", "right", "left", "below", "right", "x, y"]
    html = "".join(f"<tr>{''.join(f'<td><p>{text}</p></td>' for text in row)}</tr>" for row, _ in TABLE)
    html += "<tr><td><p>left</p><p>below</p></td><td>right</td></tr><tr><td><h3>one</h3></td><td>two</td></tr>"
    book = read_document(epub({"a.xhtml": page(f"<h1>T</h1><table>{html}</table>")}), "epub")
    assert [each.text for each in book.passages][1:] == [*lines, "left", "below", "right", "one", "two"]
    text = "\n".join(f"| {' | '.join(row + [''] * (3 - len(row)))} |" for row, _ in TABLE)
    markdown = text.replace("\n", "\n|---|---|---|\n", 1)
    assert [each.text for each in read_document(markdown.encode(), "md").passages] == lines


def test_verse_of_a_word_document_keeps_its_lines() -> None:
    lines = ["And he who leaves the quiet harbour in the night", "Must find", "his way.", "The way is long."]
    verse = "</w:t><w:br/><w:t>".join(lines[:3]) + "</w:t><w:cr/><w:t>" + lines[3]
    over_pages = "It was</w:t><w:br w:type='page'/><w:t>Monday."
    heading = "Chapter 1</w:t><w:br/><w:t>The Quay"
    document = read_document(docx(p(heading) + p(verse) + p(over_pages)), "docx")
    assert [(passage.text, passage.chapter) for passage in document.passages] == [
        ("Chapter 1 The Quay", "Chapter 1 The Quay"),
        (f"{lines[0]}\nMust find his way.\nThe way is long.", ""),
        ("It was Monday.", ""),
    ]


def archive(**files: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name.replace("__", "/") + ".xml", content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\xd0\xcf\x11\xe0" + bytes(99), "old Word document .*password"),
        (b"PK nothing", "not a readable Word document"),
        (archive(content="<x/>"), "not a Word document"),
        (archive(word__document="<w:p"), "malformed"),
        (archive(word__document=" " * 9000 + "<!DOCTYPE x [<!ENTITY a 'b'>]><x>&a;</x>"), "document type"),
        (archive(word__document="<x>" + " " * (65 << 20)), "unpacks to more"),
        (docx(p(" ")), "no text to speak"),
        (
            docx("<w:altChunk/>" * 2),
            "no text to speak: 2 documents in this one are left out: open the file in Word and",
        ),
    ],
)
def test_unreadable_word_document_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(InvalidDocument, match=why):
        read_document(data, "docx")


LONG = "This is a line that is as long as the lines of a page of print are, more or less"


def test_pdf_becomes_paragraphs_without_repeated_lines() -> None:
    pages = [
        ["My Book  1", "The Start", LONG, "and here the sentence goes on with an exam-", "ple in it.", f"{LONG},", "7"],
        ["My Book  2", f"not ended by the page, {LONG[:50]}", "and so on.", LONG, "8"],
        ["My Book  3", "Another", f"{LONG}.", "9"],
        ["My Book  4", f"{LONG}.", "10"],
    ]
    document = read_document(pdf(pages, {0: "1 The Start", 2: "Another"}), "pdf")
    assert (document.title, document.author) == ("A PDF", "Ann")
    assert [(passage.text, passage.chapter) for passage in document.passages] == [
        ("The Start", "1 The Start"),
        (f"{LONG} and here the sentence goes on with an example in it.", ""),
        (f"{LONG}, not ended by the page, {LONG[:50]} and so on.", ""),
        (LONG, ""),
        ("Another", "Another"),
        (f"{LONG}. {LONG}.", ""),
    ]


def test_chapter_titles_at_the_top_of_pages_are_not_running_heads() -> None:
    pages = [[f"Chapter {number}", f"{LONG}.", "And " * number] for number in range(1, 7)]
    pages[1] = ["The rest of the first.", *pages[1]]
    for outline in ({}, {number: f"Chapter {number + 1}" for number in range(6)}):
        passages = read_document(pdf(pages, outline), "pdf").passages
        assert [passage.chapter for passage in passages if passage.chapter] == [
            f"Chapter {number}" for number in range(1, 7)
        ]
        assert [passage.text for passage in passages[1:4]] == [f"{LONG}. And", "The rest of the first.", "Chapter 2"]
        assert passages[-1].text == f"{LONG}. And And And And And And"


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"no PDF at all", "this PDF cannot be read: it is damaged"),
        (pdf([["A secret text of some length."]], locked_with="x"), "has a password"),
        (pdf([["1"], ["2"], []]), "scans.*text recognition"),
    ],
)
def test_unreadable_pdf_is_refused_with_the_reason(data: bytes, why: str) -> None:
    with pytest.raises(InvalidDocument, match=why):
        read_document(data, "pdf")


MARKDOWN = """---
title: x
---
# The *title*

Some [link](http://a.example/x), ![picture](p.png) and [whispering] `code`.

```
not this
```
<div>nor this</div>

- one
- two

## Next

> quoted

| a | b |
|---|---|
| c | d |
"""


def test_markdown_is_read_without_its_markup() -> None:
    document = read_document(MARKDOWN.encode(), "md")
    parts = into_parts(document)
    assert document.title == "x"
    assert [part.chapter for part in parts] == ["The title", "", "Next", ""]
    assert parts[1].text == "Some link,  and [whispering] code.\n\none\n\ntwo"
    assert parts[3].text == "quoted\n\na, b\n\nc, d"


@pytest.mark.parametrize(
    ("header", "facts"),
    [
        ("title: 'A Garden'\nauthors: [Ann, Ben]\nlanguage: no", ("A Garden", "Ann, Ben", "no")),
        ("# mine\nTitle: Garden: A Year\nAuthor: Ann\nlang: en_GB", ("Garden: A Year", "Ann", "en-GB")),
        ("author:\n  - name: Ann\n    email: a@b\n  - Ben\nlang: 1\ndraft: yes", ("One", "Ann, Ben", "")),
        ("author: Ann\nx: " + "[" * 3000, ("One", "Ann", "")),
    ],
)
def test_markdown_front_matter_sets_title_author_and_language(header: str, facts: tuple[str, str, str]) -> None:
    document = read_document(f"---\n{header}\n---\n# One\n\nIt grew.".encode(), "md")
    assert [passage.text for passage in document.passages] == ["One", "It grew."]
    assert (document.title, document.author, document.language) == facts


@pytest.mark.parametrize("begins", ["---\n\nIt grew.\n\n---", "---\nIt grew: a lot.\n\n---", "---\na: It grew."])
def test_lines_of_dashes_around_prose_are_not_front_matter(begins: str) -> None:
    text = " ".join(passage.text for passage in read_document(f"{begins}\n\nIt died.".encode(), "md").passages)
    assert "It grew" in text and text.endswith("It died.")

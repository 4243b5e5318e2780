"""Word documents as writers make them."""

from __future__ import annotations

from tests.longform.odd_books.odd_book import OddBook
from tests.studio.documents import docx


def paragraph(text: str, properties: str = "") -> str:
    return f"<w:p><w:pPr>{properties}</w:pPr>{run(text) if text else ''}</w:p>"


def run(text: str, properties: str = "") -> str:
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def styled(text: str, style_id: str, more: str = "") -> str:
    return paragraph(text, f'<w:pStyle w:val="{style_id}"/>{more}')


def style(style_id: str, name: str, more: str = "") -> str:
    return f'<w:style w:styleId="{style_id}"><w:name w:val="{name}"/>{more}</w:style>'


def no_title() -> OddBook:
    body = styled("Chapter 1: A Crooked Map", "h1") + paragraph("It was dark.")
    data = docx(body, styles=style("h1", "heading 1"))
    return OddBook("My novel.docx", data, ("Chapter 1: A Crooked Map",), ("It was dark.",), title="My novel")


def styles_based_on_headings() -> OddBook:
    styles = (
        style("h1", "heading 1")
        + style("mine", "Mein Kapitel", '<w:basedOn w:val="theirs"/>')
        + style("theirs", "Their chapter", '<w:basedOn w:val="h1"/>')
        + style("plain", "Plain", '<w:basedOn w:val="h1"/><w:pPr><w:outlineLvl w:val="9"/></w:pPr>')
        + style("round", "Round", '<w:basedOn w:val="round"/>')
    )
    body = styled("One", "mine") + styled("Dark.", "plain") + styled("Two", "theirs") + styled("Light.", "round")
    return OddBook("x.docx", docx(body, styles=styles), ("One", "Two"), ("One", "Dark.", "Two", "Light."))


def chapters_in_bold() -> OddBook:
    one, two = (f"<w:p>{run(f'Chapter {number}', '<w:b/>')}</w:p>" for number in (1, 2))
    data = docx(f"{one}{paragraph('Dark.')}{two}{paragraph('Light.')}")
    return OddBook("x.docx", data, ("Chapter 1", "Chapter 2"), ("Dark.", "Light."))


def outline_levels() -> OddBook:
    body = (
        paragraph("One", '<w:outlineLvl w:val="2"/>') + paragraph("Dark.") + styled("Two", "deep") + paragraph("Light.")
    )
    styles = style("deep", "Deep", '<w:pPr><w:outlineLvl w:val="2"/></w:pPr>')
    return OddBook("x.docx", docx(body, styles=styles), ("One", "Two"), ("Dark.", "Light."))


def part_and_chapter() -> OddBook:
    styles = "".join(style(f"h{level}", f"heading {level}") for level in (1, 2, 3))
    body = styled("1", "h1") + styled("The Beginning", "h2") + styled("Early", "h3") + paragraph("Dark.")
    body += styled("No chapter", "h3") + paragraph("Light.")
    texts = ("1\nThe Beginning\nEarly", "Dark.", "No chapter", "Light.")
    return OddBook("x.docx", docx(body, styles=styles), ("1. The Beginning Early",), texts)


NOTED = (
    f"<w:p>{run('A dog')}<w:r><w:footnoteReference w:id='2'/></w:r>{run(' barked.')}"
    f"<w:r><w:footnoteReference w:customMarkFollows='1' w:id='3'/><w:t>*</w:t></w:r>{run(' Twice.')}"
    "<w:r><w:endnoteReference w:id='1'/></w:r></w:p>"
) + paragraph("They lived long.")
FOOTNOTES = "".join(
    f"<w:footnote w:id='{number}'><w:p><w:r><w:footnoteRef/></w:r>{run(f'Terrier {number}.')}</w:p></w:footnote>"
    for number in (2, 3)
)
ENDNOTES = f"<w:endnote w:id='1'>{paragraph('Mastiff.')}</w:endnote>"


def footnotes() -> OddBook:
    data = docx(NOTED, footnotes=FOOTNOTES, endnotes=ENDNOTES)
    texts = ("A dog barked. Twice.", "They lived long.")
    reasons = ("3 footnotes and endnotes are left out",)
    return OddBook("x.docx", data, (), texts, ("Terrier", "Mastiff", "*"), 1, reasons)


def footnotes_that_are_wanted() -> OddBook:
    data = docx(NOTED, footnotes=FOOTNOTES, endnotes=ENDNOTES)
    texts = ("A dog barked. Twice.", "Terrier 2.", "Terrier 3.", "Mastiff.", "They lived long.")
    return OddBook("x.docx", data, (), texts, fields={"notes": "true"})


def raised() -> OddBook:
    high = '<w:vertAlign w:val="superscript"/>'
    low = '<w:vertAlign w:val="subscript"/>'
    body = (
        f"<w:p>{run('A word')}{run('2', high)}{run(' and the 10')}{run('th', high)}{run(' of x')}{run('2', high)}"
        f"{run(' and H')}{run('2', low)}{run('O.')}{run('13', high)}</w:p>"
    )
    return OddBook("x.docx", docx(body), (), ("A word and the 10th of x² and H2O.",), ("13",))


def numbered_lists() -> OddBook:
    def level(at: int, kind: str, text: str, more: str = "") -> str:
        words = f'<w:numFmt w:val="{kind}"/><w:lvlText w:val="{text}"/>{more}'
        return f'<w:lvl w:ilvl="{at}"><w:start w:val="1"/>{words}</w:lvl>'

    def item(text: str, number: int, at: int = 0) -> str:
        return paragraph(text, f'<w:numPr><w:ilvl w:val="{at}"/><w:numId w:val="{number}"/></w:numPr>')

    lists = (
        level(0, "decimal", "%1.") + level(1, "lowerLetter", "%2)"), level(0, "bullet", "o"),
        level(0, "decimal", "Chapter %1:", '<w:pStyle w:val="h1"/>'),
    )  # fmt: skip
    numbering = "".join(
        f'<w:abstractNum w:abstractNumId="{n}">{levels}</w:abstractNum>' for n, levels in enumerate(lists)
    )
    numbering += "".join(f'<w:num w:numId="{n + 1}"><w:abstractNumId w:val="{n}"/></w:num>' for n in range(3))
    again = '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride>'
    numbering += f'<w:num w:numId="4"><w:abstractNumId w:val="0"/>{again}</w:num>'
    styles = style("h1", "heading 1", '<w:pPr><w:numPr><w:numId w:val="3"/></w:numPr></w:pPr>')
    body = (
        styled("The Key", "h1") + item("Take it.", 1) + item("Push.", 1, 1) + item("Pull.", 1, 1) + item("Go.", 1)
        + item("Free.", 2) + item("Deep.", 1, 12) + styled("The Door", "h1") + item("Open it.", 4)
        + styled("No number", "h1", '<w:numPr><w:numId w:val="0"/></w:numPr>') + paragraph("Bye.")
    )  # fmt: skip
    texts = ("1. Take it.", "a) Push.", "b) Pull.", "2. Go.", "\nFree.", "\nDeep.", "5. Open it.", "Bye.")
    chapters = ("Chapter 1: The Key", "Chapter 2: The Door", "No number")
    return OddBook("x.docx", docx(body, styles=styles, numbering=numbering), chapters, texts)


def ends_of_scenes() -> OddBook:
    body = paragraph("Dark.") + paragraph("") + paragraph("***", '<w:jc w:val="center"/>') + paragraph("Light.")
    return OddBook("x.docx", docx(body), (), ("Dark.", "Light."), ("*",))


def contents() -> OddBook:
    styles = style("t", "TOC Heading") + style("t1", "toc 1") + style("h1", "heading 1")
    body = styled("Contents", "t") + styled("One 3", "t1") + styled("One", "h1") + paragraph("Dark.")
    reasons = ("table of contents",)
    return OddBook("x.docx", docx(body, styles=styles), ("One",), ("One", "Dark."), ("Contents", "3"), 1, reasons)


def broken_styles() -> OddBook:
    data = docx(paragraph("Chapter 1") + paragraph("Dark."), styles="<broken")
    return OddBook("x.docx", data, ("Chapter 1",), ("Dark.",), (), 1, ("word/styles.xml",))


def titles_below_chapters_and_hidden_words() -> OddBook:
    body = paragraph("CHAPTER ONE") + paragraph("THE TOWN") + paragraph("It was dark.")
    body += paragraph("Chapter Two") + f"<w:p>{run('It was hid', '<w:vanish/>')}{run('It was light.')}</w:p>"
    return OddBook("x.docx", docx(body), ("CHAPTER ONE THE TOWN", "Chapter Two"), ("dark", "It was light."), ("hid",))


def numbers_alone() -> OddBook:
    body = "".join(paragraph(str(number)) + paragraph(f"Night {number} was dark.") for number in (1, 2, 3))
    return OddBook("x.docx", docx(body), ("1", "2", "3"), ("Night 1", "Night 3"))


WORD_DOCUMENTS = (
    no_title, styles_based_on_headings, chapters_in_bold, outline_levels, part_and_chapter, footnotes,
    footnotes_that_are_wanted, raised, numbered_lists, ends_of_scenes, contents, broken_styles,
    titles_below_chapters_and_hidden_words, numbers_alone,
)  # fmt: skip

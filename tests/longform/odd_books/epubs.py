"""EPUBs as made by shops, converters and hand: tables of contents, and broken pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.longform.odd_books.odd_book import OddBook
from tests.studio.documents import epub, page, png, spoilt

CHAPTERS = ("The Beginning", "The End")
TEXTS = ("dark night", "bright day")
NIGHT, DAY = "<p>It was a dark night.</p>", "<p>It was a bright day.</p>"


def of(
    pages: Mapping[str, str | bytes],
    chapters: tuple[str, ...] = CHAPTERS,
    texts: tuple[str, ...] = TEXTS,
    reasons: tuple[str, ...] = (),
    absent: tuple[str, ...] = (),
    fields: dict[str, Any] | None = None,
    **parts: Any,
) -> OddBook:
    """A book whose table of contents, which is in its spine, is omitted in addition to what ``reasons`` name."""
    data = epub(pages, **parts)
    return OddBook("x.epub", data, chapters, texts, absent, 1 + len(reasons), reasons, fields=fields)


def nav(*entries: tuple[str, str], more: str = "") -> str:
    """The body of an EPUB 3's table of contents, from hrefs and titles."""
    items = "".join(f'<li><a href="{href}">{title}</a></li>' for href, title in entries)
    return f'<nav epub:type="toc"><ol>{items}</ol></nav>{more}'


def point(href: str, title: str, inside: str = "") -> str:
    """An entry of an EPUB 2's table of contents."""
    return f'<navPoint><navLabel><text>{title}</text></navLabel><content src="{href}"/>{inside}</navPoint>'


def headings_of_two_levels() -> OddBook:
    pages = {
        "a.xhtml": page(f"<h1>1</h1><h2>The Beginning</h2>{NIGHT}"),
        "b.xhtml": page(f"<h1>2</h1><h2>The End</h2>{DAY}"),
    }
    return of(pages, ("1. The Beginning", "2. The End"), ("1\nThe Beginning", *TEXTS))


def headings_of_one_level() -> OddBook:
    pages = {
        "a.xhtml": page(f"<h2>Chapter One</h2><h2>The Beginning</h2>{NIGHT}"),
        "b.xhtml": page(f"<h1>Chapter Two<br/>The End</h1>{DAY}"),
    }
    return of(pages, ("Chapter One The Beginning", "Chapter Two The End"), ("Chapter One\nThe Beginning", *TEXTS))


def part_and_chapter_on_two_pages() -> OddBook:
    pages = {
        "t.xhtml": page("<h1>A Book</h1>"),
        "p.xhtml": page("<h1>Part One</h1>"),
        "a.xhtml": page(f"<h2>Chapter 1</h2>{NIGHT}"),
        "b.xhtml": page(f"<h2>Chapter 2</h2>{DAY}"),
    }
    return of(pages, ("Part One Chapter 1", "Chapter 2"), ("A Book", "Part One\nChapter 1", *TEXTS))


def contents_only() -> OddBook:
    pages = {
        "a.xhtml": page(f"<p class='chap'>The Beginning</p>{NIGHT}"),
        "b.xhtml": page(f"<p class='chap'>The End</p>{DAY}"),
    }
    return of(pages, texts=("The Beginning", *TEXTS), nav=nav(("a.xhtml", "The Beginning"), ("b.xhtml", "The End")))


def contents_of_epub_2() -> OddBook:
    pages = {"a.xhtml": page(f"<h3>How it began</h3>{NIGHT}"), "b.xhtml": page(f"<h3>How it ended</h3>{DAY}")}
    ncx = point("a.xhtml", "I. How it began") + point("b.xhtml", "II. How it ended")
    return of(pages, ("I. How it began", "II. How it ended"), ncx=ncx)


def third_headings_without_contents() -> OddBook:
    pages = {"a.xhtml": page(f"<h3>The Beginning</h3>{NIGHT}<h3>The End</h3><h4>Late</h4>{DAY}<h5>Deep</h5>{NIGHT}")}
    return of(pages, ("The Beginning", "The End Late"))


def chapters_in_paragraphs() -> OddBook:
    pages = {"a.xhtml": page(f"<p>Chapter 1</p>{NIGHT}"), "b.xhtml": page(f"<div><b>Chapter 2</b></div>{DAY}")}
    return of(pages, ("Chapter 1", "Chapter 2"))


def contents_into_the_middle_of_a_page() -> OddBook:
    body = (
        f"<p>By Ann.</p><p>I<a id='one'></a></p><p>The Beginning</p>{NIGHT}<p>So it ended.<a id='two'/></p>"
        f"<div><p>The End</p></div>{DAY}"
    )
    body = body.replace("<p>I<a id='one'></a></p>", "<h2>I</h2><span id='one'/>")
    entries = (("a.xhtml#one", "The Beginning"), ("a.xhtml#two", "The End"))
    texts = ("By Ann.", "I", "The Beginning", TEXTS[0], "So it ended.", "The End", TEXTS[1])
    return of({"a.xhtml": page(body)}, texts=texts, nav=nav(*entries))


def contents_that_name_half_of_a_heading() -> OddBook:
    pages = {
        "a.xhtml": page(f"<h1>Chapter One</h1><h2>The Beginning</h2>{NIGHT}<h2>Later</h2>{NIGHT}"),
        "b.xhtml": page(f"<h1>2</h1><h2>The End</h2><h3>At last</h3>{DAY}"),
    }
    texts = ("Chapter One\nThe Beginning", TEXTS[0], "Later", "2\nThe End\nAt last", TEXTS[1])
    entries = (("a.xhtml", "Chapter One"), ("b.xhtml", "2: The End"))
    return of(pages, ("Chapter One The Beginning", "2: The End At last"), texts, nav=nav(*entries))


def nested_contents() -> OddBook:
    pages = {
        "p.xhtml": page("<p>Part One</p>"),
        "a.xhtml": page(f"<p>The Beginning</p>{NIGHT}"),
        "b.xhtml": page(f"<p>The End</p>{DAY}"),
    }
    ncx = point("p.xhtml", "Part One", point("a.xhtml", "The Beginning") + point("b.xhtml", "The End"))
    return of(pages, ("Part One The Beginning", "The End"), ncx=ncx)


def half_titles_that_the_contents_lack() -> OddBook:
    pages = {
        "t.xhtml": page("<h1>A Book</h1>"),
        "a.xhtml": page(f"<p>The Beginning</p>{NIGHT}"),
        "p.xhtml": page("<h1>The Return</h1>"),
        "b.xhtml": page(f"<p>The End</p>{DAY}"),
    }
    texts = ("A Book", "The Beginning", TEXTS[0], "The Return", "The End", TEXTS[1])
    chapters = ("The Beginning", "The End")
    return of(pages, chapters, texts, nav=nav(("a.xhtml", "The Beginning"), ("b.xhtml", "The End")))


def contents_that_point_to_nothing() -> OddBook:
    pages = {"a.xhtml": page(f"<p>The Beginning</p>{NIGHT}"), "B.xhtml": page(f"<p>The End</p>{DAY}")}
    entries = (("gone.xhtml", "Foreword"), ("a.xhtml#gone", "The Beginning"), ("b.xhtml", "The End"), ("", "Nothing"))
    return of(pages, nav=nav(*entries))


def contents_with_missing_anchors() -> OddBook:
    pages = {"a.xhtml": page(f"<h2>1<br/>The Beginning</h2>{NIGHT}<h3>The End</h3>{DAY}")}
    entries = (("a.xhtml", "1. The Beginning"), ("a.xhtml#gone", "The End"), ("a.xhtml#lost", "The Boots"))
    texts = ("1\nThe Beginning", TEXTS[0], "The End", TEXTS[1])
    return of(pages, ("1. The Beginning", "The End"), texts, absent=("Boots",), nav=nav(*entries))


def contents_with_cover_and_start_only() -> OddBook:
    pages = {
        "c.xhtml": page("<img src='c.png'/>"),
        "a.xhtml": page(f"<h2>The Beginning</h2>{NIGHT}<h2>The End</h2>{DAY}"),
    }
    return of(pages, nav=nav(("c.xhtml", "Cover"), ("a.xhtml", "Start")))


def titles_as_pictures() -> OddBook:
    pages = {
        "a0.xhtml": page("<img src='1.png'/>"), "a.xhtml": page(NIGHT),
        "b0.xhtml": page("<img src='2.png'/>"), "b.xhtml": page(DAY),
    }  # fmt: skip
    return of(pages, nav=nav(("a0.xhtml", "The Beginning"), ("b0.xhtml", "The End")))


def front_matter() -> OddBook:
    pages = {
        "t.xhtml": page("<section epub:type='titlepage'><h1>A Book</h1><p>by Ann</p></section>"),
        "c.xhtml": page("<h2>Copyright</h2><p>ISBN 978-3-16-148410-0</p>"),
        "l.xhtml": page("<h2>List</h2><p>The Beginning, page 1</p>"),
        "a.xhtml": page(f"<h2>The Beginning</h2>{NIGHT}<h2>The End</h2>{DAY}"),
    }
    marks = '<nav epub:type="landmarks"><a epub:type="copyright-page" href="c.xhtml">Copyright</a></nav>'
    reasons = ("title page (t.xhtml)", "copyright page (c.xhtml)", "table of contents (l.xhtml)")
    guide = '<reference type="toc" href="l.xhtml"/><reference type="text" href="a.xhtml"/>'
    return of(pages, reasons=reasons, absent=("ISBN", "page 1"), nav=nav(more=marks), guide=guide)


def page_of_links() -> OddBook:
    links = "".join(f"<p><a href='{name}.xhtml'>{title}</a> {number}</p>" for number, (name, title) in
                    enumerate(zip("ab", CHAPTERS, strict=True)))  # fmt: skip
    pages = {
        "l.xhtml": page(f"<h1>Contents</h1>{links}"),
        "a.xhtml": page(f"<h1>The Beginning</h1>{NIGHT}<p>See <a href='b.xhtml'>The End</a>.</p>"),
        "b.xhtml": page(f"<h1>The End</h1>{DAY}"),
    }
    return of(pages, reasons=("table of contents (l.xhtml)",), absent=("Contents",))


def project_gutenberg() -> OddBook:
    names = [f"CHAPTER {numeral}." for numeral in ("I", "II", "III", "IV", "V")]
    rows = "".join(f"<tr><td>{n}.</td><td><a href='a.xhtml#c{n}'>{name}</a></td></tr>" for n, name in enumerate(names))
    body = "".join(f"<h2 id='c{n}'>{name}<br/>A tale</h2><p>It was {n}.</p>" for n, name in enumerate(names))
    pages = {
        "a.xhtml": page(
            "<section class='pg-boilerplate pgheader'><p>This ebook is for the use of anyone.</p></section>"
            f"<h1>A Book</h1><p>By Ann.</p><h2>CONTENTS</h2><table>{rows}</table>{body}"
        ),
    }
    reasons = ("Project Gutenberg licence (a.xhtml)", "table of contents in a.xhtml")
    texts = ("A Book", "By Ann.", "CHAPTER I.\nA tale", "It was 0.", "It was 4.")
    entries = [(f"a.xhtml#c{n}", f"{name} A tale") for n, name in enumerate(names)]
    chapters = tuple(title for _, title in entries)
    return of(pages, chapters, texts, reasons, ("anyone", "CONTENTS", "0.\n\n"), nav=nav(*entries))


def empty_and_missing_pages() -> OddBook:
    pages: dict[str, str | bytes] = {
        "0.xhtml": b"", "a.xhtml": page(f"<h1>The Beginning</h1>{NIGHT}"), "m.xhtml": "", "n.xhtml": b"\x00\x91" * 99,
        "b.xhtml": page(f"<h1>The End</h1>{DAY}"),
    }  # fmt: skip
    reasons = ("0.xhtml is left out: it is empty", "m.xhtml is left out: the file is missing", "n.xhtml is left out")
    return of(pages, reasons=reasons, lacks=("m.xhtml",))


def damaged_page_and_cover() -> OddBook:
    pages = {
        "a.xhtml": page(f"<h1>The Beginning</h1>{NIGHT}"),
        "bad.xhtml": page("Some words. " * 99),
        "b.xhtml": page(f"<h1>The End</h1>{DAY}"),
    }
    data = spoilt(epub(pages, cover=b"no picture"), "OEBPS/bad.xhtml")
    return OddBook("x.epub", data, CHAPTERS, TEXTS, (), 3, ("bad.xhtml is left out", "picture of the cover"))


def drawn_cover() -> OddBook:
    pages = {"a.xhtml": page(f"<h1>The Beginning</h1>{NIGHT}"), "b.xhtml": page(f"<h1>The End</h1>{DAY}")}
    return of(pages, reasons=("picture of the cover",), cover=b"<svg/>", cover_type="image/svg+xml")


def broken_markup() -> OddBook:
    pages = {
        "a.xhtml": f"<body><h1>The Beginning<p>It was a <i>dark night.<p>And</b> cold & wet <3.</aside>{'<div>' * 40}",
        "b.xhtml": f"<h1>The End</h1><![if x]>{DAY}<p>&nbsp;&#1;&bogus;</p><p>Bye.<!-- ",
    }
    return of(pages, texts=("dark night.", "And cold & wet", "bright day", "Bye."))


def pages_in_old_encodings() -> OddBook:
    head = '<?xml version="1.0" encoding="iso-8859-1"?>'
    pages = {
        "a.xhtml": (head + page(f"<h1>Größe</h1>{NIGHT}<p>“Café”</p>")).encode("cp1252"),
        "b.xhtml": page(f"<h1>Ende – gut</h1>{DAY}").encode("cp1252"),
        "c.xhtml": ('<?xml version="1.0" encoding="koi8-r"?>' + page("<h1>Глава</h1><p>Ночь.</p>")).encode("koi8-r"),
        "d.xhtml": b"\xef\xbb\xbf" + (head + page("<h1>Übung</h1><p>Ja.</p>")).encode(),
    }
    return of(pages, ("Größe", "Ende – gut", "Глава", "Übung"), ("Größe", TEXTS[0], "“Café”", TEXTS[1], "Ночь.", "Ja."))


def pages_in_utf_16() -> OddBook:
    pages = {
        "a.xhtml": ('<?xml version="1.0" encoding="utf-16"?>' + page(f"<h1>The Beginning</h1>{NIGHT}")).encode(
            "utf-16"
        ),
        "b.xhtml": page(f"<h1>The End</h1>{DAY}").encode("utf-16-be"),
    }
    return of(pages)


def obfuscated_fonts() -> OddBook:
    entry = (
        '<EncryptedData xmlns="http://www.w3.org/2001/04/xmlenc#"><EncryptionMethod Algorithm="{}"/>'
        '<CipherData><CipherReference URI="{}"/></CipherData></EncryptedData>'
    )
    locks = entry.format("http://www.idpf.org/2008/embedding", "OEBPS/f.otf") + entry.format("x", "OEBPS/g.ttf")
    files = {"META-INF/encryption.xml": f"<encryption>{locks}</encryption>"}
    pages = {"a.xhtml": page(f"<h1>The Beginning</h1>{NIGHT}<h1>The End</h1>{DAY}")}
    return of(pages, files=files)


def copyright_page_without_a_type() -> OddBook:
    rights = "<p>Copyright © 2010 by Ann</p><p>All rights reserved.</p><p>ISBN 978-0-00-000000-2</p>"
    hidden = "<p style='display: none'>hidden words</p>"
    pages = {"c.xhtml": page(rights), "a.xhtml": page(f"<h1>The Beginning</h1>{NIGHT}<h1>The End</h1>{hidden}{DAY}")}
    return of(pages, reasons=("The copyright page (c.xhtml) is left out.",), absent=("rights", "ISBN", "hidden"))


def pages_of_other_types() -> OddBook:
    drawing = "<text>A map <tspan y='2'>of</tspan><tspan y='2'>ten</tspan> <tspan y='3'>isles.</tspan></text>"
    pages: dict[str, str | bytes] = {
        "a.pdf": b"%PDF", "b.xhtml": page(f"<h1>The Beginning</h1>{NIGHT}"), "c.svg": f"<svg>{drawing}</svg>",
        "d.xml": "<dtbook><p>unseen</p></dtbook>", "e.swf": b"unseen", "f.png": png(),
        "g.xhtml": page(f"<h1>The End</h1>{DAY}"),
    }  # fmt: skip
    kinds = {
        "a.pdf": 'media-type="application/pdf" fallback="i4"', "c.svg": 'media-type="image/svg+xml"',
        "d.xml": 'media-type="application/x-dtbook+xml"', "f.png": 'media-type="image/png"',
        "e.swf": 'media-type="application/x-shockwave-flash" fallback="i1"',
    }  # fmt: skip
    reasons = ("page d.xml is left out: it is not a page of text", "page gone is left out: the book's list of files")
    texts = (TEXTS[0], "A map often isles.", TEXTS[1])
    return of(pages, CHAPTERS, texts, reasons, ("unseen",), kinds=kinds, unlisted=("gone",))


def text_that_browsers_show() -> OddBook:
    declared = (
        "<?xml version='1.0'?><!-- <!DOCTYPE html [ --><!DOCTYPE html [<!-- it's -->"
        "<!ENTITY who \"Ann &#38; <b>Ben]</b>\"><!ENTITY far SYSTEM 'unseen.xml'>\n<!ENTITY deep '&who;&who;'>]>"
    )
    drawing = (
        "<svg><desc>unseen</desc><g><text hidden=''>unseen</text><title>unseen</title>"
        "<text>A tower.<tspan dy='1'>A well.</tspan></text><metadata>unseen</metadata>"
        "<foreignObject><p>A gate.</p></foreignObject></g><desc>unseen</desc></svg>"
    )
    objects = (
        "<object data='a.bin'><p>In its place.</p></object><object data='a.png'>unseen</object>"
        "<object type='video/mp4' data='a'>unseen</object>"
    )
    old = "<center>A sign</center>Then<center>the sea</center><details><summary>Who</summary>He</details>"
    pages = {
        "a.xhtml": declared
        + page(f"<h1><svg><text>The Beginning</text></svg></h1>{NIGHT}<p>&who; rode&far; on.&deep;</p>{drawing}"),
        "b.xhtml": page(f"<h1>The End</h1><p>Then <![CDATA[2 < 3 & so]]> on.</p>{old}{objects}{DAY}"),
    }
    first = (TEXTS[0], "Ann & Ben] rode on.", "A tower. A well.", "A gate.")
    texts = (
        *first,
        "The End",
        "Then 2 < 3 & so on.",
        "A sign\n\nThen\n\nthe sea\n\nWho\n\nHe",
        "In its place.",
        TEXTS[1],
    )
    reason = "Entities in a.xhtml are left out, as they are not plain text: far, deep."
    return of(pages, CHAPTERS, texts, (reason,), ("unseen",))


EPUBS = (
    headings_of_two_levels, headings_of_one_level, part_and_chapter_on_two_pages, contents_only, contents_of_epub_2,
    third_headings_without_contents, chapters_in_paragraphs, contents_into_the_middle_of_a_page, nested_contents,
    contents_that_name_half_of_a_heading, half_titles_that_the_contents_lack, contents_that_point_to_nothing,
    contents_with_missing_anchors,
    contents_with_cover_and_start_only, titles_as_pictures, front_matter,
    page_of_links, project_gutenberg,
    empty_and_missing_pages, damaged_page_and_cover, drawn_cover, broken_markup, pages_in_old_encodings,
    pages_in_utf_16, obfuscated_fonts, copyright_page_without_a_type, pages_of_other_types, text_that_browsers_show,
)  # fmt: skip

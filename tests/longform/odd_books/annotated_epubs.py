"""EPUBs with notes and their marks, page numbers, lists and scene breaks in and between sentences."""

from __future__ import annotations

from tests.longform.odd_books.epubs import of
from tests.longform.odd_books.odd_book import OddBook
from tests.studio.documents import page

ONE = ("One",)


def page_numbers_and_footnotes() -> OddBook:
    body = (
        "<h1>One</h1><p>The king had a <span epub:type='pagebreak' id='p12' title='12'>12</span>dog"
        "<a epub:type='noteref' href='#n1'>1</a> and a cat<span role='doc-pagebreak'>[13]</span>.</p>"
        "<aside epub:type='footnote' id='n1'><p>1. A small terrier.</p></aside>"
        "<p>They lived<span class='pagenum'>14</span> long.</p><hr epub:type='pagebreak' title='15'/>"
        "<p>So <span class='pagenum'>it went on and on, for many a year and longer.</p><p>The end.</p>"
    )
    texts = ("The king had a dog and a cat.", "They lived long.", "So it went on and on", "The end.")
    absent = ("12", "13", "14", "terrier")
    return of({"a.xhtml": page(body)}, ONE, texts, ("1 footnote or endnote is left out",), absent)


def footnotes_that_are_wanted() -> OddBook:
    body = (
        "<h1>One</h1><p>A dog<a epub:type='noteref' href='#n1'>1</a> barked.</p>"
        "<aside epub:type='footnote' id='n1'><p>1. A small terrier.</p></aside><p>They lived long.</p>"
    )
    texts = ("A dog barked.", "1. A small terrier.", "They lived long.")
    return of({"a.xhtml": page(body)}, ONE, texts, fields={"notes": "true"})


BESIDE = {
    "a.xhtml": page("<h1>One</h1><p>A dog<a epub:type='noteref' href='n.xhtml#n'>1</a> barked.</p>"),
    "n.xhtml": page("<h1>Notes</h1><aside epub:type='endnote' id='n'><p>Terrier.</p></aside>"),
}


def endnotes_of_epub_3() -> OddBook:
    notes = "".join(f"<li id='n{n}' role='doc-endnote'><p>Terrier {n}.</p></li>" for n in (1, 2))
    pages = {
        "a.xhtml": page("<h1>One</h1><p>A dog<a role='doc-noteref' href='n.xhtml#n1'>1</a> barked.</p>"),
        "n.xhtml": page(f"<section epub:type='endnotes' role='doc-endnotes'><h1>Notes</h1><ol>{notes}</ol></section>"),
    }
    return of(pages, ONE, ("A dog barked.",), ("2 footnotes and endnotes are left out",), ("Terrier", "Notes"))


def endnotes_beside_the_text() -> OddBook:
    reasons = ("not part of the main text", "1 footnote or endnote is left out")
    return of(BESIDE, ONE, ("A dog barked.",), reasons, ("Terrier", "Notes"), aside=("n.xhtml",))


def endnotes_beside_the_text_that_are_wanted() -> OddBook:
    texts = ("A dog barked.", "Terrier.")
    return of(BESIDE, (*ONE, "Notes"), texts, fields={"notes": "true"}, aside=("n.xhtml",))


def endnotes_of_epub_2() -> OddBook:
    pages = {
        "a.xhtml": page(
            "<h1>One</h1><p>The king<a id='r1' href='n.xhtml#n1'>[1]</a> had a dog.<a href='n.xhtml#n2'>2</a> He ran. "
            "See chapter <a href='a.xhtml#c2'>2</a>.</p>"
        ),
        "n.xhtml": page(
            "<h2>Notes</h2><p id='n1'><a href='a.xhtml#r1'>[1]</a> A terrier.</p><p id='n2'>2. A mastiff.</p>"
        ),
    }
    texts = ("The king had a dog. He ran. See chapter 2.",)
    return of(pages, ONE, texts, ("2 footnotes and endnotes are left out",), ("terrier", "mastiff", "[1]"))


def raised_and_lowered() -> OddBook:
    body = (
        "<h1>One</h1><p>A word<sup>2</sup> and a stop.<sup>12</sup> Then “so”<sup>3</sup> (and so on)<sup>4</sup>, "
        "in 1984<sup>5</sup>, dogs<sup>*</sup> ran. "
        "The 10<sup>th</sup> of x<sup>2</sup> is 10<sup>-3</sup> m<sup>2</sup> of H<sub>2</sub>O, "
        "Ca<sup>2+</sup>, (a+b)<sup>2</sup> and <sup>14</sup>C. M<sup>lle</sup> came.</p>"
        "<p><sup>7</sup> In the beginning.</p>"
    )
    texts = (
        "A word and a stop. Then “so” (and so on), in 1984, dogs ran. "
        "The 10th of x² is 10⁻³ m² of H2O, Ca²⁺, (a+b)² and ¹⁴C. Mlle came.",
        "In the beginning.",
    )
    return of({"a.xhtml": page(body)}, ONE, texts, absent=("⁷", "7"))


def ordered_lists() -> OddBook:
    body = (
        "<h1>One</h1><ol><li>Take the key.</li><li><p>Open the door.</p><p>Slowly.</p>"
        "<ol type='a'><li>Push.</li><li>Pull.</li></ol></li><li>Go.</li></ol>"
        "<ol start='9'><li>Nine.</li><li value='20'>Twenty.</li></ol><ul><li>Free.</li></ul>"
        "<ol type='I'><li>First.</li><li>2. Second.</li></ol>"
    )
    texts = (
        "1. Take the key.", "2. Open the door.", "\nSlowly.", "a. Push.", "b. Pull.", "3. Go.", "9. Nine.",
        "20. Twenty.", "\nFree.", "I. First.", "\n2. Second.",
    )  # fmt: skip
    return of({"a.xhtml": page(body)}, ONE, texts)


def ends_of_scenes() -> OddBook:
    breaks = ("<hr/>", "<p>&#160;</p><p class='c'>* * *</p>", "<p>⁂</p>", "<div>***</div>")
    body = "<h1>One</h1>" + "".join(
        f"<p>Scene {number} ends.</p>{scene_break}" for number, scene_break in enumerate(breaks)
    )
    texts = ("Scene 0 ends.", "Scene 3 ends.", "Two", "Later.")
    return of({"a.xhtml": page(f"{body}<h1>Two</h1><p>Later.</p>")}, ("One", "Two"), texts, absent=("*", "⁂"))


def footnotes_below_a_title() -> OddBook:
    note = "<p><a id='n'></a><a href='a.xhtml#m'>[1]</a> A note.</p>"
    text = f"<h1>One</h1><p>Dark.<a id='m'></a><a href='a.xhtml#n'>[1]</a></p><h3>FOOTNOTES:</h3>{note}"
    pages = {"a.xhtml": page(f"{text}<h1>Two</h1><p>Light.</p>")}
    return of(pages, ("One", "Two"), ("Dark.", "Light."), ("1 footnote",), ("FOOTNOTES", "note", "[1]"))


ANNOTATED_EPUBS = (
    page_numbers_and_footnotes, footnotes_that_are_wanted, endnotes_of_epub_3, endnotes_beside_the_text,
    endnotes_beside_the_text_that_are_wanted, endnotes_of_epub_2, raised_and_lowered,
    ordered_lists, ends_of_scenes, footnotes_below_a_title,
)  # fmt: skip

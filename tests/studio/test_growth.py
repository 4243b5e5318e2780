"""What twice the input costs: at most three times the work, in every parser of what strangers send."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from studio.errors import InvalidRequest
from studio.library import Library, StoredTake, TakeFilter
from studio.library.checks import MAX_DESCRIPTION, clean_text
from studio.library.projects.records import MAX_PART_TEXT, NewPart, PartTake, Project, ProjectSettings
from studio.library.pronunciations.entries import Pronunciation, Shelf
from studio.library.sqlite import Database
from studio.library.voices.names import clean_name, clean_slug, fold
from studio.projects.documents import into_parts, read_document
from studio.speech.dialogue import read_turns
from studio.speech.reading import normalised as read_aloud
from studio.speech.script.brackets import read_brackets
from studio.speech.script.markup import without_markup
from studio.speech.script.signs import clean_signs
from studio.speech.text import Sentences, read_script, split_text
from studio.strings import normalised
from studio.takes.export import file_name
from tests.studio.documents import docx, epub, page, pdf

Work = Callable[[str], object]

TIMES = 3
"""Twice the input may cost so many times as much: a half more than twice is for the machine's moods."""
LEAST = 0.004
"""Seconds under which nothing can be told."""
LARGEST = 1 << 17
"""Characters; what costs too little to be told even then is cheap enough."""
TRIES = 4
"""What grows by the square does so in each of them."""

PIECES = {
    "sentences": "This is one sentence, and it has some words. ",
    "lines": "A line of a text without a blank line anywhere,\n",
    "words without an end": "word ",
    "letters": "a",
    "letters of three bytes": "好",
    "marks without a letter": "\u0301",
    "marks out of order": "\u0301\u0323",
    "stops": ".",
    "stops and spaces": ". ",
    "exclamations": "!)",
    "blanks": " ",
    "blank lines": "\n ",
    "opened tags": "[",
    "tags": "[a tag] ",
    "control tags": "<|",
    "pauses": "[pause:1s]a ",
    "pauses alone": "[pause:1ms]\n",
    "opened pauses": "[pause:",
    "initials": "A. ",
    "names": "Anna: Hi. ",
}


def cost(work: Work, told: str) -> float:
    """Seconds of this thread."""
    gc.disable()
    begun = time.thread_time()
    try:
        with contextlib.suppress(InvalidRequest):  # a refusal must not cost more either
            work(told)
        return time.thread_time() - begun
    finally:
        gc.enable()


def check(work: Work, make: Callable[[int], str], size: int) -> None:
    """Makes the input larger until there is something to measure."""
    while cost(work, make(size)) < LEAST and size < LARGEST:
        size *= 4
    found = []
    for each in (size, 2 * size):  # a step, as where memory no longer fits a cache, is at one of them only
        for _ in range(TRIES):
            once, twice = cost(work, make(each)), cost(work, make(2 * each))
            found.append(f"{each}: {1000 * once:.1f} ms, twice that {1000 * twice:.1f} ms")
            if twice <= TIMES * max(once, LEAST):
                return
    raise AssertionError(f"characters, {'; '.join(found)}")


def pieces(piece: str) -> Callable[[int], str]:
    return lambda size: "x" + piece * (size // len(piece))


def end_of(words: str) -> Callable[[int], str]:
    return lambda size: words[-size:]


def written(text: str) -> list[str]:
    """Its sentences, word for word as a language model writes it."""
    sentences = Sentences()
    return [sentence for at in range(0, len(text), 4) for sentence in sentences.add(text[at : at + 4])]


TEXTS: dict[str, Work] = {
    "a script": lambda text: read_script(text),
    "a script in the smallest parts": lambda text: split_text(text, 100),
    "sentences on their way": written,
    "a dialogue": read_turns,
}


PASTED = PIECES | {
    "emphasis": "*a _b",
    "stars": "*",
    "links": "[a](http://b",
    "link after link": "[a](http://b) ",
    "citations": "[1]",
    "bars": "|",
    "bars and spaces": "a | ",
    "rows": "| a | b |\n",
    "rules": "-|",
    "lists": "- ",
    "headings": "# a # ",
    "ticks": "`",
    "pictures": "🎉 ",
    "entities": "&amp;",
    "opened entities": "&amp",
    "entities again": "&am&shy;p;",
    "soft hyphens": "a\u00ad",
    "joiners": "\u200d",
    "ligatures": "\ufb01",
    "backslashes": "\\[a]",
    "questions": '"Why?" Anna ',
    "ellipses": ". . .a",
}
CLEANERS: dict[str, Work] = {
    "signs": clean_signs,
    "markup": without_markup,
    "brackets": lambda text: read_brackets(text, ("whisper",)),
}


@pytest.mark.parametrize("kind", PASTED)
@pytest.mark.parametrize("cleaner", CLEANERS)
def test_what_is_pasted_is_cleaned_in_linear_time(cleaner: str, kind: str) -> None:
    check(CLEANERS[cleaner], pieces(PASTED[kind]), 4096)


@pytest.mark.parametrize("kind", ["questions", "ellipses", "opened entities", "soft hyphens"])
def test_what_is_pasted_is_cut_in_linear_time(kind: str) -> None:
    for reader in TEXTS.values():
        check(reader, pieces(PASTED[kind]), 4096)


@pytest.mark.parametrize("kind", PIECES)
@pytest.mark.parametrize("reader", TEXTS)
def test_text_is_cut_in_linear_time(reader: str, kind: str) -> None:
    check(TEXTS[reader], pieces(PIECES[kind]), 4096)


FORMS = (
    "1x", "#1", "1,", "1=", "1 000 ", "a.", "www.", "1/", "A1", "B-1 ", "A$1", "1h ", "1:1 ", "code ", "[", "`",
    "$1 ", "1-", "$1k-", "5pm-", "May 5-", "1/1/1 ", "1.000", "1e1", "+1.", "the 1990 a", "1990's ", "1/2 tsp ",
    "a $1 ", "Ps 1:1-", "NY 10001 ", "@a", "A&", "<3 ", ":) ", "GMT-", "NO ", "QU", "AE", "STR", "NOOO", "I'M ", "A-",
    "DR. ", "IT US ", "XI ", "MON-", "<|", "<|phoneme_start|>",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_written_forms_are_read_in_linear_time(form: str) -> None:
    check(read_aloud, pieces(form), 2048)


NAMES: dict[str, Work] = {
    "folded": fold,
    "composed": lambda text: normalised("NFC", text),
    "of a voice": clean_name,
    "in requests": clean_slug,
    "a description": lambda text: clean_text("description", text, MAX_DESCRIPTION),
}


@pytest.mark.parametrize("kind", ["letters", "marks without a letter", "marks out of order", "blanks", "stops"])
@pytest.mark.parametrize("reader", NAMES)
def test_names_are_looked_at_in_linear_time(reader: str, kind: str) -> None:
    check(NAMES[reader], pieces(PIECES[kind]), 4096)


@pytest.mark.parametrize("kind", PIECES)
def test_a_takes_file_is_named_in_linear_time(kind: str) -> None:
    told: tuple[Any, ...] = (None, "anna", 1, {}, "finished", "stop", None, {}, 1, 1.0)
    check(lambda text: file_name(StoredTake("req_1", 1.0, text, *told), "mp3"), pieces(PIECES[kind]), 4096)


def test_a_voice_is_looked_for_in_linear_time(tmp_path: Path) -> None:
    voices = Library(tmp_path).voices
    check(voices.exists, pieces(PIECES["marks out of order"]), 4096)
    check(voices.page, pieces(PIECES["marks out of order"]), 4096)


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


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("format_name", DOCUMENTS)
def test_documents_are_read_in_linear_time(format_name: str, kind: str) -> None:
    def read(text: str) -> object:
        document = read_document(DOCUMENTS[format_name](text), format_name.partition(",")[0])
        return into_parts(document, lambda name: None)

    check(read, pieces(HARD[kind]), 2048)


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
    "links in a row": "<p><a href='#x'>Chapter</a></p>",
    "notes": "<aside epub:type='footnote' id='x'>a</aside>",
    "attributes": "<p a='1' b='2' c>",
}
ONE_TAG = {"attributes of one tag": "a='1' ", "names of one tag": "a "}


@pytest.mark.parametrize("kind", PAGES | ONE_TAG)
def test_a_page_of_an_epub_is_read_in_linear_time(kind: str) -> None:
    before = "<p " if kind in ONE_TAG else ""
    make = pieces((PAGES | ONE_TAG)[kind])
    check(lambda text: read_document(epub({"a.xhtml": f"{before}{text}>"}), "epub"), make, 2048)


def test_contents_are_followed_in_linear_time() -> None:
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


MANY: dict[str, Callable[[], bytes]] = {
    "tags.epub": lambda: epub({"a.xhtml": page("<b>" * 2_100_000)}),
    "attributes.epub": lambda: epub({"a.xhtml": f"<p {'a ' * 2_100_000}>a"}),
    "paragraphs.docx": lambda: docx("<w:p/>" * 1_000_000),
}


@pytest.mark.parametrize("name", MANY)
def test_a_book_beyond_a_limit_is_refused_as_soon_as_it_passes_it(name: str) -> None:
    data = MANY[name]()
    with pytest.raises(InvalidRequest, match="has more than"):
        read_document(data, name.partition(".")[2])


def test_the_longest_book_is_read_in_seconds() -> None:
    sentence = "<p>It was a dark and stormy night, and nobody of them said “No” to that. So it went on.</p>"
    pages = {f"{number}.xhtml": page(f"<h1>Chapter {number}</h1>{sentence * 580}") for number in range(100)}

    def read(book: bytes) -> None:
        assert len(into_parts(read_document(book, "epub"), lambda name: None)) > 10_000

    book = epub(pages)
    begun = time.thread_time()
    read(book)
    assert time.thread_time() - begun < 15  # about two on a core of today


def test_a_wrapped_paragraph_of_a_book_is_put_together_in_linear_time() -> None:
    """What copies all that is there already for every line shows only where that is longer than a cache."""
    line = pieces("A line that is long enough to have been wrapped by somebody,\n")
    check(lambda text: read_document(text.encode(), "txt"), line, 1 << 19)


def pdf_of_equal_lines(size: int) -> str:
    """As a list of telephone numbers, or a program: no line is shorter than the others."""
    line = "This is a line of just as many signs as all the others are ab"
    count = size // len(line)
    return pdf([[line] * min(50, count - at) for at in range(0, count, 50)]).decode("latin-1")


def pdf_of_bookmarks(size: int) -> str:
    """So many of them on one page of as many lines."""
    count = size // 20
    titles = [f"{number} The Same Title" for number in range(count)]
    return pdf([titles], [(0, title) for title in titles]).decode("latin-1")


@pytest.mark.parametrize(("make", "size"), [(pdf_of_equal_lines, 1 << 16), (pdf_of_bookmarks, 1 << 13)])
def test_a_pdf_is_read_in_linear_time(make: Callable[[int], str], size: int) -> None:
    def read(text: str) -> object:
        return into_parts(read_document(text.encode("latin-1"), "pdf"), lambda name: None)

    check(read, make, size)


def test_a_search_costs_no_more_for_a_longer_question(tmp_path: Path) -> None:
    library = Library(tmp_path)
    words = "the same few words again and again " * 400
    for number in range(20):
        told: tuple[Any, ...] = (words, None, "random", 1, {}, "finished", "stop", None, {}, 1, 1.0)
        library.takes.add(StoredTake(f"req_{number}", float(number), *told))
    for sought in (words, words[:-1] + "x"):
        check(lambda query: library.takes.page(TakeFilter(query)), end_of(sought), 1024)


def project_of(library: Library, parts: int, text: str) -> Project:
    """One whose parts were all spoken; their rows are written at once."""
    settings = ProjectSettings()
    project = library.projects.create("", "Book", "txt", [NewPart(text)] * parts, settings)
    with library.store.writing() as db:
        ids = [row["id"] for row in db.table("parts").rows_where("project_id = ?", [project.id])]
        take = asdict(PartTake("", "", 1.0, settings.recipe(text, None), "anna", 1, "stop", "0" * 64, 1, 1, 9, 1.0))
        db.table("part_takes").insert_all(take | {"id": f"take_of_{part}", "part_id": part} for part in ids)
        db.execute("update parts set chosen = 'take_of_' || id, state = 'done' where project_id = ?", [project.id])
    return library.projects.get(project.id, None)


def least(work: Callable[[], object], tries: int = TRIES) -> float:
    return min(cost(lambda _: work(), "") for _ in range(tries))


def test_a_poll_of_a_project_reads_none_of_its_texts(tmp_path: Path) -> None:
    library = Library(tmp_path)
    short, long = (project_of(library, 1000, "a" * size).id for size in (10, MAX_PART_TEXT))
    assert library.projects.get(long, None).characters == 1000 * MAX_PART_TEXT
    costs = [least(partial(library.projects.get, project, None)) for project in (short, long)]
    assert costs[1] <= TIMES * max(costs[0], 0.001), costs


def test_projects_are_listed_by_as_many_statements_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library, statements = Library(tmp_path), list[str]()
    execute = Database.execute

    def counted(self: Database, sql: str, *values: Any) -> Any:
        statements.append(sql)
        return execute(self, sql, *values)

    counts = []
    for _ in range(2):
        for number in range(10):
            project_of(library, 1, f"Number {number}.")
        with monkeypatch.context() as patched:
            patched.setattr(Database, "execute", counted)
            statements.clear()
            assert all(project.parts["done"] == 1 for project in library.projects.page(None))
            counts.append(len(statements))
    assert counts[0] == counts[1] < 10


@pytest.mark.parametrize("phrase", ["in no part", "words"])
def test_an_entry_of_a_project_costs_the_same_whatever_else_its_dictionary_has(tmp_path: Path, phrase: str) -> None:
    library = Library(tmp_path)
    project = project_of(library, 1000, "Some words of a book, as long as they are. " * 5)
    shelf, costs = Shelf("project", project.id), []

    def put_and_take() -> None:
        library.pronunciations.delete(library.pronunciations.add(shelf, Pronunciation(phrase, "said")).id)

    for entries in (1, 1000):
        library.pronunciations.merge(shelf, [Pronunciation(f"word{n}x", "said") for n in range(entries)], True)
        costs.append(least(put_and_take))
    listed = least(lambda: library.pronunciations.on(shelf))  # each of the two reads the dictionary
    assert costs[1] <= TIMES * (costs[0] + 2 * listed), costs


def test_settings_that_no_part_is_spoken_with_read_none(tmp_path: Path) -> None:
    library = Library(tmp_path)
    projects, costs = [project_of(library, count, "Some words. " * 20) for count in (10, 2000)], []
    for project in projects:
        for at in (0.1, 0.2, 0.3):  # a change each time
            settings = replace(project.settings, pause=at)
            edit = partial(library.projects.edit, project.id, None, None, settings)
            costs.append(least(edit, 1))
    assert min(costs[3:]) <= TIMES * max(min(costs[:3]), 0.001), costs

"""What twice the input costs: at most three times the work, in every parser of what strangers send."""

from __future__ import annotations

import contextlib
import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from studio.api.fish.fish_speech import FishSpeech, Speakers
from studio.api.fish.fish_voices import names_for, tags_of, words_of
from studio.api.fish.message_pack import MAX_VALUES, pack, unpack
from studio.api.written_text import WrittenText
from studio.errors import InvalidRequest
from studio.library import Library, StoredTake, TakeFilter
from studio.library.checks import MAX_DESCRIPTION, clean_text
from studio.library.voices.names import clean_name, clean_slug, fold
from studio.projects.documents import into_parts, read_document
from studio.speech.dialogue import read_turns
from studio.speech.reading import normalised as read_aloud
from studio.speech.text import Sentences, read_script, split_text
from studio.strings import normalised
from studio.takes.export import file_name
from tests.studio.documents import epub, page

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


def written_live(text: str) -> None:
    """As a socket of Fish Audio takes it: cut after a chunk's length where no sentence ends."""
    writing = WrittenText(limit=100)
    for at in range(0, len(text), 4):
        writing.add(text[at : at + 4])
        if at % 4000 == 0:
            writing.drop()
    writing.flush()


def spoken_by(text: str) -> object:
    return FishSpeech(text=text, reference_id=["anna", "bert"]).speech_request()


FISH: dict[str, Work] = {
    "a text as it is written": written_live,
    "speakers": spoken_by,
    "a speaker who goes on": lambda text: [Speakers().continued(text), Speakers().continued(f"<|speaker:1|>{text}")],
    "a title": names_for,
    "words with commas": lambda text: words_of([text], 8),
    "tags": lambda text: tags_of([text]),
    "MessagePack": lambda text: unpack(pack({"text": text, "pieces": text.split(" ")[: MAX_VALUES - 10]})),
}


@pytest.mark.parametrize("kind", ["sentences", "letters", "marks out of order", "blanks", "opened tags", "speakers"])
@pytest.mark.parametrize("reader", FISH)
def test_what_fish_audios_clients_send_is_read_in_linear_time(reader: str, kind: str) -> None:
    check(FISH[reader], pieces({"speakers": "<|speaker:1|>a,"}.get(kind) or PIECES[kind]), 4096)


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
    "cues": "\n2\n00:00:01,000 --> 00:00:02,000\nHello\n",
}


@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("format_name", DOCUMENTS)
def test_documents_are_read_in_linear_time(format_name: str, kind: str) -> None:
    def read(text: str) -> object:
        document = read_document(DOCUMENTS[format_name](text), format_name.partition(",")[0])
        return into_parts(document, lambda name: None)

    check(read, pieces(HARD[kind]), 2048)


def test_a_wrapped_paragraph_of_a_book_is_put_together_in_linear_time() -> None:
    """What copies all that is there already for every line shows only where that is longer than a cache."""
    line = pieces("A line that is long enough to have been wrapped by somebody,\n")
    check(lambda text: read_document(text.encode(), "txt"), line, 1 << 19)


def test_a_search_costs_no_more_for_a_longer_question(tmp_path: Path) -> None:
    library = Library(tmp_path)
    words = "the same few words again and again " * 400
    for number in range(20):
        told: tuple[Any, ...] = (words, None, "random", 1, {}, "finished", "stop", None, {}, 1, 1.0)
        library.takes.add(StoredTake(f"req_{number}", float(number), *told))
    for sought in (words, words[:-1] + "x"):
        check(lambda query: library.takes.page(TakeFilter(query)), end_of(sought), 1024)

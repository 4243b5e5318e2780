"""Cost of twice the input: at most three times the work, in every reader of untrusted texts and names."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.history.take_export import file_name
from studio.library import Library
from studio.library.checks import MAX_DESCRIPTION, clean_text
from studio.library.takes.take import Take
from studio.library.voices.names import clean_name, clean_slug, fold
from studio.speech.dialogue import read_turns
from studio.speech.reading import normalised as read_aloud
from studio.speech.script.brackets import read_brackets
from studio.speech.script.markup import without_markup
from studio.speech.script.signs import clean_signs
from studio.speech.text import Sentences, read_script, split_text
from studio.unicode_text import normalize
from tests.growth import PIECES, Work, check, pieces


def written(text: str) -> list[str]:
    """The text's sentences, read in small pieces as a language model writes them."""
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
def test_pasted_text_is_cleaned_in_linear_time(cleaner: str, kind: str) -> None:
    check(CLEANERS[cleaner], pieces(PASTED[kind]), 4096)


@pytest.mark.parametrize("kind", ["questions", "ellipses", "opened entities", "soft hyphens"])
def test_pasted_text_is_split_in_linear_time(kind: str) -> None:
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
    "composed": lambda text: normalize("NFC", text),
    "of a voice": clean_name,
    "in requests": clean_slug,
    "a description": lambda text: clean_text("description", text, MAX_DESCRIPTION),
}


@pytest.mark.parametrize("kind", ["letters", "marks without a letter", "marks out of order", "blanks", "stops"])
@pytest.mark.parametrize("reader", NAMES)
def test_names_are_processed_in_linear_time(reader: str, kind: str) -> None:
    check(NAMES[reader], pieces(PIECES[kind]), 4096)


@pytest.mark.parametrize("kind", PIECES)
def test_file_name_of_a_take_is_built_in_linear_time(kind: str) -> None:
    check(lambda text: file_name(Take("req_1", 1.0, "anna", 1, text=text), "mp3"), pieces(PIECES[kind]), 4096)


def test_voice_is_looked_up_in_linear_time(tmp_path: Path) -> None:
    voices = Library(tmp_path).voices
    check(voices.exists, pieces(PIECES["marks out of order"]), 4096)
    check(voices.page, pieces(PIECES["marks out of order"]), 4096)

"""Cost of twice the input: at most three times the work, in every reader of untrusted texts and names."""

from __future__ import annotations

from pathlib import Path

import pytest

from manuscript.documents import into_parts, read_document
from speechtext.characters import clean_signs, normalize
from speechtext.language import guess_language
from speechtext.markup import without_markup
from speechtext.reading import normalised as read_aloud
from speechtext.script import Sentences, read_script, split_text
from speechtext.tags import read_brackets
from speechtext.turns import read_turns
from studio.library import Library
from studio.library.checks import MAX_DESCRIPTION, clean_text
from studio.library.names import clean_name, clean_slug, fold
from studio.library.pronunciation_repository import read_dictionary
from studio.library.take import Take
from studio.takes.take_export import file_name
from tests.growth import PIECES, Work, check, cost, pieces
from tests.patterns.hostile_texts import AROUND, FORMS, PASTED


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


@pytest.mark.parametrize("form", FORMS)
def test_written_forms_are_read_in_linear_time(form: str) -> None:
    check(read_aloud, pieces(form), 2048)


READERS: dict[str, Work] = {
    **CLEANERS,
    "a script": TEXTS["a script"],
    "a dialogue": read_turns,
    "as words": read_aloud,
    "its language": guess_language,
    "a plain document": lambda text: into_parts(read_document(text.encode(), "txt")),
    "Markdown": lambda text: into_parts(read_document(text.encode(), "md")),
    "subtitles": lambda text: read_document(f"1\n00:00:01,000 --> 00:00:02,000\n{text}".encode(), "srt"),
    "times of subtitles": lambda text: read_document(text.encode(), "srt"),
    "a table": lambda text: read_document(f"text\n{text}".encode(), "csv"),
    "a dictionary": lambda text: read_dictionary(f"phrase,said\n{text}".encode()),
}


@pytest.mark.parametrize("reader", READERS)
def test_run_between_two_signs_is_read_in_linear_time(reader: str) -> None:
    for make in AROUND.values():
        if cost(READERS[reader], make(8192)) > 0.03:  # quadratic growth takes at least ten times as long
            check(READERS[reader], make, 4096)


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

"""Some hundred written forms, each with its right reading: a few words of each kind, and some lookalikes."""

from __future__ import annotations

from pathlib import Path

import pytest

from speechtext.reading import normalised
from speechtext.word_times import Timed, with_times_as_written, words_in

TABLE = Path(__file__).with_name("readings.tsv")
READINGS = [line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines() if not line.startswith("# ")]


@pytest.mark.parametrize(("written", "read"), READINGS, ids=[written for written, _ in READINGS])
def test_normalised_forms_match_the_expected_readings(written: str, read: str) -> None:
    assert normalised(written) == read


def test_normalising_twice_changes_nothing() -> None:
    assert [(read, normalised(read)) for _, read in READINGS if normalised(read) != read] == []


def test_words_beside_a_normalised_form_keep_their_times() -> None:
    """The words of the form itself share the time of the words read in their place."""
    for written, read in READINGS:
        text, spoken = (f"Yesterday morning {form}, said nobody else" for form in (written, read))
        words = [Timed(spoken[start:end], at, at + 1) for at, (start, end) in enumerate(words_in(spoken))]
        timed = with_times_as_written(text, words)
        assert [word.text for word in timed] == [text[start:end] for start, end in words_in(text)]
        assert (timed[:2], timed[-3:]) == (words[:2], words[-3:]), text
        assert timed == sorted(timed, key=lambda word: word.start)


def test_only_sentence_starts_are_capitalised() -> None:
    assert (
        normalised("I said STOP. NOW! [sigh] DO [pause:1s] IT, or GO.")
        == "I said stop. Now! [sigh] Do [pause:1s] IT, or go."
    )


def test_very_long_drawn_out_word_is_read_as_a_word() -> None:
    assert normalised("NO" + "O" * 700) == "No" + "o" * 700

"""A transcript compared with the words heard: only audible differences are marked."""

from __future__ import annotations

import time

import pytest

from speechtext.errors import TextError
from speechtext.transcript import compare

CASES = {
    "the same": ("Hello, world!", "hello world", []),
    "spelt in another way": ("The colour is grey.", "the color is gray", []),
    "a word missing in the clip": ("one two three", "one three", [("two", "")]),
    "a word more in the clip": ("one three", "one two three", [("", "two")]),
    "another word": ("the Green, fish", "the bright fish", [("Green", "bright")]),
    "an end cut off": ("it swam home again.", "it swam", [("home again", "")]),
    "an end more": ("it swam", "it swam home again", [("", "home again")]),
    "no blanks between words": ("今天天气好。", "今天天氣好", [("气", "氣")]),
    "apostrophes": ("It’s don't", "its dont", []),
    "two ways to write an accent": ("cafe\u0301 noir", "café noir", []),
    "nothing heard": ("words", "", [("words", "")]),
    "nothing written": ("", "words", [("", "words")]),
}


@pytest.mark.parametrize("case", CASES)
def test_only_audible_differences_are_marked(case: str) -> None:
    written, heard, expected = CASES[case]
    marks = compare(written, heard)
    assert [(mark.text, mark.heard) for mark in marks if mark.heard is not None] == expected
    assert "".join(mark.text for mark in marks) == written.replace("e\u0301", "é")


def test_long_texts_are_compared_in_bounded_time_and_longer_ones_refused() -> None:
    written = "".join("的" + chr(0x4E00 + number) for number in range(1000))
    heard = "".join("的" + chr(0x5E00 + number) for number in range(1000))
    began = time.thread_time()  # processor time, unaffected by a busy machine
    marks = compare(written, heard)
    assert time.thread_time() - began < 10  # difflib's matcher needs minutes
    assert "".join(mark.text for mark in marks) == written
    for pair in (("a" * 2001, "a"), ("a", "a" * 2001)):
        with pytest.raises(TextError, match="2000"):
            compare(*pair)

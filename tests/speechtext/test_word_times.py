"""Words as typed, with the times of the words that were read."""

from __future__ import annotations

import time

import pytest

from speechtext.reading import normalised
from speechtext.word_times import Timed, are_all, places_of, sentences, with_times_as_written, words_in


def words_of(text: str) -> list[str]:
    return [text[start:end] for start, end in words_in(text)]


def read_aloud(text: str, read: str | None = None) -> list[Timed]:
    """Times as if each spoken word took a second."""
    words = words_of(normalised(text) if read is None else read)
    return with_times_as_written(text, [Timed(word, float(at), at + 1.0) for at, word in enumerate(words)])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[whisper] “Hello,” she said — it's late… [pause:1s] OK?", ["Hello", "she", "said", "it's", "late", "OK"]),
        ("<|speaker:0|>你好，世界。 Hi ですか", ["你", "好", "世", "界", "Hi", "で", "す", "か"]),
        ("twenty-four & 50% at $3.50 (v2.0)!", ["twenty-four", "&", "50%", "at", "$3.50", "v2.0"]),
        ("Où est l’été? ... — !", ["Où", "est", "l’été"]),
        ("", []),
    ],
)
def test_words_exclude_tags_and_punctuation(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_normalised_words_have_the_time_of_all_their_spoken_words() -> None:
    words = read_aloud("Lunch was $34.50, salt & pepper (50%) at 5:30 pm.")
    timed = {word.text: (word.start, word.end) for word in words}
    assert timed == {
        "Lunch": (0, 1),
        "was": (1, 2),
        "$34.50": (2, 7),  # thirty-four dollars and fifty cents
        "salt": (7, 8),
        "&": (8, 9),
        "pepper": (9, 10),
        "50%": (10, 12),
        "at": (12, 13),
        "5:30": (13, 15),
        "pm": (15, 16),
    }


def test_words_match_in_composed_and_decomposed_form() -> None:
    timed = read_aloud("e\u0301te\u0301 a\u0300 Lie\u0300ge, 5 pm", "\u00e9t\u00e9 \u00e0 Li\u00e8ge, five PM")
    assert [(word.text, word.start) for word in timed] == [
        ("e\u0301te\u0301", 0), ("a\u0300", 1), ("Lie\u0300ge", 2), ("5", 3), ("pm", 4)
    ]  # fmt: skip


def test_time_of_differently_read_words_is_shared_by_letter_count() -> None:
    timed = read_aloud("so a bcd end", "so x y z zz end")
    assert [(word.text, word.start, word.end) for word in timed[1:3]] == [("a", 1, 2), ("bcd", 2, 5)]
    assert timed[3] == Timed("end", 5, 6)


def test_unread_last_words_are_left_out_and_skipped_words_have_no_duration() -> None:
    assert [word.text for word in read_aloud("one two three four", "one two")] == ["one", "two"]
    assert read_aloud("one hum two three", "one two three")[1] == Timed("hum", 1, 1)
    assert read_aloud("one two", "") == []


def test_sentences_last_from_their_first_word_to_their_last() -> None:
    text = "Dr. Who [whisper] came. At 5:30 pm!\n\nHe left"
    assert sentences(text, read_aloud(text)) == [
        Timed("Dr. Who came.", 0, 3),
        Timed("At 5:30 pm!", 3, 7),
        Timed("He left", 7, 9),
    ]
    assert sentences(text, read_aloud(text)[:4]) == [Timed("Dr. Who came.", 0, 3), Timed("At 5:30 pm!", 3, 4)]


def test_spoken_words_in_brackets_are_timed_in_their_sentence() -> None:
    text = "[whisper] He cast [Fire Ball].[1] [low] See [the page](https://a.b/c) and re\u00adst \U0001f389."
    spoken = words_of("He cast Fire Ball See the page and rest")
    read = [Timed(word, float(at), at + 1.0) for at, word in enumerate(spoken)]
    timed = with_times_as_written(text, read, ("whisper", "low"))
    assert [word.text for word in timed] == ["He", "cast", "Fire", "Ball", "See", "the", "page", "and", "re\u00adst"]
    assert [word.start for word in timed] == [float(at) for at in range(9)]
    assert [(sentence.text, sentence.start, sentence.end) for sentence in sentences(text, timed)] == [
        ("He cast Fire Ball.", 0, 4),
        ("See the page(https://a.b/c) and re\u00adst \U0001f389.", 4, 9),
    ]
    words = [word.text for word in timed]
    assert [text[place : place + 4] for place in places_of(text, words)][2:5] == ["Fire", "Ball", "See "]
    assert are_all(text, words) and not are_all(text, words[:-1]) and not are_all(text, [])
    assert [word.text for word in with_times_as_written("He cast [Fire Ball] now", read[:2])] == ["He", "cast"]


@pytest.mark.parametrize(("unit", "read"), [("1 a ", "one a "), ("12 a ", "x b "), ("a ", "a a ")])
def test_longest_text_is_timed_quickly(unit: str, read: str) -> None:
    """An algorithm quadratic in the words would take minutes."""
    count = 16_384 // len(unit)
    began = time.thread_time()  # processor time, unaffected by a busy machine
    timed = read_aloud(unit * count, read * count)
    assert len(timed) == 2 * count or unit == "a "
    assert time.thread_time() - began < 20

"""The text compared with its transcript: faults are named, other spellings of the same sound are not."""

from __future__ import annotations

import pytest

from longform.proof.comparison import HeardWord, Text, compare
from longform.proof.spelling import are_alike
from speechtext.reading import normalised
from tests.growth import check

Case = tuple[str, str] | tuple[str, str, str]
"""The text, its transcript, and the language if it cannot be detected from the text."""
SAME: dict[str, Case] = {
    "case and signs": ("“Come in,” she said.", "come in she said"),
    "a price": ("He paid $3.50 for it.", "He paid $3 .50 for it."),
    "a price in words": ("He paid $3.50 for it.", "he paid three dollars and fifty cents for it"),
    "a year": ("By 1984 it had closed.", "by nineteen eighty-four it had closed"),
    "a year in figures": ("By nineteen eighty-four it had closed.", "By 1984, it had closed."),
    "an ordinal": ("On the 5th floor.", "on the fifth floor"),
    "a date": ("On March 3rd, 1911, it rained.", "On March 3, 1911, it rained."),
    "a number with and without and": ("There were 312 people.", "there were three hundred twelve people"),
    "percent": ("About 40% of them left.", "about 40 % of them left"),
    "a title": ("Old Mr. Abernathy kept it.", "old mister Abernathy kept it"),
    "names": ("I told Siobhan and Thaddeus about it.", "I told Shivon and Thadius about it"),
    "a name in two words": ("Then Captain Abernathy came.", "then Captain Aber Nathy came"),
    "hyphens": ("The well-keeper was thirty-one.", "the well keeper was 31"),
    "one word or two": ("I do not know any more.", "I do not know anymore"),
    "contractions": ("I don't think we'll go.", "I do not think we will go"),
    "homophones": ("Their son knew the whole tale.", "there sun new the hole tail"),
    "British and American": ("The colour of the centre", "the color of the center"),
    "a tag": ("[whisper] Come here.", "come here"),
    "German": ("Wir sahen zweiundvierzig Schiffe.", "Wir sahen 42 Schiffe.", "de"),
    "German figures": ("Es kostet 42 Euro und ist schön.", "Es kostet zweiundvierzig Euro und ist schön.", "de"),
    "French": ("C'est l'été de la mère.", "c'est l'ete de la mere"),
    "Chinese": ("今天天气很好。", "今天天气很好"),
}
FAULTS = {
    "a word left out": ("We went to the old harbour", "we went to the harbour", [("left_out", "old", "")]),
    "another word": ("We saw the harbour", "we saw the garden", [("changed", "harbour", "garden")]),
    "a short word": ("She went in at noon", "she went on at noon", [("changed", "in", "on")]),
    "not": ("You can go home", "you can't go home", [("changed", "can", "can't")]),
    "added": ("We went home today", "we went home please today", [("added", "", "please")]),
    "twice": ("He put it on the table", "he put it put it on the table", [("repeated", "", "put it")]),
    "a number twice": ("One two three four", "one two two three four", [("repeated", "", "two")]),
    "another number": ("There were 312 of us", "there were 315 of us", [("changed", "312", "315")]),
    "an end": ("It was a cold, clear morning", "it was a cold", [("cut_end", "clear morning", "")]),
    "an end in mid-word": ("It was a cold, clear morning", "it was a cold cle", [("cut_end", "clear morning", "cle")]),
    "nothing": ("Nothing at all", "", [("cut_end", "Nothing at all", "")]),
    "two faults": (
        "The boat came home before noon",
        "the came home after noon",
        [("left_out", "boat", ""), ("changed", "before", "after")],
    ),
    "German": ("Der Hund bellt laut im Hof", "der Hund bellt im Hof", [("left_out", "laut", "")]),
    "Chinese": ("今天天气很好", "今天天气好", [("left_out", "很", "")]),
}


def differences(typed: str, heard: str, language: str = "", read: str | None = None) -> list[tuple[str, str, str]]:
    words = [HeardWord(word, at * 0.3, at * 0.3 + 0.3) for at, word in enumerate(heard.split())]
    text = Text(typed, normalised(typed) if read is None else read, language)
    differences_in_order = compare(text, words).differences
    return [
        (difference.kind, " ".join(text.words[difference.first : difference.last]), difference.heard)
        for difference in differences_in_order
    ]


@pytest.mark.parametrize("case", SAME)
def test_another_spelling_of_the_same_sound_is_not_a_difference(case: str) -> None:
    assert differences(*SAME[case]) == []


@pytest.mark.parametrize("case", FAULTS)
def test_misread_words_are_reported(case: str) -> None:
    typed, heard, expected = FAULTS[case]
    actual = differences(typed, heard)
    if case == "Chinese":
        actual = [(kind, words.replace(" ", ""), spoken) for kind, words, spoken in actual]
    assert actual == expected


def test_spelling_and_dictionary_pronunciation_are_both_accepted() -> None:
    assert differences("Ask SQL for it", "ask sequel for it", read="Ask sequel for it") == []
    assert differences("Ask SQL for it", "ask SQL for it", read="Ask sequel for it") == []
    assert differences("Ask SQL for it", "ask nobody for it", read="Ask sequel for it") == [
        ("changed", "SQL", "nobody")
    ]


def test_difference_has_its_time_in_the_audio() -> None:
    words = [HeardWord(word, at, at + 1.0, 0.5) for at, word in enumerate(["one", "two", "five", "four"])]
    [difference] = compare(Text("One two three four", "One two three four"), words).differences
    assert (difference.start, difference.end, difference.certainty) == (2.0, 3.0, 0.5)
    [difference] = compare(Text("One two three four", "One two three four"), [words[0], words[1], words[3]]).differences
    assert (difference.start, difference.end) == (2.0, 3.0), "between the words beside it"


def test_words_with_different_vowels_are_not_alike() -> None:
    assert are_alike("guest", "guessed") and are_alike("realise", "realize")
    assert not are_alike("ready", "rude") and not are_alike("he", "she") and not are_alike("312", "315")
    assert are_alike("thaddeus", "fadius", is_name=True) and not are_alike("thaddeus", "oliver", is_name=True)


LETTERS = "".join(chr(0x4E00 + 7919 * number % 2000) for number in range(1 << 14))


@pytest.mark.parametrize("shift", [1, 500], ids=["a letter left out", "other letters"])
def test_text_without_spaces_is_compared_in_linear_time(shift: int) -> None:
    """Each letter is a word; 4,000 of them are the longest part."""

    def compared(text: str) -> object:
        return compare(Text(text, text, "zh"), [HeardWord(text[shift:], 0.0, float(len(text)))])

    check(compared, lambda size: LETTERS[:size], 512)


def test_fault_in_a_long_text_is_found_like_one_in_a_short_text() -> None:
    words = [f"{first}{last}" for first in "bdfgklmnprst" for last in ("alo", "eno", "iro", "oma", "uso", "aty")] * 6
    heard = [*words[:200], *words[180:230], "garden", *words[231:300], *words[302:]]
    found = compare(
        Text(" ".join(words), " ".join(words), "en"),
        [HeardWord(word, float(at), at + 0.5) for at, word in enumerate(heard)],
    )
    faults = [(difference.kind, difference.last - difference.first) for difference in found.differences]
    assert faults == [("repeated", 0), ("changed", 1), ("left_out", 2)]

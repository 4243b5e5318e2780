"""What print and transcribers leave in a text is no part of its words: names of speakers, notes with stars, lists."""

from __future__ import annotations

import pytest

from manuscript.cast import Casting, split_by_speaker
from manuscript.documents import read_document
from manuscript.passages import Document, Passage
from tests.growth import check, pieces

TURNS = [
    ("SMYTHE", "Ha, Dolly!"), ("DOLLY", "Good evening, all of you."), ("SMYTHE", "Sit down."), ("MRS. OWB", "No."),
    ("DOLLY", "Why?"), ("MRS. OWB", "Because."), ("SMYTHE", "So."),
]  # fmt: skip


def read(text: str) -> Document:
    return read_document(text.encode(), "txt")


@pytest.mark.parametrize("form", ["{0}.\n\n{1}", "{0}\n\n{1}", "_{2}._ {1}", "_{2}_. {1}", "{0}. {1}"])
def test_names_of_a_play_are_its_characters_wherever_they_stand(form: str) -> None:
    lines = [form.format(name, words, name.title()) for name, words in TURNS]
    spoken = split_by_speaker(read("\n\n".join(["ACT I.", *lines])), Casting({}), find_speakers=True)
    passages = [passage for passage in spoken.passages if not passage.chapter]
    expected = [(name.replace(".", ""), words) for name, words in TURNS]
    if form != "{0}. {1}":  # the form that was known, whose names end at their first full stop
        assert [(passage.speaker, passage.text) for passage in passages] == expected
    assert passages[0].speaker == "SMYTHE" and spoken.passages[0].chapter == "ACT I."


def test_few_lines_in_capitals_are_no_names() -> None:
    lines = ["NOTICE.", "The inn is closed.", "NOTICE.", "It is open again.", "THE SIGN.", "_Anna._ She left."]
    assert [passage.text for passage in read("\n\n".join(lines)).passages] == [*lines[:-1], "Anna. She left."]


def test_notes_with_stars_are_left_out_with_their_marks() -> None:
    text = (
        "The whale* was white.** It *really* swam, and **so** on.\n\n* In the old books.\n\n**As they say.\n\n"
        "Then the end† came.\n\nNobody knew.\n\n† This is disputed.\n\n* one\n\n* two\n\n* * *\n\n*So* it was."
    )
    document = read(text)
    assert [passage.text for passage in document.passages] == [
        "The whale was white. It really swam, and so on.", "Then the end came.", "Nobody knew.", "* one", "* two",
        "So it was.",
    ]  # fmt: skip
    assert document.skipped == ("3 footnotes and endnotes are left out.",)


def test_notes_of_the_transcriber_are_left_out_at_both_ends() -> None:
    body = [f"This is paragraph {number} of the book." for number in range(30)]
    front = ["[Transcriber's Note:", "The HTML version of this e-text includes pictures.", "Spelling is as printed.]"]
    back = ["ERRATA NOTED BY TRANSCRIBER", "Act 1: I prophesy that Mr. Morgan's picture", "Act 2: prophecy"]
    document = read("\n\n".join([*front, *body, *back]))
    assert [passage.text for passage in document.passages] == body
    assert document.skipped == ("The transcriber's notes are left out.",)
    story = ["Transcriber's Notes was the title of her novel.", *body]
    assert len(read("\n\n".join(story)).passages) == len(story)


KINDS = {"marks": "a*\n\n", "notes": "a*\n\n*b\n\n", "many marks": "a* ", "names": "A B.\n\nc\n\n",
         "italics": "_A._ b\n\n", "open italics": "_A b", "errata": "Errata\n\n"}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_texts_with_notes_and_names_are_read_in_linear_time(kind: str) -> None:
    check(lambda text: read(f"{text}a\n\nb"), pieces(KINDS[kind]), 16_384)


def test_bold_words_lose_their_signs_and_equations_keep_theirs() -> None:
    assert read("It was =Katrine's= own, =so there=.").passages[0].text == "It was Katrine's own, so there."
    assert read("Here a = b = c, x=1 and y==2=.").passages[0].text == "Here a = b = c, x=1 and y==2=."


def test_scenes_end_where_names_are_joined_with_their_words() -> None:
    lines = [line for name, words in TURNS for line in (name, words)]
    document = read("\n\n".join([*lines[:4], "* * *", *lines[4:]]))
    assert isinstance(document.passages[1], Passage) and document.passages[1].scene

"""Small texts, one for each kind of error that real novels showed: who speaks, their gender, and who is no person."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from manuscript import read_document, speakers_in
from manuscript.attribution import attribute
from manuscript.cast import most_mended
from manuscript.passages import SURE

CASES: list[dict[str, Any]] = json.loads(Path(__file__).with_name("casting.json").read_text("utf-8"))


@pytest.mark.parametrize("case", CASES, ids=[case["kind"].partition(":")[0] for case in CASES])
def test_lines_have_their_speakers(case: dict[str, Any]) -> None:
    paragraphs = case["text"].split("\n\n")
    answer = attribute(paragraphs)
    names = {person.name: {name.lower() for name in (person.name, *person.names)} for person in answer.characters}
    spoken = [(paragraphs[each.paragraph][each.start : each.end], each) for each in answer.lines if each.is_speech]
    for starts, nth, wanted in case["lines"]:
        line = [line for text, line in spoken if text.startswith(starts)][nth - 1]
        known = names.get(line.speaker or "", {None})
        assert known & {name and name.lower() for name in wanted}, (starts, line)
        # One entry must not also be somebody else of the same text.
        elsewhere = (people for _, _, people in case["lines"] if not set(people) & set(wanted))
        others = {name.lower() for people in elsewhere for name in people if name}
        assert not known & others, (starts, line)
    assert not set(names) & set(case["not_characters"])
    genders = {name: person.gender for person in answer.characters for name in person.names}
    assert {name: genders.get(name) for name in case["genders"]} == case["genders"]


def test_line_of_an_unknown_voice_is_unsure() -> None:
    [case] = [case for case in CASES if case["kind"].startswith("unnamed voice")]
    line = next(line for line in attribute(case["text"].split("\n\n")).lines if line.is_speech)
    assert (line.confidence or 0) < SURE


def test_cast_does_not_depend_on_the_hash_seed() -> None:
    """This process has any."""
    script = (
        "import json, manuscript.attribution as a\n"
        "for case in json.load(open('tests/manuscript/casting.json', encoding='utf-8')):\n"
        "    print(a.attribute(case['text'].split('\\n\\n')))"
    )
    cast = subprocess.run(
        [sys.executable, "-c", script],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": "4", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        check=True,
        encoding="utf-8",
    ).stdout
    assert cast.splitlines() == [str(attribute(case["text"].split("\n\n"))) for case in CASES]


def test_narrator_has_the_name_by_which_others_address_him() -> None:
    paragraphs = [
        paragraph
        for number in range(12)
        for paragraph in (f"“Is it far, Edmund, by road {number}?” asked Clara.", "“Far enough,” I said.")
    ]
    answer = attribute([*paragraphs, "Edmund’s horse was tired. Jack came in.", "“Sit down,” he said."])
    people = {person.name: person for person in answer.characters}
    assert (people["I"].names[0], people["I"].gender) == ("I", "male") and "Edmund" in people["I"].names
    spoken = [line.speaker for line in answer.lines if line.is_speech]
    assert spoken == ["Clara", "I"] * 12 + ["Jack"]


def test_heading_with_a_colon_is_nobodys_line() -> None:
    text = "Chapter 1: Leaving\n\nIt rained.\n\nChapter 2: Back\n\nAnna: Here I am.\n\nBert: At last!"
    document = speakers_in(read_document(text.encode(), "txt"))
    assert [passage.speaker for passage in document.passages] == ["", "", "", "Anna", "Bert"]
    assert document.passages[0].text == "Chapter 1: Leaving"
    volumes = "London:\nPrinted for A. Bell.\n\nIt rained.\n\nIt snowed.\n\nThe end.\n\n"
    assert not speakers_in(read_document((volumes * 2).encode(), "txt")).cast, "an imprint speaks only once"


def test_long_quotation_in_several_passages_is_one_question() -> None:
    letter = [(0, 0.4, False), (1, 0.4, True), (2, 0.4, True)]
    assert most_mended([*letter, (100, 0.45, False), (102, 0.45, False)]) == [100, 102, 0, 1, 2]


def test_mark_after_the_narrators_words_is_not_spoken() -> None:
    text = "—Ya voy —respondió Luis—. Espera."
    spoken = [text[line.start : line.end].strip() for line in attribute([text, text]).lines if line.is_speech]
    assert spoken == ["Ya voy", "Espera."] * 2


def test_list_with_hyphens_is_no_speech() -> None:
    answer = attribute(["- Bread, said to be fresh", "- Milk - two bottles", "-- Salt", "-- Tea"])
    assert not any(line.is_speech for line in answer.lines)

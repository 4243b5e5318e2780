"""A script is cut at sentence ends only, without losing a word, and its pauses become silence."""

from __future__ import annotations

import random
import re

import pytest

from speechtext import TextError
from speechtext.script import Pause, Script, Words, read_script, sentences_of, split_text


def parts(text: str, limit: int = 100) -> list[str]:
    return [step.text for step in read_script(text, limit) if isinstance(step, Words)]


def solid(text: str) -> str:
    return re.sub(r"\s", "", text)


def test_text_within_the_limit_is_one_part() -> None:
    assert read_script("  Hello there. How are you?  ") == (Words("Hello there. How are you?"),)
    assert read_script(".") == (Words("."),)


WHOLE_SENTENCES = [
    "It costs 3.14 dollars, or 1,000.50 in all, says v2.0.1 of the list.",
    "Dr. Smith met Mrs. Jones at 5 p.m. in St. Mary's, e.g. on Monday.",
    "J. R. R. Tolkien and U.S. readers agree with Prof. A. Miller.",
    "Wait... what did you say, there at the end of the road?",
    "Am 3. Oktober kam z.B. Hr. Meier, ca. 40 Jahre alt, nach Hause.",
    "Um 44 v. Chr. war z. B. Rom i. d. R. noch nicht so bekannt.",
    "In Roe v. Wade of 1973, b. 1756 and d. 1791 and c. 1850 stand.",
    'He said "Stop." and then he left without another word to anyone.',
    "It was (was it really?) the last one [so they say!] of them all, vv. 3 and 4.",
]


@pytest.mark.parametrize("sentence", WHOLE_SENTENCES)
def test_full_stops_within_a_sentence_do_not_split_it(sentence: str) -> None:
    filler = "This one is only here so that the text is too long to be a part."
    assert parts(f"{sentence} {filler}") == [sentence, filler]


@pytest.mark.parametrize(
    "text",
    [
        "今天天气很好。我们去公园吧！你觉得怎么样？" * 4,
        "これはテストです。「はい。」と言いました。もう一度お願いします。" * 4,
        "هذه جملة أولى طويلة قليلا. هل تسمعني الآن؟ نعم، أسمعك جيدا جدا. " * 3,
        "यह पहला वाक्य है। यह दूसरा वाक्य है। और यह तीसरा वाक्य है। " * 3,
        "a" * 450,
        "word " * 120,
        "👩‍👩‍👧‍👦" * 30,
        "e\u0301" * 200,
        "One line\nAnother line\n\n" * 12,
    ],
)
def test_parts_respect_the_limit_without_losing_letters(text: str) -> None:
    pieces = parts(text)
    assert solid("".join(pieces)) == solid(text)
    assert all(0 < len(part.encode()) <= 100 for part in pieces)
    assert len(pieces) > 1


def test_single_line_models_get_a_full_stop_at_paragraph_ends() -> None:
    text = "You need:\n\na tape measure \n \n[slow] paper\n\n2 \n\nThe salt\nis “here”.\n\nEnd\n\n"
    [words] = read_script(text, one_line=True)
    assert words == Words("You need: a tape measure. [slow] paper. 2. The salt is “here”. End")
    assert read_script(text) == (Words(text.strip()),)


def test_writing_without_spaces_is_cut_after_its_own_full_stops() -> None:
    assert all(part[-1] in "。！？" for part in parts("今天天气很好。我们去公园吧！你觉得怎么样？" * 4))


def test_a_long_sentence_is_cut_at_its_clauses() -> None:
    text = "When the rain had stopped at last, we went down to the river together, and nobody said a single word there."
    assert parts(text) == [
        "When the rain had stopped at last, we went down to the river together,",
        "and nobody said a single word there.",
    ]


def test_tags_are_never_cut() -> None:
    tag = "[speaks softly. Then louder, and with a smile]"
    text = f"{tag} This is what it is about. " * 6
    assert "".join(parts(text)).count(tag) == 6
    assert all(part.count("[") == part.count("]") for part in parts(text))


def test_each_part_starts_with_the_mark_of_its_speaker() -> None:
    text = "<|speaker:0|>First I say this, which is rather long by itself. And then I say that, which is long as well. "
    text += "<|speaker:1|>Now the other one speaks, and does so for a while. And goes on speaking after it, too."
    tags = [re.findall(r"speaker:\d", part)[0] for part in parts(text)]
    assert tags == sorted(tags) and set(tags) == {"speaker:0", "speaker:1"}
    assert all(part.startswith("<|speaker:") for part in parts(text))


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("One. [pause:1.5s] Two.", (Words("One."), Pause(1.5), Words("Two."))),
        ("[pause:300ms]One.[PAUSE: 2 s ]", (Pause(0.3), Words("One."), Pause(2.0))),
        ("One [pause] two [short pause] three.", (Words("One [pause] two [short pause] three."),)),
        ("[pause:1s][pause:1s] Go.", (Pause(1.0), Pause(1.0), Words("Go."))),
    ],
)
def test_pauses_with_a_length_become_silence_and_other_tags_go_to_the_model(text: str, script: Script) -> None:
    assert read_script(text) == script


@pytest.mark.parametrize("text", ["[pause:11s] a", "[pause:99999ms] a", "[pause:1s]"])
def test_invalid_pauses_are_refused(text: str) -> None:
    with pytest.raises(TextError) as refused:
        read_script(text)
    assert refused.value.param == "input"


def test_any_text_is_cut_without_loss() -> None:
    letters = "ab .!?,\n。，[]<|>0123 é\u0301👍🏽ش"
    dice = random.Random(7)
    for _ in range(300):
        text = "x" + "".join(dice.choice(letters) for _ in range(dice.randrange(400)))
        pieces = parts(text)
        assert solid("".join(pieces)) == solid(text)
        assert all(len(part.encode()) <= 100 or "[" in part or "<|" in part for part in pieces)


SENTENCES = [
    ["One is plain.", " [whisper] Two is soft.", " Three."],
    ["One!", " [pause] Two.", "[low] Three.", " <|speaker:1|>Four."],
    ['"Why?" he asked.', ' "Stop!" cried Anna.', " Then he left... and came back."],
    ["“No!” Mr. Smith said.", " “Go.”", " Then he left."],
    ["Gov. Newsom met Lt. Dan on Jan. 5, 2024.", " I thought . . . maybe not.", " Well . . .", " Yes… no."],
    ["Sen. A, Rev. B, Capt. C and Prof. D met at St. Paul's.", " It is No. 5 on p. 7 vs. p. 8.", " So."],
    ["J. R. R. Tolkien met a U.S. President at 5 p.m. in June.", " At 6 p.m.", " He left."],
    ["He said no.", " I did so in Dec.", " She did not.", " It is plan B.", " We go.", " We had 5.", " Then 6."],
    ["Paris is large.[1]", " It has museums.", " [2, 3] And so on.", " End."],
    ["**Bold one.**", " It&#39;s &quot;Why?&quot; he said.", "&nbsp;Then.\u200b", " End."],
    ["1. Take the key.", " 2. The door."],
    ["「はい。」と言いました。", "もう。"],
    ["# Head\n", "\n[whisper]\nOne.", "\n\n***\n\nTwo. …"],
]


@pytest.mark.parametrize("sentences", SENTENCES)
def test_sentences_are_split_as_a_reader_would(sentences: list[str]) -> None:
    assert sentences_of("".join(sentences)) == sentences


def test_sentence_with_a_leading_tag_is_a_separate_part() -> None:
    text = "One. Two. [pause] [whisper] Three. Four. [pause] Five. <|speaker:1|>[low] Six! Seven."
    assert split_text(text, 300, apart=True) == [
        "One. Two. [pause]",
        "[whisper] Three.",
        "Four. [pause] Five.",
        "<|speaker:1|>[low] Six!",
        "Seven.",
    ]
    assert split_text(text, 300) == [text]

"""Written forms are read as people say them, and all other text is unchanged."""

from __future__ import annotations

import random
import re

import pytest

from speechtext.reading import normalised
from training.texts.evaluation import Judged, evaluation_sentences


def spoken_words(text: str) -> list[str]:
    """The words without case, punctuation and hyphens."""
    plain = re.sub(r"\b([ap])\.m\.", r"\1m", text.lower()).replace("’", "'")
    return re.sub(r"[^\w'$€£%°]+", " ", plain).split()


JUDGED = evaluation_sentences()


@pytest.mark.parametrize("case", [case for case in JUDGED if case.kind == "number"], ids=lambda case: case.text)
def test_numbers_are_read_as_people_say_them(case: Judged) -> None:
    assert spoken_words(normalised(case.text)) == spoken_words(case.words)


def test_sentences_without_numbers_are_unchanged() -> None:
    assert not [case.text for case in JUDGED if case.kind != "number" and normalised(case.text) != case.text]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Dr. Smith paid $3.50 at 5:30 p.m.", "Doctor Smith paid three dollars and fifty cents at five thirty PM."),
        ("See you at 5 p.m. Bring $5-10.", "See you at five PM. Bring five to ten dollars."),
        ("From 1914-1918, in 1990-95 and the '80s.", "From nineteen fourteen to nineteen eighteen, in nineteen ninety "
         "to ninety-five and the eighties."),
        ("I have 1984 apples.", "I have one thousand nine hundred and eighty-four apples."),
        ("3/15/2024 or 15/3/2024 or 15.03.2024", "March fifteenth, twenty twenty-four or March fifteenth, twenty "
         "twenty-four or March fifteenth, twenty twenty-four"),
        ("The 2nd of May 2001, 9 Aug. and Jan. 5", "The second of May two thousand and one, the ninth of August and "
         "January fifth"),
        ("Visit St. Louis. He lives on Main St. He left.", "Visit Saint Louis. He lives on Main Street. He left."),
        ("$1.5M, $2bn, £10k, €3,50, 50¢, 80p", "One point five million dollars, two billion dollars, ten thousand "
         "pounds, three euros and fifty cents, fifty cents, eighty pence"),
        ("It costs 5$ and then 6$.", "It costs five dollars and then six dollars."),
        ("Call +44 20 7946 0958 or (415) 555-0132.", "Call plus four four, two zero, seven nine four six, zero nine "
         "five eight or four one five, five five five, zero one three two."),
        ("Henry VIII and World War II in Chapter IX", "Henry the eighth and World War two in Chapter nine"),
        ("Mail info@example.com.", "Mail info at example dot com."),
        ("1 1/2 cups, 2½ cups, 8/10, 24/7", "One and a half cups, two and a half cups, eight out of ten, twenty-four "
         "seven"),
        ("Python 3.11 at 192.168.0.1", "Python three point eleven at one nine two dot one six eight dot zero dot one"),
        ("They meet at 00:15 and 7.30pm.", "They meet at twelve fifteen and seven thirty PM."),
        ("He is 5'11\" and runs at 30 mph.", "He is five foot eleven and runs at thirty miles per hour."),
        ("2020 was hard. 12 of us left.", "Twenty twenty was hard. Twelve of us left."),
        ("Vitamin B-12, an N-95 mask, the I-95, a K-12 school.", "Vitamin B twelve, an N ninety-five mask, the I "
         "ninety-five, a K twelve school."),
        ("The F-16, the F16, an F-150, an AK-47 and Covid-19", "The F sixteen, the F sixteen, an F one fifty, an AK "
         "forty-seven and Covid-nineteen"),
        ("Dated by C-14, U-238 and Sr-90, not by I-131", "Dated by carbon fourteen, uranium two hundred and "
         "thirty-eight and strontium ninety, not by iodine one hundred and thirty-one"),
        ("On 5/1/21, 12/25/98 and 15/3/24, not on 31/31/24", "On May first, twenty twenty-one, December twenty-fifth, "
         "nineteen ninety-eight and March fifteenth, twenty twenty-four, not on thirty-one, thirty-one, twenty-four"),
        ("In Jan 2021, Sept. 2019 and Mar 2000", "In January twenty twenty-one, September twenty nineteen and March "
         "two thousand"),
        ("1h 20m, 1h20m, 2h 5m 30s, 7h30 and a wall of 20m", "One hour twenty minutes, one hour twenty minutes, two "
         "hours five minutes thirty seconds, seven thirty and a wall of twenty meters"),
        ("100 m in 9.58s, in the 30s and the 1930s", "One hundred meters in nine point five eight seconds, in the "
         "thirties and the nineteen thirties"),
        ("1 000 000, 12 000 500, 1\u00a0000\u00a0000 and 1\u2009000\u2009000 people", "One million, twelve million "
         "five hundred, one million and one million people"),
        ("Call 030 123 456 or 0800 123456.", "Call zero three zero, one two three, four five six or zero eight zero "
         "zero, one two three four five six."),
        ("At 0x1F or 0xff10 on a 10x20 grid", "At zero x one F or zero x F F one zero on a ten by twenty grid"),
        ("A$3, C$5.50, US$2bn, NZ$5-10 and A$1 million, not A$x", "Three Australian dollars, five Canadian dollars and "
         "fifty cents, two billion US dollars, five to ten New Zealand dollars and one million Australian dollars, not "
         "A$x"),
        ("US$200-4000. Call 555-1234. `A$3 and A$1.2.3.4", "Two hundred to four thousand US dollars. Call five five "
         "five, one two three four. Three Australian dollars and A$one dot two dot three dot four"),
        ("The odds are 3:1, a 16:9 screen at 1:50000; at 3:15 or 12:05", "The odds are three to one, a sixteen by nine "
         "screen at one to fifty thousand; at three fifteen or twelve oh five"),
        ("A 3:1 majority reads Genesis 1:1 and Gen. 2:4.", "A three to one majority reads Genesis one, one and "
         "Genesis two, four."),
        ("ISBN 978-3-16-148410-0 or 080442957X, ISBN-10: 0-306-40615-2", "ISBN nine seven eight, three, one six, one "
         "four eight four one zero, zero or zero eight zero four four two nine five seven X, ISBN ten: zero, three "
         "zero six, four zero six one five, two"),
        ("My number is ٣٣٣-٣٣٣٣.", "My number is three three three, three three three three."),
    ],
)  # fmt: skip
def test_ambiguous_forms_are_read_by_their_context(text: str, words: str) -> None:
    assert normalised(text) == words


@pytest.mark.parametrize(
    "text",
    [
        "Es kostet 5 Euro und ich habe 3 davon.",
        "Il est 5 heures et le prix est 3 €.",
        "Hoy cuesta 5 euros y la cena 20.",
        "我有5个苹果。",
        "今日は5時です。",
        "Мне 5 лет.",
        "عندي 5 كتب",
        "DIE KATZE IST NICHT DA UND ICH BIN AUCH NICHT DA.",
        "Das ist WICHTIG, und die NATO war auch da: 10,5 kg am 5.",
        "C'est TRÈS important pour les 5 et pas pour nous.",
    ],
)
def test_text_in_other_languages_is_unchanged(text: str) -> None:
    assert normalised(text) == text


def test_paragraphs_are_normalised_separately() -> None:
    assert normalised("It is 5 pm.\n\nEs ist 5 Uhr und ich bin da.\n") == (
        "It is five PM.\n\nEs ist 5 Uhr und ich bin da.\n"
    )


def test_tags_speaker_marks_and_spaces_are_unchanged() -> None:
    assert normalised("  [whisper] At 5 pm. [pause:1.5s] 6 of us. <|speaker:1|>In [5 kg] 7 bags.\n") == (
        "  [whisper] At five PM. [pause:1.5s] Six of us. <|speaker:1|>In [5 kg] seven bags.\n"
    )


def test_normalising_twice_changes_nothing() -> None:
    for case in JUDGED:
        once = normalised(case.text)
        assert normalised(once) == once


def test_random_text_is_normalised_without_an_error() -> None:
    chance = random.Random(1)
    signs = "0123456789.,:/-–$€£%°'\"()[]<|>+*x@#=~ aAbIVXpmst\n½²٣éDr.St.No. "
    for _ in range(2000):
        normalised("".join(chance.choice(signs) for _ in range(chance.randint(1, 60))))

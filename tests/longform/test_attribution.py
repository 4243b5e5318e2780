"""Attribution of narration and speech: accuracy on labelled prose, single rules, and hostile text."""

from __future__ import annotations

from itertools import groupby

import pytest

from manuscript.attribution import attribute
from manuscript.passages import SURE
from tests.longform.labels import FOLDER, Score, read, score


def _total(kind: str) -> Score:
    total = Score()
    for path in sorted(FOLDER.glob(f"{kind}-*.txt")):
        total = total + score(read(path))
    return total


@pytest.mark.parametrize("kind", ["tuning", "held"])
def test_speech_and_speakers_of_labelled_prose_are_found(kind: str) -> None:
    total = _total(kind)
    assert total.right >= 0.98 * total.characters
    assert total.named >= 0.85 * total.lines


def test_at_most_4_percent_of_sure_lines_are_wrong() -> None:
    """Users do not check lines that are shown as sure."""
    sure = wrong = 0
    for path in sorted(FOLDER.glob("*.txt")):
        labelled = read(path)
        answer = attribute(labelled.paragraphs)
        names = {person.name: {name.lower() for name in person.names} for person in answer.characters}
        for line in answer.lines:
            wanted = next(
                (speaker for speaker in labelled.speakers[line.paragraph][line.start + 1 : line.end] if speaker), None
            )
            if line.is_speech and (line.confidence or 0) >= SURE and line.speaker and wanted and wanted != "?":
                sure += 1
                known = names[line.speaker] | {line.speaker.lower()}
                wrong += not any(labelled.aliases.get(name) == wanted for name in known)
    assert wrong <= 0.04 * sure


def _speakers(text: str) -> list[str | None]:
    return [line.speaker for line in attribute(text.split("\n\n")).lines if line.is_speech]


@pytest.mark.parametrize(
    ("text", "speakers"),
    [
        ("“Go,” said Anna.\n\n“No,” said Ben.\n\n“Why?”\n\n“Because.”", ["Anna", "Ben", "Anna", "Ben"]),
        ("Anna shut the door. “Now, then.”\n\n“What?” said Ben.\n\n“Ben?” said Anna.", ["Anna", "Ben", "Anna"]),
        ('"Dr. Gray," said Mrs. Hall, "is late."', ["Mrs. Hall", "Mrs. Hall"]),
        ("„Komm“, sagte Anna.\n\n„Gleich“, rief Ben.", ["Anna", "Ben"]),
        ("„Komm“, riefen die Kinder.\n\nEines Tages ging Anna und sprach: „Nein.“", ["Die Kinder", "Anna"]),
        ("王生说：“我能。”\n\n“好，”王生说，“走。”", ["王生"] * 3),
        ("—Ven —dijo Ana.\n\n—Ya voy —respondió Luis—. Espera.", ["Ana", "Luis", "Luis"]),
        ("“One,” said Anna.\n\n“Two\n\n“and three.”", ["Anna", None, None]),
        ('"Stop," said the constable.', ["The constable"]),
        ("‘Stop!’ the old constable shouted. ‘At once.’", ["The old constable"] * 2),
        ("The lock-keeper said: “No.” He shook his head. The lock-keeper sat down. “No.”", ["The lock-keeper"] * 2),
        (
            "“Tea?” asked the Mad Hatter.\n\n“No,” said Anna.\n\nThe Hatter wept. “Oh.”",
            ["The Mad Hatter", "Anna", "The Mad Hatter"],
        ),
        (
            "“I,” said the first guard.\n\n“I,” said the second guard.\n\n“No!”",
            ["The first guard", "The second guard", "The first guard"],
        ),
        (
            "“Who?” said Constable Reed.\n\n“You,” said Anna.\n\n“Why?” asked the constable.",
            ["Constable Reed", "Anna", "Constable Reed"],
        ),
        ("“Iron,” said the smith gravely.\n\n“Gold,” said Mr. Smith.", ["The smith", "Mr. Smith"]),
        (
            "“Me,” said the bully smiling. “Only me,” whispered the elderly king again.",
            ["The bully", "The elderly king"],
        ),
        ("„Halt“, rief der Wachtmeister.\n\n„Nie“, sagte Anna.", ["Der Wachtmeister", "Anna"]),
        ("« Halte ! » cria le vieux gendarme essoufflé.", ["Le vieux gendarme"]),
        ("—Alto —dijo el guardia riendo.\n\n—No —dijo Ana.", ["El guardia", "Ana"]),
        ('Anna ran. Dr. Hall came in. "He\'s dead," she said.', ["Dr. Hall"]),
        ("“Who?” asked Dr. Hall.\n\n“Me,” said Ben.\n\n“You?” said the doctor.", ["Dr. Hall", "Ben", "Dr. Hall"]),
        ("“Me,” the girl in the red coat said.\n\nAfter a while the lawyer asked: “Why?”", ["The girl", "The lawyer"]),
        ("“Him,” said the man's wife.\n\nDr. Hall looked at Mr. Gray and said, “No.”", ["The man's wife", "Dr. Hall"]),
        ("“Keep out,” read the sign.\n\n“Go on,” said the other.", [None, None]),
        ("“Go,” said Anna. “No,” said Ben. Then Anna cried, “Why?” “So,” said Ben.", ["Anna", "Ben", "Anna", "Ben"]),
    ],
)
def test_speakers_of_quotations_are_found(text: str, speakers: list[str | None]) -> None:
    assert _speakers(text) == speakers


@pytest.mark.parametrize("after", ["growled a deep voice", "somebody shouted", "read the sign", "said one of them"])
def test_line_of_an_unnamed_person_is_unsure(after: str) -> None:
    lines = attribute(["“Go,” said Anna.", "“No,” said Ben.", "“Why?” asked Anna.", f"“Now,” {after}."]).lines
    assert [(line.confidence or 0) >= SURE for line in lines if line.is_speech] == [True, True, True, False]


@pytest.mark.parametrize(
    "text",
    [
        "They saw “The Mousetrap” twice.",
        "His so-called 'friends' had left.",
        "It measured 5' 10\" and no more.",
        "The boys’ hats and the girls’ coats hung in the hall.",
        "",
        "“”",
    ],
)
def test_titles_irony_and_apostrophes_are_not_speech(text: str) -> None:
    assert not _speakers(text)


def test_attribution_is_deterministic() -> None:
    paragraphs = read(FOLDER / "held-hall.txt").paragraphs
    assert attribute(paragraphs) == attribute(list(paragraphs))


@pytest.mark.parametrize(
    "text",
    [
        "“" * 5000,
        "“a " * 3000,
        "‘“«„\"'" * 1000,
        "“Go,” said " + "Aa" * 1500 + ".",
        "\n\n".join(f"“Go,” said {chr(65 + i % 26)}{'a' * (i % 50)}b{'c' * (i // 50)}." for i in range(3000)),
        "\n\n".join(f"“Go,” said the {chr(97 + i % 26)}{'b' * (i % 20)}c{'d' * (i // 26)} man." for i in range(3000)),
        "“Go,” said the " + "aa " * 9000 + "\n\n" + "the " * 9000 + "said: “Go.”",
        "“Go,” the " + "mostly " * 9000 + "said.",
        "— " * 4000,
        ", Anna" * 4000,
    ],
    ids=["openings", "words", "styles", "name", "names", "phrases", "phrase", "adverbs", "dashes", "vocatives"],
)
def test_odd_text_is_covered_by_lines_in_order(text: str) -> None:
    paragraphs = text.split("\n\n")
    lines = {index: list(lines) for index, lines in groupby(attribute(paragraphs).lines, lambda line: line.paragraph)}
    assert lines.keys() <= set(range(len(paragraphs)))
    for index, paragraph in enumerate(paragraphs):
        at = 0
        for line in lines.get(index, ()):
            assert line.start >= at and not paragraph[at : line.start].strip()
            at = line.end
        assert not paragraph[at:].strip()


def test_gender_is_inferred_from_given_names_and_titles() -> None:
    lines = ["“Yes,” said Eleanor.", "“No,” said Mr. Grace.", "“Oh,” said Otto.", "“Ah,” said Xyll."]
    people = attribute(lines).characters
    assert {person.name: person.gender for person in people} == {
        "Eleanor": "female",
        "Mr. Grace": "male",
        "Otto": "male",
        "Xyll": "",
    }

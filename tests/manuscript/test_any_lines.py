"""Lines that documents have, in any order: each document is read, or refused with a reason."""

from __future__ import annotations

import contextlib
import random

import pytest

from manuscript import speakers_in
from manuscript.documents import read_document
from manuscript.passages import InvalidDocument, NewCharacter

LINES = """
|Contents|CONTENTS|Inhalt|目录|Table of Contents|Chapter 1|Chapter I|CHAPTER ONE|Part One|1|I|1.|2. Second|3
Chapter 2 ..... 17|Chapter 3\t33|Prologue|Preface|第一章|Kapitel 1|The Sea|XII|12|....|Act I|Scene 1|ENTER HAMLET
The box contains a cable, a charger and this manual.|Plug the charger in. Wait.|It rained.|“Hello,” she said.|!|?
***|* * *|---|_|*|#|# A|## B|- a|• b|1) x|[1] A note.|FOOTNOTES|[Illustration: a]|Page 3|THE END|\f|\t|\u200b|
*** START OF THE PROJECT GUTENBERG EBOOK X ***|*** END OF THE PROJECT GUTENBERG EBOOK X ***|by Someone|To my mother
Anna: Hello.|ANNA.|>> Ben: Hi.|00:00:01,000 --> 00:00:02,000|00:01.000 --> 00:02.000 align:start|WEBVTT|NOTE x|STYLE
text,chapter|a,b,c|"a|"a","b"|[Events]|Format: Start, End, Text|Dialogue: 0:00:01.00,0:00:02.00,{\\i1}Hi\\N
|a|b||> q|```|title: x|+++|[a](b)|![a](b)|<b>x</b>|<v Anna>Hi</v>|&amp;|\\|^|$x$|{#id}|[^1]|[^1]: note
"""
PIECES = [line for row in LINES.strip("\n").splitlines() for line in row.split("|")] + ["A line without an end " * 12]


@pytest.mark.parametrize("kind", ["txt", "md", "srt", "csv"])
def test_lines_in_any_order_are_read_or_refused(kind: str) -> None:
    for seed in range(1500):
        chance = random.Random(seed)
        ends = "\n\n" if chance.random() < 0.3 else "\n"
        text = ends.join(chance.choice(PIECES) for _ in range(chance.randrange(1, 14)))
        with contextlib.suppress(InvalidDocument):
            assert read_document(text.encode(), kind).passages, text


@pytest.mark.parametrize("name", ["...", ".", " . ", "…", "-", "Dr.", "the", "the Captain", "’", "l’", "2", "A.", "她"])
def test_people_with_any_name_hide_nobody_else(name: str) -> None:
    text = "“Come in,” said Anna.\n\n“Thank you,” said Robert, and the captain laughed.\n\n“Tea?” asked Anna.\n"
    document = speakers_in(read_document(text.encode(), "txt"), [NewCharacter(name)])
    assert {"Anna", "Robert"} <= {character.name for character in document.cast}

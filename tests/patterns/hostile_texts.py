"""Texts that are hard to read, for everything that accepts a text from strangers. A new kind is a line here."""

from __future__ import annotations

import re

from speechtext import capitals, characters, elements, markup, script, sentence_ends, tags, turns
from speechtext import reading as normalise
from tests.growth import PIECES, pieces
from tests.patterns.hostile_strings import Hostile, Make

PASTED = PIECES | {
    "emphasis": "*a _b",
    "stars": "*",
    "links": "[a](http://b",
    "link after link": "[a](http://b) ",
    "citations": "[1]",
    "bars": "|",
    "bars and spaces": "a | ",
    "rows": "| a | b |\n",
    "rules": "-|",
    "lists": "- ",
    "headings": "# a # ",
    "ticks": "`",
    "pictures": "🎉 ",
    "entities": "&amp;",
    "opened entities": "&amp",
    "entities again": "&am&shy;p;",
    "soft hyphens": "a\u00ad",
    "joiners": "\u200d",
    "ligatures": "\ufb01",
    "backslashes": "\\[a]",
    "elements": "<b>a</p>",
    "breaks": "<break time='1s'/>",
    "attributes": "<b a='",
    "comments": "<!-- ",
    "thoughts": "<think>a",
    "formulas": "$x^2$ ",
    "opened formulas": "\\(x ",
    "fractions": "$\\frac{",
    "questions": '"Why?" Anna ',
    "ellipses": ". . .a",
}
FORMS = (
    "1x", "#1", "1,", "1=", "1 000 ", "a.", "www.", "1/", "A1", "B-1 ", "A$1", "1h ", "1:1 ", "code ", "[", "`",
    "$1 ", "1-", "$1k-", "5pm-", "May 5-", "1/1/1 ", "1.000", "1e1", "+1.", "the 1990 a", "1990's ", "1/2 tsp ",
    "a $1 ", "Ps 1:1-", "NY 10001 ", "@a", "A&", "<3 ", ":) ", "GMT-", "NO ", "QU", "AE", "STR", "NOOO", "I'M ", "A-",
    "DR. ", "IT US ", "XI ", "MON-", "<|", "<|phoneme_start|>",
)  # fmt: skip
_SIGNS = (*"[]*_~`#|>-+=:.,<(\"'1a&\\$@/。“🎉", "```", "|-", "<|")


def _around(sign: str, run: str) -> Make:
    """The bracket makes sure that markup is looked for."""
    return lambda size: f"[a\n{sign}{run * (size // len(run))}x"


AROUND = {f"{sign} and {run!r}": _around(sign, run) for sign in _SIGNS for run in (" ", f"\t{sign}")}
"""A sign, a run, and a letter that ends it."""
_PATTERNS = {
    f"{module.__name__}.{name}": pattern
    for module in (capitals, characters, elements, markup, normalise, script, sentence_ends, tags, turns)
    for name, pattern in vars(module).items()
    if isinstance(pattern, re.Pattern)
}
TEXTS: dict[str, Make] = {
    **{name: pieces(piece) for name, piece in PASTED.items()},
    **{f"forms {form}": pieces(form) for form in FORMS},
    **AROUND,
    **{
        f"{name}, {number}": make
        for name, pattern in _PATTERNS.items()
        for number, make in enumerate(Hostile(pattern).runs(2))
    },
}
"""Functions that make a text of about the given number of characters."""

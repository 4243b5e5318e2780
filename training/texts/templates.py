"""Sentences from templates: slots filled with words and with forms that are read differently from how they are
written."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from training.texts.forms import FORMS, Form

DATA = Path(__file__).with_name("data")
_SLOT = re.compile(r"\{([a-z]+)\d?\}(s\b)?")
_SENTENCE_START = re.compile(r'(?:^|[.!?] |: "|^")$')
_UNCHANGED = {"sheep", "deer"}
_PLURALS = {"goose": "geese", "wolf": "wolves", "city": "cities", "library": "libraries", "pharmacy": "pharmacies"}

Slots = Mapping[str, Callable[[random.Random], Form]]


def lines(name: str) -> list[str]:
    """The lines of a file in data/, comments and empty ones left out."""
    text = (DATA / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def slots(words: Sequence[str]) -> Slots:
    """All slots that a template may have: the lists of slots.txt, the forms, and {word} from a dictionary."""
    lists: dict[str, list[str]] = {"word": list(words)}
    for line in lines("slots.txt"):
        name, _, values = line.partition(": ")
        lists.setdefault(name, []).extend(values.split(", "))
    return {name: _drawn_from(values) for name, values in lists.items()} | FORMS


def fill(template: str, choices: Slots, rng: random.Random) -> Form:
    """A template with its slots filled, as written and as read; slots of the same name get different values."""
    text = words = ""
    position = 0
    used: set[tuple[str, str]] = set()
    for slot in _SLOT.finditer(template):
        form = _unused(slot[1], choices, used, rng)
        if slot[2]:
            form = Form(plural(form.text), plural(form.words))
        if _SENTENCE_START.search(template[: slot.start()]):
            form = Form(_capital(form.text), _capital(form.words))
        text += template[position : slot.start()] + form.text
        words += template[position : slot.start()] + form.words
        position = slot.end()
    return Form(_tidy(text + template[position:]), _tidy(words + template[position:]))


def plural(noun: str) -> str:
    """'watches', 'parties', 'geese', 'shoe shops'."""
    if noun in _UNCHANGED or noun.endswith("'s"):
        return noun
    if noun in _PLURALS:
        return _PLURALS[noun]
    if re.search(r"(s|x|ch|sh|z)$", noun):
        return f"{noun}es"
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return f"{noun}s"


def _drawn_from(values: list[str]) -> Callable[[random.Random], Form]:
    def draw(rng: random.Random) -> Form:
        text, _, words = rng.choice(values).partition(" = ")
        return Form(text, words or text)

    return draw


def _unused(name: str, choices: Slots, used: set[tuple[str, str]], rng: random.Random) -> Form:
    for _ in range(20):
        form = choices[name](rng)
        if (name, form.text) not in used:
            break
    used.add((name, form.text))
    return form


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _tidy(text: str) -> str:
    """Correct the article before a vowel, and reduce final stops to one."""
    text = re.sub(r"\b([Aa]) (?=[aeiouAEIO]|8|1[18]\b)(?!uni(?!n|m)|use|usu|eu|one\b)", r"\1n ", text)
    return re.sub(r"\.\.$", ".", text)

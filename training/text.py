"""Sentences to speak: cleaned fortunes, templates with names, dates and numbers, short words; held-out by hash."""

from __future__ import annotations

import hashlib
import random
import re
from pathlib import Path

from training.words import (
    ADJECTIVES,
    DAYS,
    MONTHS,
    NAMES,
    NOUNS,
    NUMBERS,
    PLACES,
    SHORT,
    TEMPLATES,
    VERBS,
)

MIN_CHARS, MAX_CHARS = 12, 130
HELD_OUT_ONE_IN = 60

# Fortune files that are drawings, code, other languages or insults.
_SKIPPED_FORTUNES = {
    "art", "ascii-art", "translate-me", "perl", "ethnic", "men-women", "drugs", "zippy", "debian", "knghtbrd",
    "linuxcookie", "law", "paradoxum",
}  # fmt: skip

_SPEAKABLE = re.compile(r"^[A-Za-z][A-Za-z0-9 ,.'!?;:$%-]+$")


def is_held_out(text: str) -> bool:
    """True for the one in sixty sentences, chosen by hash, that no training stage may hear."""
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), 16) % HELD_OUT_ONE_IN == 0


def clean(text: str) -> str | None:
    """One speakable sentence with a capital and a final stop, or None when it is not worth speaking."""
    text = re.sub(r'[()\[\]*_"]', "", text.strip())
    text = re.sub(r"\.\.+", ".", text).replace("--", ", ").replace(" ,", ",")
    text = re.sub(r"\s+", " ", text).strip(" '-")
    if not MIN_CHARS <= len(text) <= MAX_CHARS or " " not in text or not _SPEAKABLE.match(text):
        return None
    if sum(c.isupper() for c in text) > 0.2 * len(text) or max(map(len, text.split())) > 18:
        return None
    if text[-1] not in ".!?":
        text = text.rstrip(",;:-") + "."
    return text[0].upper() + text[1:]


def fortune_sentences(root: Path) -> list[str]:
    """Sorted unique sentences from the unpacked `fortunes` package; long ones are cut at commas."""
    found: set[str] = set()
    for path in sorted((root / "usr/share/games/fortunes").iterdir()):
        if "." in path.name or path.name in _SKIPPED_FORTUNES:
            continue
        for entry in path.read_text(encoding="utf-8", errors="ignore").split("\n%\n"):
            prose = re.sub(r"\s+", " ", re.split(r"\n\s*-- ", entry)[0])
            for sentence in re.split(r'(?<=[.!?])["\']?\s+', prose):
                found.update(c for c in map(clean, _pieces(sentence)) if c)
    return sorted(found)


def _pieces(sentence: str) -> list[str]:
    if len(sentence) <= MAX_CHARS:
        return [sentence]
    pieces, current = [], ""
    for clause in re.split(r"(?<=[,;:])\s+", sentence):
        if current and len(current) + len(clause) > MAX_CHARS - 10:
            pieces.append(current)
            current = clause
        else:
            current = f"{current} {clause}".strip()
    return [*pieces, current]


class Sentences:
    """Draws sentences for one random stream; training streams never yield a held-out one."""

    def __init__(self, root: Path) -> None:
        everything = fortune_sentences(root)
        self.fortunes = [s for s in everything if not is_held_out(s)]
        self.held_out = [s for s in everything if is_held_out(s)]
        dictionary = (root / "usr/share/dict/american-english").read_text(encoding="utf-8").split()
        self.words = [w for w in dictionary if re.fullmatch(r"[a-z]{3,13}", w)]

    def draw(self, rng: random.Random) -> str:
        """45 % fortunes, 38 % templates, 17 % one to five words."""
        while True:
            kind = rng.random()
            if kind < 0.45:
                text = rng.choice(self.fortunes)
            elif kind < 0.83:
                text = self.template(rng)
            else:
                text = self.short(rng)
            if not is_held_out(text):
                return text

    def short(self, rng: random.Random) -> str:
        """A greeting, or one to five dictionary words."""
        if rng.random() < 0.35:
            return rng.choice(SHORT)
        words = [rng.choice(rng.choice((self.words, NOUNS, ADJECTIVES, NAMES))) for _ in range(rng.randint(1, 5))]
        text = " ".join(words)
        return text[0].upper() + text[1:] + rng.choice(("", ".", ".", "!", "?"))

    def template(self, rng: random.Random) -> str:
        """A template filled with names, places, dates, prices, times and dictionary words."""
        pick = rng.choice
        word = [pick(self.words) for _ in range(4)]
        text = pick(TEMPLATES).format(
            a=pick(ADJECTIVES), a2=pick(ADJECTIVES), n=pick(NOUNS), n2=pick(NOUNS), v=pick(VERBS), v2=pick(VERBS),
            N=pick(NAMES), N2=pick(NAMES), P=pick(PLACES), d=pick(DAYS), M=pick(MONTHS),
            k=pick(NUMBERS), k2=pick(NUMBERS), k3=pick(NUMBERS), i=rng.randint(1, 31), j=rng.randint(2, 999),
            f=rng.randint(100, 9999), y=rng.randint(1901, 2029), h=rng.randint(1, 12), h2=rng.randint(1, 12),
            m=f"{rng.randrange(5, 60, 5):02d}", c=f"{rng.randrange(5, 100, 5):02d}",
            w=word[0], w2=word[1], w3=word[2], w4=word[3],
        )  # fmt: skip
        return text[0].upper() + text[1:]

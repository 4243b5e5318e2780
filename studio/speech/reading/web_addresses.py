"""Rules for web and email addresses: 'info at example dot com'."""

from __future__ import annotations

import re

from studio.speech.reading.rules import Rule, rule

_SIGNS = {".": "dot", "/": "slash", "-": "dash", "_": "underscore", "@": "at", ":": "colon", "?": "question mark",
          "=": "equals", "&": "and", "#": "hash", "%": "percent", "+": "plus", "~": "tilde"}  # fmt: skip
_HEAD = re.compile(r"^(?:https?://)?(www\.)?", re.IGNORECASE)


def _address(address: str) -> str:
    """Words stay, other characters are named; the scheme is left out."""
    head = _HEAD.match(address)
    assert head is not None, "every part of it may be missing"
    parts = re.split(r"([^A-Za-z0-9])", address[head.end() :].removesuffix("/"))
    if address.isupper():
        parts = [part.lower() for part in parts]
    words = [_SIGNS.get(part, "U K" if part == "uk" else part) for part in parts if part]
    spaced = [re.sub(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])", " ", word) for word in words]
    return ("W W W dot " if head[1] else "") + " ".join(spaced)


ADDRESSES: tuple[Rule, ...] = (
    rule(r"(?a)(?<![\w@.+-])([\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,6}[A-Za-z]{2,24})\b", r"\1", _address, needs="@"),
    rule(r"(?i)\b((?:https?://|www\.)[^\s<>\"]{0,400}[^\s<>\".,;:!?)\]'])", r"\1", _address, needs="://|ww.|WW.|Ww."),
    rule(r"(?a)(?<![\w@./-])((?:[A-Za-z][\w-]{0,62}\.){1,4}(?:com|org|net|edu|gov|io|info|dev|ai|co\.uk|uk|de|eu)"
        r"(?:/[\w./-]{0,200}[\w/])?)(?![\w-]|\.\w)", r"\1", _address, needs="."),
    rule("`", "", needs="`"),  # the library would not change text between two of them
)  # fmt: skip

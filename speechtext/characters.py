"""Cleans characters: removes invisible ones, expands ligatures and full-width letters, decodes entities."""

from __future__ import annotations

import re
import unicodedata
from html import unescape
from html.entities import html5
from itertools import groupby
from typing import Literal

MOST_COMPOSED = 4  # maximum number of characters that NFC composes into one

INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters, marks and symbols, by their category, that are not visible."""
_MOST_PASSES = 4
"""A decoded entity may complete another one; deeper nesting does not occur in practice."""
_JOINERS = "\u200c\u200d"
_KEPT = frozenset(
    "\t\n" + _JOINERS + "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)
"""Visible, though format characters: Arabic, Syriac and Kaithi signs around a number or a word."""
_LINE = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
_JOINING = "\u0600-\u109f\u1780-\u1aff\ua8e0-\ua8ff\ufb50-\ufdff\ufe70-\ufefc"
"""Scripts in which joiners matter: Arabic, those of India and Southeast Asia, Mongolian."""
_JOINER = re.compile(rf"(?<![{_JOINING}])[{_JOINERS}]+|[{_JOINERS}]{{2,}}")
_PRESENTED = re.compile(
    "[\ufb00-\ufb06\ufb13-\ufb17\ufb1d-\ufb4f\ufb50-\ufd3d\ufd50-\ufdfc\ufe70-\ufefc"  # ligatures, presentation forms
    "\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff03-\uff06\uff0b\uff20\uffe0\uffe1\uffe5"  # full-width characters
    "\u2103\u2109\u2160-\u217f\u3371-\u33df"  # degrees, Roman numerals and units from East Asian keyboards
    "\U0001d400-\U0001d7ff]+"  # mathematical letters, used as bold and italics
)
_WIDE_POINT = re.compile(r"(?<=\d)[\uff0c\uff0e\uff1a](?=\d)")
_SPACE = re.compile(r"(?<!\d)[\u00a0\u2000-\u200a\u202f\u205f]|[\u00a0\u2000-\u200a\u202f\u205f](?!\d)")
"""Between digits they separate thousands."""
_HYPHEN = re.compile("[\u2010\u2011]")
_MARKS = re.compile(r"(?:[^\w\s]|[\uff9e\uff9f]){31,}")
"""Runs that may contain many combining marks. The only marks that count as letters are those of half-width kana."""
_PLAIN = re.compile(r"[ -~\t\n]*")
_AMPERSAND = r"&(?:(?:amp|AMP|#0*38|#[xX]0*26);)*"  # repeated in text that was escaped more than once
ENTITY = re.compile(rf"{_AMPERSAND}(#[0-9]{{1,8}}|#[xX][0-9a-fA-F]{{1,7}}|[A-Za-z][A-Za-z0-9]{{1,31}});")


def clean_signs(text: str) -> str:
    """The text without unpronounceable characters, in NFC, which dictionaries and models use; idempotent."""
    text = normalize("NFC", text)
    for _ in range(_MOST_PASSES):
        decoded = ENTITY.sub(_decoded, text) if "&" in text else text
        cleaned = decoded if decoded.isascii() and _PLAIN.fullmatch(decoded) else _without_invisible(decoded)
        if cleaned == text:
            break
        text = cleaned
    return text


def _without_invisible(text: str) -> str:
    text = _LINE.sub("\n", text)
    text = text.translate({ord(sign): None for sign in set(text) if _is_invisible(sign)})
    text = _JOINER.sub("", text)
    text = _PRESENTED.sub(lambda run: normalize("NFKC", run[0]), text)
    text = _WIDE_POINT.sub(lambda sign: unicodedata.normalize("NFKC", sign[0]), text)
    return normalize("NFC", _HYPHEN.sub("-", _SPACE.sub(" ", text)))


def _decoded(entity: re.Match[str]) -> str:
    name = entity[1]
    if name[0] != "#" and f"{name};" not in html5:
        return entity[0]
    return unescape(f"&{name};").replace("\ufffd", "")


def _is_invisible(sign: str) -> bool:
    """Whether it is a control, format, private, unassigned or invisible character, or a variation selector."""
    if sign in _KEPT:
        return False
    is_selector = "\ufe00" <= sign <= "\ufe0f" or "\U000e0100" <= sign <= "\U000e01ef" or sign == "\u20e3"
    return is_selector or sign in INVISIBLE or unicodedata.category(sign) in ("Cc", "Cf", "Co", "Cn", "Cs")


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """The result of unicodedata.normalize, in linear time.

    unicodedata sorts marks by insertion while holding the interpreter's lock: thousands in one run take a second.
    """
    if text.isascii():
        return text
    return unicodedata.normalize(form, _MARKS.sub(lambda run: _in_order(form, run[0]), text))


def _in_order(form: str, run: str) -> str:
    apart = "".join(unicodedata.normalize("NFKD" if "K" in form else "NFD", sign) for sign in run)
    pieces = groupby(apart, key=lambda sign: bool(unicodedata.combining(sign)))
    return "".join("".join(sorted(signs, key=unicodedata.combining) if marks else signs) for marks, signs in pieces)

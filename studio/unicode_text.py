"""Text from anybody: what no string of a request may hold, its normal forms, file names of it; and commands to copy."""

from __future__ import annotations

import re
import shlex
import sys
import unicodedata
from itertools import groupby
from pathlib import Path
from typing import Literal

from studio.errors import InvalidRequest

MOST_COMPOSED = 4
"""Characters that NFC makes one of, at the most."""

_HALF = re.compile("[\ud800-\udfff]")
"""JSON can write half of a surrogate pair, "\\ud800"; UTF-8 cannot, so that it can neither be kept nor sent."""
_MARKS = re.compile(r"(?:[^\w\s]|[\uff9e\uff9f]){31,}")
"""Where a long run of combining marks can be: none is a letter but the voiced marks of half-width kana."""

LONGEST_FILE_NAME = 200
"""Bytes in UTF-8, with its extension: systems allow 255, and a browser adds a number or an ending of its own."""
_RESERVED = frozenset('/\\<>:"|?*')
"""Of Windows and of paths everywhere."""
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(?![^. ])", re.IGNORECASE)
"""With these, and any extension, Windows means a device."""


def safe_file_name(stem: str, extension: str, otherwise: str = "untitled") -> str:
    """A name under which every system can save a file: in one folder, visible, and as it reads.

    Words of other scripts stay. ``otherwise`` is used where nothing of the stem is left; both come without a dot.
    ``extension`` is in ASCII letters and digits, or empty.
    """
    ending = f".{extension}" if extension else ""
    visible = "".join(_in_file_name(sign) for sign in stem[: 4 * LONGEST_FILE_NAME])
    tidy = " ".join(visible.split()).strip(" .")
    if _DEVICES.match(tidy):
        tidy = f"_{tidy}"
    room = LONGEST_FILE_NAME - len(ending)
    tidy = tidy.encode()[:room].decode("utf-8", "ignore").rstrip(" .")
    return f"{tidy or otherwise}{ending}"


def _in_file_name(sign: str) -> str:
    """The replacement for a character: itself, a space, or nothing for invisible ones such as bidi overrides."""
    category = unicodedata.category(sign)
    if category == "Cf":
        return ""
    return " " if sign in _RESERVED or category in ("Cc", "Co", "Cs", "Cn", "Zl", "Zp") else sign


def check_strings(value: object, param: str | None = None) -> None:
    """Look at every string of a parsed value, names of fields too; ``param`` names the value itself.

    Raises InvalidRequest, which names the outermost field, for NUL and for half of a surrogate pair.
    """
    if param is None and isinstance(value, dict):
        for name, each in value.items():
            check_strings((name,))
            check_strings(each, name)
        return
    what = param or "the name of a field"
    waiting: list[object] = [value]
    while waiting:  # the event loop waits too: a list of values alone is the fastest
        each = waiting.pop()
        if isinstance(each, str):
            if "\x00" in each:
                raise InvalidRequest(f"{what} contains a NUL character", param)
            if not each.isascii() and _HALF.search(each):
                raise InvalidRequest(f"{what} is not valid Unicode text: it has half of a surrogate pair", param)
        elif isinstance(each, dict):
            waiting += each
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each


def text_of(path: Path) -> str:
    """The text of a file. Raises InvalidRequest for one that is not in UTF-8, OSError."""
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest(f"the file {path.name} is not UTF-8 text; save it as UTF-8") from None


def repair_surrogates(text: str) -> str:
    """Text that was kept before it was checked: half of a surrogate pair becomes a question mark."""
    return text if text.isascii() else _HALF.sub("?", text)


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """What unicodedata.normalize gives, in linear time.

    That puts marks in order by insertion, with the interpreter's lock held: a second for some thousands in one run.
    """
    if text.isascii():
        return text
    return unicodedata.normalize(form, _MARKS.sub(lambda run: _in_order(form, run[0]), text))


def _in_order(form: str, run: str) -> str:
    apart = "".join(unicodedata.normalize("NFKD" if "K" in form else "NFD", sign) for sign in run)
    pieces = groupby(apart, key=lambda sign: bool(unicodedata.combining(sign)))
    return "".join("".join(sorted(signs, key=unicodedata.combining) if marks else signs) for marks, signs in pieces)


def pip_install(package: str) -> str:
    """A command that puts a package where this very Python finds it."""
    return f"{shlex.quote(sys.executable)} -m pip install {package}"

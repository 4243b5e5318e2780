"""Untrusted text: validation of strings, normal forms and safe file names; and shell commands to copy."""

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
"""Maximum number of characters that NFC composes into one."""

_HALF = re.compile("[\ud800-\udfff]")
"""JSON can contain half of a surrogate pair, "\\ud800"; UTF-8 cannot, so it could be neither stored nor sent."""
_MARKS = re.compile(r"(?:[^\w\s]|[\uff9e\uff9f]){31,}")
"""Runs that may contain many combining marks. The only marks that count as letters are those of half-width kana."""

LONGEST_FILE_NAME = 200
"""Bytes of UTF-8, with the extension: systems allow 255, and browsers add a number or an ending."""
_RESERVED = frozenset('/\\<>:"|?*')
"""Reserved by Windows, or in paths on every system."""
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(?![^. ])", re.IGNORECASE)
"""Device names of Windows, with any extension."""


def safe_file_name(stem: str, extension: str, otherwise: str = "untitled") -> str:
    """A file name that is valid and visible on every system. Letters of all scripts are kept.

    ``otherwise`` is used if nothing is left of the stem. ``extension``: ASCII letters and digits without a dot, or
    empty.
    """
    ending = f".{extension}" if extension else ""
    visible = "".join(_in_file_name(sign) for sign in stem[: 4 * LONGEST_FILE_NAME])
    name = " ".join(visible.split()).strip(" .")
    if _DEVICES.match(name):
        name = f"_{name}"
    budget = LONGEST_FILE_NAME - len(ending)
    name = name.encode()[:budget].decode("utf-8", "ignore").rstrip(" .")
    return f"{name or otherwise}{ending}"


def _in_file_name(sign: str) -> str:
    """The replacement for a character: itself, a space, or nothing for invisible ones such as bidi overrides."""
    category = unicodedata.category(sign)
    if category == "Cf":
        return ""
    return " " if sign in _RESERVED or category in ("Cc", "Co", "Cs", "Cn", "Zl", "Zp") else sign


def check_strings(value: object, param: str | None = None) -> None:
    """Check every string of a parsed value, including field names; ``param`` names the value itself.

    Raises InvalidRequest, with the outermost field, for NUL and for half of a surrogate pair.
    """
    if param is None and isinstance(value, dict):
        for name, field_value in value.items():
            check_strings((name,))
            check_strings(field_value, name)
        return
    field = param or "the name of a field"
    waiting: list[object] = [value]
    while waiting:  # this blocks the event loop: a plain list of values is fastest
        entry = waiting.pop()
        if isinstance(entry, str):
            if "\x00" in entry:
                raise InvalidRequest(f"{field} contains a NUL character", param)
            if not entry.isascii() and _HALF.search(entry):
                raise InvalidRequest(f"{field} is not valid Unicode text: it has half of a surrogate pair", param)
        elif isinstance(entry, dict):
            waiting += entry
            waiting += entry.values()
        elif isinstance(entry, list | tuple):
            waiting += entry


def text_of(path: Path) -> str:
    """The text of a UTF-8 file. Raises InvalidRequest for another encoding; OSError."""
    try:
        return path.read_text("utf-8")
    except UnicodeDecodeError:
        raise InvalidRequest(f"the file {path.name} is not UTF-8 text; save it as UTF-8") from None


def repair_surrogates(text: str) -> str:
    """Replace halves of surrogate pairs by question marks, in text that was stored before strings were checked."""
    return text if text.isascii() else _HALF.sub("?", text)


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


def pip_install(package: str) -> str:
    """The command that installs a package for this Python."""
    return f"{shlex.quote(sys.executable)} -m pip install {package}"

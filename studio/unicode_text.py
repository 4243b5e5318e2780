"""Untrusted text: validation of strings and safe file names; and shell commands to copy."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import unicodedata
from pathlib import Path

from studio.errors import InvalidRequest

_HALF = re.compile("[\ud800-\udfff]")
"""JSON can contain half of a surrogate pair, "\\ud800"; UTF-8 cannot, so it could be neither stored nor sent."""
LONGEST_FILE_NAME = 200
"""Bytes of UTF-8, with the extension: systems allow 255, and browsers add a number or an ending."""
MAX_TEXT = 2**20
"""Characters of a transcript's file: far beyond what a recording can contain, and still read at once."""
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
    """The text of a UTF-8 file. Raises InvalidRequest if it cannot be read, for another encoding, or over MAX_TEXT."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MAX_TEXT + 1)
    except OSError as error:
        raise InvalidRequest(f"the file {path.name} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise InvalidRequest(f"the file {path.name} is not UTF-8 text; save it as UTF-8") from None
    if len(text) > MAX_TEXT:
        size = f"more than {MAX_TEXT:,} characters"
        raise InvalidRequest(f"the file {path.name} has {size}; it needs the spoken words only")
    return text


def repair_surrogates(text: str) -> str:
    """Replace halves of surrogate pairs by question marks, in text that was stored before strings were checked."""
    return text if text.isascii() else _HALF.sub("?", text)


def pip_install(package: str) -> str:
    """The command that installs a package for this Python."""
    return shell_command(sys.executable, "-m", "pip", "install", package)


def shell_command(*words: str) -> str:
    """A command to be copied: into a shell, or into the Command Prompt of Windows."""
    return subprocess.list2cmdline(words) if sys.platform == "win32" else shlex.join(words)

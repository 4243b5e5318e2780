"""Text from anybody: what no string of a request may hold, said once for every place where requests are parsed."""

from __future__ import annotations

import re

from studio.errors import InvalidRequest

_HALF = re.compile("[\ud800-\udfff]")
"""JSON can write half of a surrogate pair, "\\ud800"; UTF-8 cannot, so that it can neither be kept nor sent."""


def check_strings(value: object, param: str | None = None) -> None:
    """Look at every string of a parsed value, names of fields too; ``param`` names the value itself.

    Raises InvalidRequest, which names the outermost field, for NUL and for half of a surrogate pair.
    """
    waiting: list[tuple[object, str | None]] = [(value, param)]
    while waiting:
        value, param = waiting.pop()
        if isinstance(value, str):
            _check(value, param)
        elif isinstance(value, dict):
            for name, each in value.items():
                _check(name, param)
                waiting.append((each, param or name))
        elif isinstance(value, list | tuple):
            waiting += [(each, param) for each in value]


def _check(text: object, param: str | None) -> None:
    if not isinstance(text, str):
        return
    if "\x00" in text:
        raise InvalidRequest(f"{param or 'a name'} contains a NUL character", param)
    if not text.isascii() and _HALF.search(text):
        raise InvalidRequest(f"{param or 'a name'} is not valid Unicode text: it has half of a surrogate pair", param)


def mended(text: str) -> str:
    """Text that was kept before it was checked: half of a surrogate pair becomes a question mark."""
    return text if text.isascii() else _HALF.sub("?", text)

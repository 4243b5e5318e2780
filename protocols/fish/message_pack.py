"""Reads untrusted MessagePack: checks limits before decoding, because each byte can become an object."""

from __future__ import annotations

from typing import Any

import ormsgpack

MAX_VALUES = 20_000
"""Values in one message, including those in lists and maps."""
MAX_DEPTH = 16

_SIZES = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4}
"""Bytes of the length field of binary data and strings, by first byte."""
_WIDTHS = {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}
"""Bytes of numbers, by first byte."""
_COUNTS = {0xDC: (2, 1), 0xDD: (4, 1), 0xDE: (2, 2), 0xDF: (4, 2)}
"""Bytes of the count field of lists and maps, and values per entry."""
_PLAIN = (0xC0, 0xC2, 0xC3)
"""nil, false, true."""


def unpack(data: bytes) -> Any:
    """The value of a message. Raises ValueError with the reason."""
    _check(data)
    try:
        return ormsgpack.unpackb(data, option=ormsgpack.OPT_NON_STR_KEYS)
    except ormsgpack.MsgpackDecodeError as error:
        raise ValueError(f"it is not MessagePack: {error}") from None


def pack(value: Any) -> bytes:
    return ormsgpack.packb(value)


def _check(data: bytes) -> None:
    """Walk over the headers of all values. Raises ValueError at a limit."""
    at, values, open_values = 0, 0, [1]
    while open_values:
        if not open_values[-1]:
            open_values.pop()
            continue
        open_values[-1] -= 1
        values += 1
        if values > MAX_VALUES:
            raise ValueError(f"it has more than {MAX_VALUES} values")
        at, children = _after(data, at)
        if children:
            open_values.append(children)
            if len(open_values) > MAX_DEPTH:
                raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    if at != len(data):
        raise ValueError("there are extra bytes after its value")


def _after(data: bytes, at: int) -> tuple[int, int]:
    """End of the value or header at an offset, and the number of values inside it, which follow. Raises ValueError."""
    if at >= len(data):
        raise ValueError("it is truncated")
    head, at, children = data[at], at + 1, 0
    if 0x80 <= head <= 0x8F:
        children = 2 * (head & 0x0F)
    elif 0x90 <= head <= 0x9F:
        children = head & 0x0F
    elif 0xA0 <= head <= 0xBF:
        at += head & 0x1F
    elif head in _WIDTHS:
        at += _WIDTHS[head]
    elif head in _SIZES:
        size = _SIZES[head]
        at += size + int.from_bytes(data[at : at + size], "big")
    elif head in _COUNTS:
        size, per_entry = _COUNTS[head]
        children, at = per_entry * int.from_bytes(data[at : at + size], "big"), at + size
    elif 0x80 <= head < 0xE0 and head not in _PLAIN:
        raise ValueError(f"values of type 0x{head:02x} are not supported")
    if at > len(data):
        raise ValueError("it is truncated")
    return at, children

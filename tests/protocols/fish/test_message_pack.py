"""Untrusted MessagePack: the output of other packers is read, and expensive input is refused early."""

from __future__ import annotations

import random
from typing import Any

import ormsgpack
import pytest

from protocols.fish.message_pack import MAX_DEPTH, MAX_VALUES, pack, unpack

VALUE: dict[str, Any] = {
    "nil": None,
    "yes": True,
    "numbers": [0, 127, 128, 255, 2**16, 2**40, -1, -32, -33, -(2**20), 0.5],
    "text": ["", "a" * 31, "b" * 32, "é" * 300, "c" * 70_000],
    "bytes": [b"", b"1" * 255, b"2" * 256, b"3" * 70_000],
    "list": list(range(300)),
    "map": {str(number): number for number in range(300)},
}


def test_packed_values_are_read_back() -> None:
    assert unpack(pack(VALUE)) == VALUE
    assert unpack(b"\x81\xa1a\xca\x3f\x00\x00\x00") == {"a": 0.5}  # a four-byte float, as packed by JavaScript


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "truncated"),
        (b"\x81\xa1a", "truncated"),
        (b"\xc6\xff\xff\xff\xffabc", "truncated"),
        (b"\xdd\xff\xff\xff\xff", "truncated"),
        (b"\xdf\xff\xff\xff\xff\xa1a\x01", "truncated"),
        (b"\x80\x80", "extra bytes"),
        (b"\x91" * (MAX_DEPTH + 1) + b"\x90", "nested"),
        (b"\x91" * 1_000_000, "nested"),
        (b"\xdd" + (10**6).to_bytes(4, "big") + b"\xc0" * 10**6, "values"),
        (b"\xc1", "type 0xc1"),
        (b"\xd4\x01\x02", "type 0xd4"),
        (b"\xa2\xff\xff", "not MessagePack"),
    ],
)
def test_malicious_messages_are_refused_with_a_message(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        unpack(data)


def test_message_with_the_maximum_number_of_values_is_read() -> None:
    assert len(unpack(pack([0] * (MAX_VALUES - 1)))) == MAX_VALUES - 1


def test_random_bytes_are_refused_or_unpacked_as_by_ormsgpack() -> None:
    chance = random.Random(3)
    good = pack(VALUE)[:400]
    for _ in range(3000):
        data = bytearray(good[: chance.randrange(1, 400)])
        for _ in range(chance.randrange(4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            value = unpack(bytes(data))
        except ValueError:
            continue
        assert repr(value) == repr(ormsgpack.unpackb(bytes(data), option=ormsgpack.OPT_NON_STR_KEYS))

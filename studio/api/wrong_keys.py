"""Limits guessing of keys: after several different wrong keys, an address has to wait before the next."""

from __future__ import annotations

import hashlib
import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from studio.api.error_responses import ApiError

FREE = 5
"""Different wrong keys of one address before the first pause."""
LONGEST_PAUSE = 60.0
"""Seconds; the first pause is one second, and each is twice as long as the previous one."""
FORGOTTEN_SECONDS = 900.0
"""An address without wrong keys for this long starts again with no pauses."""
MAX_ADDRESSES = 4000
"""Addresses with wrong keys; one more drops the address whose last wrong key is the oldest."""
MAX_ACCEPTED = 10_000
"""Pairs of an address and a key accepted from it; one more drops the least recently used pair."""
REMEMBERED_KEYS = 64
"""Wrong keys of one address that are recognised when sent again."""
CODE = "too_many_wrong_keys"


@dataclass(slots=True)
class _Guesses:
    """``digests``: the last wrong keys; ``count``: all different wrong keys; ``last``, ``until``: clock times of the
    last wrong key and of the end of the pause."""

    digests: OrderedDict[bytes, None] = field(default_factory=OrderedDict)
    count: int = 0
    last: float = 0.0
    until: float = 0.0


class WrongKeys:
    """Counts wrong keys by the client's address. For use in one event loop; never blocks.

    A program that keeps sending one outdated key counts as one guess and causes no pause. A key that was accepted from
    an address before continues to work there, whatever else the address sends.
    """

    def __init__(self, is_right: Callable[[bytes], bool], clock: Callable[[], float] = time.monotonic) -> None:
        """``is_right`` compares the SHA-256 digest of a key with those of the studio's keys."""
        self._is_right = is_right
        self._clock = clock
        self._guesses: OrderedDict[str, _Guesses] = OrderedDict()
        self._accepted: OrderedDict[tuple[str, bytes], None] = OrderedDict()

    def accepts(self, client: str | None, key: bytes) -> bool:
        """Whether the key is valid. An empty key is not valid, but does not count as a guess.

        Raises ApiError (429) during a pause, for every key that this address has not sent before, valid or not.
        """
        if not key:
            return False
        address, digest = _address(client), hashlib.sha256(key).digest()
        if (address, digest) in self._accepted:
            self._accepted.move_to_end((address, digest))
            return True
        guesses = self._guesses_of(address)
        if guesses is not None and digest in guesses.digests:
            guesses.digests.move_to_end(digest)
            return False
        if guesses is not None and (pause := guesses.until - self._clock()) > 0:
            raise _pause_error(math.ceil(pause))
        if self._is_right(digest):
            self._accepted[address, digest] = None
            _trim(self._accepted, MAX_ACCEPTED)
            return True
        self._count(address, guesses or _Guesses(), digest)
        return False

    def _guesses_of(self, address: str) -> _Guesses | None:
        guesses = self._guesses.get(address)
        if guesses is not None and self._clock() - guesses.last >= FORGOTTEN_SECONDS:
            del self._guesses[address]
            return None
        return guesses

    def _count(self, address: str, guesses: _Guesses, digest: bytes) -> None:
        guesses.digests[digest] = None
        _trim(guesses.digests, REMEMBERED_KEYS)
        guesses.count += 1
        guesses.last = self._clock()
        if (doublings := guesses.count - FREE - 1) >= 0:
            guesses.until = guesses.last + min(2.0 ** min(doublings, 10), LONGEST_PAUSE)
        self._guesses[address] = guesses
        self._guesses.move_to_end(address)
        _trim(self._guesses, MAX_ADDRESSES)


def _pause_error(seconds: int) -> ApiError:
    message = (
        f"Too many different wrong API keys came from your address. Wait {seconds} s before you send another one; "
        "a key that was accepted from there before still works."
    )
    return ApiError(429, message, None, CODE, {"Retry-After": str(seconds)})


def _address(client: str | None) -> str:
    """The IPv4 address, or the first 64 bits of an IPv6 address, whose owner chooses the rest; or "unknown"."""
    try:
        address = ipaddress.ip_address(client or "")
    except ValueError:
        return "unknown"
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.IPv6Address(int(address) >> 64 << 64))


def _trim(entries: OrderedDict[Any, Any], limit: int) -> None:
    while len(entries) > limit:
        entries.popitem(last=False)

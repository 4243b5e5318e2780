"""Chooses replicas: a voice stays on its home replicas, which have its prompt cached, unless they are busy."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Iterable, Mapping

from engine import Utterance

HOMES = 2
"""Home replicas of a voice: the second takes over when the first is busy or down."""
LEAST_BOUND = 2.0
OVER_MEAN = 1.25
"""A home serves its voices while its load is below this multiple of the mean, or below LEAST_BOUND."""


def choose(
    voice: bytes | None, loads: Mapping[str, float], excluded: Collection[str] = (), ties: random.Random | None = None
) -> str | None:
    """The replica for a take; None if all are in ``excluded``.

    ``voice`` None has no home. ``loads`` are the running and queued takes by replica. Ties are broken at random, so
    that callers with the same loads do not all choose the same replica.
    """
    candidates = {name: load for name, load in loads.items() if name not in excluded}
    if not candidates:
        return None
    load_limit = max(LEAST_BOUND, OVER_MEAN * sum(candidates.values()) / len(candidates))
    for home in homes(voice, candidates) if voice is not None else ():
        if candidates[home] < load_limit:
            return home
    lowest_load = min(candidates.values())
    return (ties or random).choice(sorted(name for name, load in candidates.items() if load == lowest_load))


def homes(voice: bytes, replicas: Iterable[str]) -> list[str]:
    """A voice's homes by rendezvous hashing: equal in every process; a lost replica moves only its own voices."""
    return sorted(replicas, key=lambda name: (_weight(voice, name), name), reverse=True)[:HOMES]


def voice_of(utterance: Utterance) -> bytes | None:
    """A digest of an utterance's references; None for the random voice, which has no home."""
    if not utterance.references:
        return None
    digest = hashlib.blake2b(digest_size=16)
    for reference in utterance.references:
        digest.update(f"{reference.codes.shape} {len(reference.text)} {reference.text}".encode())
        digest.update(reference.codes.tobytes())
    return digest.digest()


def _weight(voice: bytes, replica: str) -> bytes:
    return hashlib.blake2b(voice + replica.encode(), digest_size=8).digest()

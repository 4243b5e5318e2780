"""Which replica speaks for whom: a voice keeps to its homes, where its prompt is known, unless these are busy."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Collection, Iterable, Mapping

from engine import Utterance

HOMES = 2
"""Replicas that a voice is at home on: the second takes over when the first is busy or gone."""
LEAST_BOUND = 2.0
OVER_MEAN = 1.25
"""A home serves its voices while its load is below this much of the mean, and in any case below LEAST_BOUND."""


def choose(
    voice: bytes | None, loads: Mapping[str, float], avoid: Collection[str] = (), ties: random.Random | None = None
) -> str | None:
    """The replica for a take; None when all that there are have to be avoided.

    ``voice`` has homes, None has not. ``loads`` are takes in progress and in line, by replica. Ties are broken at
    random: several callers who see the same loads should not all choose the same.
    """
    open_ones = {name: load for name, load in loads.items() if name not in avoid}
    if not open_ones:
        return None
    bound = max(LEAST_BOUND, OVER_MEAN * sum(open_ones.values()) / len(open_ones))
    for home in homes(voice, open_ones) if voice is not None else ():
        if open_ones[home] < bound:
            return home
    least = min(open_ones.values())
    return (ties or random).choice(sorted(name for name, load in open_ones.items() if load == least))


def homes(voice: bytes, replicas: Iterable[str]) -> list[str]:
    """A voice's homes by rendezvous hashing: the same in every process, and a replica that goes moves only its own."""
    return sorted(replicas, key=lambda name: (_weight(voice, name), name), reverse=True)[:HOMES]


def voice_of(utterance: Utterance) -> bytes | None:
    """Which voice an utterance has, by its references; None for the random voice, which is at home nowhere."""
    if not utterance.references:
        return None
    digest = hashlib.blake2b(digest_size=16)
    for reference in utterance.references:
        digest.update(f"{reference.codes.shape} {len(reference.text)} {reference.text}".encode())
        digest.update(reference.codes.tobytes())
    return digest.digest()


def _weight(voice: bytes, replica: str) -> bytes:
    return hashlib.blake2b(voice + replica.encode(), digest_size=8).digest()

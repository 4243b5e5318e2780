"""The choice of a replica for a take: homes, bounds and ties, as a function of the known loads."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np

from fleet.membership import choose, homes
from fleet.routed_utterance import voice_of
from tests.fleet.fakes import utterance

EIGHT = tuple("abcdefgh")


def idle(names: tuple[str, ...] = EIGHT) -> dict[str, float]:
    return dict.fromkeys(names, 0.0)


def test_voice_is_routed_to_its_home() -> None:
    for voice in (b"anna", b"bert"):
        first = homes(voice, EIGHT)[0]
        assert {choose(voice, idle()) for _ in range(20)} == {first}
        assert choose(voice, idle() | {first: 1}) == first, "one take does not drive it out"


def test_busy_home_is_replaced_by_the_second_choice_then_the_least_loaded() -> None:
    first, second = homes(b"anna", EIGHT)
    assert choose(b"anna", idle() | {first: 2}) == second
    loads = idle() | {first: 2, second: 2}
    assert choose(b"anna", loads) in set(EIGHT) - {first, second}


def test_home_is_preferred_while_its_load_is_near_the_mean() -> None:
    first = homes(b"anna", EIGHT)[0]
    loads = dict.fromkeys(EIGHT, 40.0)
    assert choose(b"anna", loads | {first: 50}) == first
    assert choose(b"anna", loads | {first: 53}) == homes(b"anna", EIGHT)[1]


def test_excluded_replica_is_never_chosen() -> None:
    first = homes(b"anna", EIGHT)[0]
    assert choose(b"anna", idle(), {first}) == homes(b"anna", set(EIGHT) - {first})[0]
    assert choose(None, {"a": 9.0, "b": 0.0}, {"b"}) == "a"
    assert choose(None, {"a": 0.0}, {"a"}) is None
    assert choose(b"anna", {}) is None


def test_lost_replica_moves_only_its_own_voices() -> None:
    voices = [str(number).encode() for number in range(400)]
    before = {voice: homes(voice, EIGHT)[0] for voice in voices}
    after = {voice: homes(voice, EIGHT[:-1])[0] for voice in voices}
    assert all(after[voice] == home for voice, home in before.items() if home != "h")
    assert max(Counter(before.values()).values()) < 2 * 400 / 8


def test_take_without_a_voice_goes_to_the_least_loaded_replica_with_random_ties() -> None:
    assert choose(None, {"a": 3.0, "b": 1.0, "c": 2.0}) == "b"
    drawn = Counter(choose(None, idle(), ties=random.Random(number)) for number in range(400))
    assert drawn.keys() == set(EIGHT) and max(drawn.values()) < 100


def test_a_burst_spreads_when_each_choice_is_counted() -> None:
    loads = idle()
    for _ in range(64):
        loads[choose(None, loads) or ""] += 1
    assert set(loads.values()) == {8.0}


def test_a_voice_is_identified_by_its_references_not_by_the_text() -> None:
    one, other = utterance(seed=1, voice=1), utterance(seed=2, voice=1)
    assert voice_of(one) == voice_of(other) != voice_of(utterance(voice=2))
    assert voice_of(utterance()) is None
    assert np.array_equal(one.references[0].codes, other.references[0].codes)

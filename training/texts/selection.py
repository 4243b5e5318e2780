"""Selects sentences: every frequent word a few times first, then up to each source's share."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from training.texts.cleaning import words

FREQUENT_WORDS, WANTED = 15_000, 5


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence and the source it counts for."""

    text: str
    source: int


def choose(candidates: Sequence[Candidate], shares: Mapping[int, int], rng: random.Random) -> list[Candidate]:
    """At most shares[source] sentences of every source, so that frequent words occur WANTED times if possible.

    Rare words among the frequent ones come first: sentences with them contain common words too.
    """
    vocabulary = [set(words(candidate.text)) for candidate in candidates]
    frequency = Counter(word for sentence_words in vocabulary for word in sentence_words)
    holders: dict[str, list[int]] = defaultdict(list)
    wanted = sorted(frequency, key=lambda word: (-frequency[word], word))[:FREQUENT_WORDS]
    order = list(range(len(candidates)))
    rng.shuffle(order)
    is_wanted = set(wanted)
    for index in order:
        for word in vocabulary[index] & is_wanted:
            holders[word].append(index)
    left, times, taken = dict(shares), Counter[str](), dict[int, None]()

    def take(index: int) -> None:
        if index not in taken and left[candidates[index].source] > 0:
            taken[index] = None
            left[candidates[index].source] -= 1
            times.update(vocabulary[index])

    for word in reversed(wanted):
        for index in holders[word]:
            if times[word] >= WANTED:
                break
            take(index)
    for index in order:
        take(index)
    return [candidates[index] for index in taken]

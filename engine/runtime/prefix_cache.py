"""The prefix cache: keys and values of known voices for their next takes; the least recently used are evicted."""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from torch import Tensor

from engine.model.kv_cache import KVCache
from engine.model.prompt import Prompt


class PrefixCache:
    """Keys and values of prompts' prefixes; evicts the least recently used when the budget is exceeded.

    A prefix is identified by its tokens, its codes and its voice's vector, so an edited transcript or clip is a
    different one and no entry is ever stale. Prompts are prefilled in the same pieces with and without a hit, so the
    result is the same.
    """

    def __init__(self, cache: KVCache, budget: int) -> None:
        self._cache, self._budget = cache, budget
        self._entries: OrderedDict[bytes, tuple[Tensor, Tensor]] = OrderedDict()
        self.nbytes = self.hits = self.misses = 0

    def restore(self, prompt: Prompt, slot: int) -> int:
        """Copy the prompt's prefix into the slot if it is cached; returns its number of positions, else 0."""
        key = _prefix_key(prompt)
        if key not in self._entries:
            self.misses += 1
            return 0
        self.hits += 1
        self._entries.move_to_end(key)
        keys, values = self._entries[key]
        self._cache.keys[:, slot, : prompt.prefix] = keys
        self._cache.values[:, slot, : prompt.prefix] = values
        return prompt.prefix

    def keep(self, prompt: Prompt, slot: int) -> None:
        """Cache the prompt's prefix, which the slot holds now.

        If several rows prefilled the same new voice at once, all but the first find it cached.
        """
        key, index = _prefix_key(prompt), (slice(None), slot, slice(prompt.prefix))
        if key in self._entries:
            self._entries.move_to_end(key)
            return
        keys, values = self._cache.keys[index], self._cache.values[index]
        size = keys.nbytes + values.nbytes
        if size > self._budget:
            return
        while self.nbytes + size > self._budget:  # evict first, so that the budget also holds during the copy
            _, evicted = self._entries.popitem(last=False)
            self.nbytes -= _nbytes(evicted)
        self._entries[key] = keys.clone(), values.clone()
        self.nbytes += size

    def recount(self) -> tuple[int, int]:
        """Return the bytes counted and the bytes held; corrects the count."""
        counted, self.nbytes = self.nbytes, sum(map(_nbytes, self._entries.values()))
        return counted, self.nbytes


def _nbytes(entry: tuple[Tensor, Tensor]) -> int:
    return sum(part.nbytes for part in entry)


def _prefix_key(prompt: Prompt) -> bytes:
    steps = prompt.part(0, prompt.prefix)
    digest = hashlib.sha256(steps.ids.tobytes())
    for part in (steps.codes, steps.beside, steps.vector):
        if part is not None:
            digest.update(part.tobytes())
    return digest.digest()

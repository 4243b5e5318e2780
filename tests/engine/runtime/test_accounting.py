"""Accounting of the engine's caches: each counts its stored bytes; wrong counts are reported and corrected."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine import Engine, Reference
from engine.config import TransformerSizes
from engine.model.kv_cache import KVCache
from engine.model.prompt import Prompt
from engine.runtime.prefix_cache import PrefixCache
from tests.engine.speaking import first_chunk, hear, running_engine, seeded, until

SIZES = TransformerSizes(
    vocab_size=8, n_layer=2, dim=2, n_head=1, n_kv_head=1, head_dim=2, intermediate_size=2, qk_norm=False,
    rope_base=1e4, norm_eps=1e-6,
)  # fmt: skip
POSITION = 2 * 2 * 2 * 4
"""Bytes of one position: keys and values · layers · head_dim · float32."""
SLOTS = 3


def prompt_of(voice: int) -> Prompt:
    """Return a prompt whose voice has `voice` + 1 positions."""
    steps = voice + 3
    return Prompt(np.full(steps, voice), np.zeros((2, steps), np.int64), prefix=voice + 1)


def stored_bytes(prefixes: PrefixCache) -> int:
    return sum(keys.nbytes + values.nbytes for keys, values in prefixes._entries.values())


@settings(deadline=None)
@given(
    st.integers(0, 24),
    st.lists(st.tuples(st.sampled_from(["keep", "restore"]), st.integers(0, 7), st.integers(0, SLOTS - 1))),
)
def test_counted_bytes_equal_stored_bytes_after_any_steps(room: int, steps: list[tuple[str, int, int]]) -> None:
    prefixes = PrefixCache(KVCache(SIZES, SLOTS, 16, torch.device("cpu"), torch.float32), room * POSITION)
    for verb, voice, slot in steps:
        getattr(prefixes, verb)(prompt_of(voice), slot)
        assert prefixes.nbytes == stored_bytes(prefixes) <= room * POSITION
        if verb == "keep" and voice + 1 <= room:
            assert prefixes.restore(prompt_of(voice), slot) == voice + 1, "what was kept last is there"
    assert prefixes.recount() == (stored_bytes(prefixes), stored_bytes(prefixes))


def voice_of(engine: Engine, seed: int) -> Reference:
    codes = np.random.default_rng(seed).integers(0, 16, (engine.info.num_codebooks, 30)).astype(np.int16)
    return Reference(codes, "The words of the clip.")


async def test_concurrent_takes_of_sixteen_voices_keep_the_cache_consistent(tiny_checkpoint: Path) -> None:
    budget = 3 * 2 * 2 * 16 * 4 * 640  # room for a few voices of the tiny model
    with running_engine(tiny_checkpoint, max_rows=4, prefix_bytes=budget) as engine:
        voices = [voice_of(engine, seed) for seed in range(16)]
        for number, voice in enumerate(voices):
            utterances = (seeded("Say this.", seed, 2, (voice,)) for seed in range(4))
            await asyncio.gather(*(hear(engine, utterance) for utterance in utterances))
            prefixes = engine._loop._runner.prefixes
            assert engine.stats().prefix_bytes == stored_bytes(prefixes) <= budget, f"after voice {number}"
        hits = engine.stats().prefix_hits
        await hear(engine, seeded("Say this.", 5, 2, (voices[-1],)))
        assert engine.stats().prefix_hits == hits + 1
        await until(lambda: engine.stats().codec_streams == 0)
        assert engine.stats().book_errors == 0


async def test_wrong_counts_are_reported_and_corrected_when_the_engine_idles(
    tiny_checkpoint: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running_engine(tiny_checkpoint, max_rows=2) as engine, caplog.at_level(logging.ERROR, "engine"):
        voice = voice_of(engine, 1)
        await hear(engine, seeded("Say this.", 1, 2, (voice,)))
        await until(lambda: engine.stats().codec_streams == 0)
        right = engine.stats().prefix_bytes
        loop = engine._loop
        loop._runner.prefixes.nbytes += 1000
        loop._scheduler._free.pop()
        loop._codec._streams.open("nobody")
        await hear(engine, seeded("Say this.", 2, 2, (voice,)))
        await until(lambda: engine.stats().book_errors == 3)
        await until(lambda: engine.stats().codec_streams == 0)  # the last take's stream may close after the count
        assert engine.stats().prefix_bytes == right
        for words in ("bytes of known voices", "free slots: [1] counted, [0, 1] held", "closed 1 codec streams"):
            assert words in caplog.text
        takes = [(await first_chunk(engine, seeded("Say this.", seed, 2000, (voice,))))[0] for seed in (3, 4)]
        assert engine.stats().running == 2
        for take in takes:
            await take.aclose()
        await until(lambda: engine.stats().running == engine.stats().codec_streams == 0)
        assert engine.stats().book_errors == 3

"""With a known voice, only the text is prefilled, and takes are the same to the last code."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from engine import Engine, Reference
from tests.engine.speaking import hear, running_engine, seeded


@pytest.fixture
def engine(tiny_checkpoint: Path) -> Iterator[Engine]:
    with running_engine(tiny_checkpoint, max_rows=2) as engine:
        yield engine


def clip(engine: Engine, seed: int, text: str = "The words of the clip.") -> Reference:
    codes = np.random.default_rng(seed).integers(0, 16, (engine.info.num_codebooks, 30)).astype(np.int16)
    return Reference(codes, text)


async def test_second_take_of_a_voice_hits_the_cache_with_the_same_codes(engine: Engine) -> None:
    utterance = seeded("Say this.", 7, references=(clip(engine, 1),))
    before = engine.stats()
    first = await hear(engine, utterance)
    assert engine.stats().prefix_misses == before.prefix_misses + 1
    second = await hear(engine, utterance)
    assert engine.stats().prefix_hits == before.prefix_hits + 1
    assert np.array_equal(first.codes, second.codes)


async def test_cached_prefix_does_not_change_the_next_take(engine: Engine, tiny_checkpoint: Path) -> None:
    reference = clip(engine, 1)
    await hear(engine, seeded("Say this.", 7, references=(reference,)))
    take = await hear(engine, seeded("And now something else.", 8, references=(reference,)))
    with running_engine(tiny_checkpoint, prefix_bytes=0) as uncached:
        fresh = await hear(uncached, seeded("And now something else.", 8, references=(reference,)))
        assert uncached.stats().prefix_hits == 0
    assert np.array_equal(take.codes, fresh.codes)


async def test_edited_transcript_or_clip_misses_the_cache(engine: Engine) -> None:
    await hear(engine, seeded("Say this.", 7, references=(clip(engine, 1),)))
    hits = engine.stats().prefix_hits
    await hear(engine, seeded("Say this.", 7, references=(clip(engine, 1, "Other words."),)))
    await hear(engine, seeded("Say this.", 7, references=(clip(engine, 2),)))
    assert engine.stats().prefix_hits == hits


async def test_least_recently_used_voice_is_evicted_first(tiny_checkpoint: Path) -> None:
    with running_engine(tiny_checkpoint) as roomy:
        voices = [clip(roomy, seed) for seed in range(3)]
    size = 3 * 2 * 2 * 16 * 4  # layers · keys and values · heads · head_dim · bytes, for one position
    with running_engine(tiny_checkpoint, prefix_bytes=size * 320) as engine:  # room for two such prefixes

        async def is_known(voice: Reference) -> bool:
            hits = engine.stats().prefix_hits
            await hear(engine, seeded("Say this.", 7, frames=2, references=(voice,)))
            return engine.stats().prefix_hits > hits

        assert not await is_known(voices[0])
        assert not await is_known(voices[1])
        assert await is_known(voices[0])
        assert not await is_known(voices[2])  # replaces the second
        assert await is_known(voices[0])
        assert not await is_known(voices[1])

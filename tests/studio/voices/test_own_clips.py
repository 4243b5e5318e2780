"""Clips sent with requests: encoded once for several callers, cancelled when the last one leaves, limited in number."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest

from engine import Reference, SpeechEngine
from studio.errors import QueueFull
from studio.voices.clip_fetcher import ClipFetcher
from studio.voices.references import References
from studio.work import DOWNLOADS, ENCODINGS, WorkQueue
from tests.studio.sounds import tone, wav

CLIP = wav(tone(1.5))


@dataclass
class Info:
    codec_fingerprint: str = "codec"


class Encoder:
    """The part of an engine that encodes clips, once it may."""

    def __init__(self) -> None:
        self.info = Info()
        self.may = asyncio.Event()
        self.begun: list[str] = []
        self.left: list[str] = []

    async def encode_reference(self, pcm: np.ndarray, sample_rate: int, text: str) -> Reference:
        self.begun.append(text)
        try:
            await self.may.wait()
        except asyncio.CancelledError:
            self.left.append(text)
            raise
        return Reference(np.zeros((10, 5), np.int16), text)


class Slow(ClipFetcher):
    """Fetches nothing, and records the URLs requested."""

    def __init__(self) -> None:
        super().__init__()
        self.urls: list[str] = []

    async def fetch(self, url: str, param: str = "ref_audio") -> bytes:
        self.urls.append(url)
        await asyncio.Event().wait()
        raise AssertionError("nobody sets that event")


def new_references(
    waiting: int = 8, limit: int = 256, fetcher: ClipFetcher | None = None
) -> tuple[References, SpeechEngine, Any]:
    encoder = Encoder()
    downloads, encodings = (WorkQueue(replace(kind, waiting=waiting)) for kind in (DOWNLOADS, ENCODINGS))
    references = References(downloads, encodings, fetcher or ClipFetcher(), limit)
    return references, cast(SpeechEngine, encoder), encoder


async def until_begun(encoder: Encoder, number: int) -> None:
    while len(encoder.begun) < number:
        await asyncio.sleep(0.001)


async def until_shared(references: References) -> None:
    while all(encoding.waiters < 2 for encoding in references._encodings._running.values()):
        await asyncio.sleep(0.001)


async def test_clip_encoding_continues_while_any_caller_waits() -> None:
    references, engine, encoder = new_references()
    both = [asyncio.create_task(references.encode(engine, CLIP, "Hello.", name)) for name in "ab"]
    await until_begun(encoder, 1)
    await until_shared(references)
    both[0].cancel()
    await asyncio.wait([both[0]])
    assert encoder.left == []
    encoder.may.set()
    assert (await both[1]).text == "Hello."
    assert (await references.encode(engine, CLIP, "Hello.", "c")).text == "Hello."
    assert encoder.begun == ["Hello."]


async def test_encoding_ends_with_its_last_caller_and_restarts_for_the_next() -> None:
    references, engine, encoder = new_references()
    alone = asyncio.create_task(references.encode(engine, CLIP, "Hello.", "a"))
    await until_begun(encoder, 1)
    alone.cancel()
    await asyncio.wait([alone])
    while not encoder.left:
        await asyncio.sleep(0.001)
    encoder.may.set()
    assert (await references.encode(engine, CLIP, "Hello.", "a")).text == "Hello."
    assert encoder.begun == ["Hello."] * 2


async def test_many_clips_do_not_evict_one_being_encoded() -> None:
    references, engine, encoder = new_references(limit=1)
    tasks = [asyncio.create_task(references.encode(engine, CLIP, f"Hello {number}.", "a")) for number in range(3)]
    await until_begun(encoder, 3)
    same = asyncio.create_task(references.encode(engine, CLIP, "Hello 0.", "b"))
    await until_shared(references)
    encoder.may.set()
    await asyncio.gather(*tasks, same)
    assert sorted(encoder.begun) == ["Hello 0.", "Hello 1.", "Hello 2."]


async def test_waiting_downloads_are_limited_and_do_not_delay_uploaded_clips() -> None:
    fetcher = Slow()
    references, engine, encoder = new_references(waiting=1, fetcher=fetcher)
    tasks = [
        asyncio.create_task(references.encode(engine, f"https://clips.example/{number}", "Hello.", str(number)))
        for number in range(9)
    ]
    while len(fetcher.urls) < 8:
        await asyncio.sleep(0)
    with pytest.raises(QueueFull, match="requests with a clip's address"):
        await references.encode(engine, "https://clips.example/10", "Hello.", "late")
    encoder.may.set()
    assert (await references.encode(engine, CLIP, "Hello.", "another")).text == "Hello."
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert len(fetcher.urls) == 8

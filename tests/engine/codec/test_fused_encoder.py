"""The codec's fused encoder gives the plain one's codes for pieces of any size; waiting clips are batched."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.codec import Codec
from engine.engine_errors import EngineFull, EngineStopped
from engine.runtime.clip_encoder import SECONDS_AT_ONCE, ClipEncoder
from tests.engine.codec.small_codec import random_codec, transformer
from tests.engine.kernels.interpreter import DEVICE

fused = pytest.importorskip("engine.fused.codec_encoder")
on_demand = pytest.importorskip("engine.fused.codec_encoder")


def with_transformers(*layers: int) -> Codec:
    dim = 16 if any(layers) else 4
    return random_codec(transformer(), encoder_dim=dim, encoder_transformer_layers=layers).to(DEVICE)


@pytest.mark.parametrize("at_end", [0, 2], ids=["convolutions alone", "a transformer at the end"])
@torch.inference_mode()
def test_codes_match_the_plain_encoder_in_pieces_and_batches(at_end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    codec = with_transformers(0, at_end)
    clips = torch.randn(3, 1, 500, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    plain, short = codec.encode(clips), codec.encode(clips[1:2, :, :90])
    monkeypatch.setattr(fused, "PIECE_SAMPLES", 3 * 7 * codec.config.frame_samples)
    encoder = fused.FusedEncoder(codec, 4)
    assert torch.equal(encoder(clips), plain)
    assert torch.equal(encoder(clips[1:2, :, :90]), short)
    actual = encoder.convolve(clips[1:2, :, :90])
    padded = torch.cat([actual, torch.full_like(actual, 1e3)], 1)  # as in a graph captured for longer clips
    assert torch.equal(encoder.codes(padded)[:, :, : short.shape[2]], short)
    with pytest.raises(ValueError, match="5 clips"):
        encoder(torch.zeros(5, 1, 12, device=DEVICE))


@torch.inference_mode()
def test_encoder_on_demand_uses_its_graphs_if_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its codec stays in the host's memory, so the codes remain the same."""
    codec, free = with_transformers(0, 2).cpu(), [1000]
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (free[0], 2000))
    on_gpu, fused_encoder = list[int](), on_demand.FusedEncoder

    def record(part: Codec, rows: int) -> Any:
        on_gpu.append(free[0])
        return fused_encoder(part, rows)

    monkeypatch.setattr(on_demand, "FusedEncoder", record)
    clips = torch.randn(2, 1, 500, generator=torch.Generator().manual_seed(1))
    plain, encode = codec.encode(clips), on_demand.OnDemandEncoder(codec, 1000)
    for free[0] in (1000, 999, 2000):
        assert torch.equal(encode(clips.to(DEVICE)).cpu(), plain)
    assert on_gpu == [1000, 2000]


def test_a_transformer_in_the_middle_is_left_to_the_plain_encoder() -> None:
    assert fused.FusedEncoder.reads(with_transformers(0, 1))
    assert not fused.FusedEncoder.reads(random_codec(transformer(), encoder_dim=32, encoder_transformer_layers=(1, 0)))


class GatedEncoder:
    """Encodes once permitted and records the batch sizes; a clip's codes equal its first sample."""

    def __init__(self) -> None:
        self.gate, self.started, self.together = threading.Event(), threading.Event(), list[int]()
        self.stop_reason: str | None = None

    def __call__(self, audio: Tensor) -> Tensor:
        self.together.append(len(audio))
        self.started.set()
        assert self.gate.wait(30)
        if (audio < 0).any():
            raise RuntimeError("broken")
        return audio[:, :, :1].long().expand(-1, 3, -(-audio.shape[2] // CONFIG.frame_samples))


CONFIG = random_codec(transformer()).config


def clip(mark: int, seconds: float) -> tuple[np.ndarray, int]:
    return np.full(round(seconds * CONFIG.sample_rate), mark, np.float32), CONFIG.sample_rate


async def start_clips(
    encode: GatedEncoder, clips: ClipEncoder, others: list[tuple[np.ndarray, int]]
) -> list[asyncio.Task[np.ndarray]]:
    """Start one clip, which is encoded until `encode` may continue, and others that wait behind it."""
    first = asyncio.create_task(clips.encode(*clip(1, 0.1)))
    await asyncio.to_thread(encode.started.wait, 30)
    tasks = [asyncio.create_task(clips.encode(*other)) for other in others]
    await asyncio.sleep(0)
    return [first, *tasks]


def test_waiting_clips_are_batched_and_each_gets_its_own_codes() -> None:
    encode = GatedEncoder()
    clips = ClipEncoder(encode, CONFIG, torch.device("cpu"), 3, lambda: encode.stop_reason)

    async def encode_clips() -> list[np.ndarray | BaseException]:
        others = [clip(2, 0.2), clip(3, 0.01), clip(4, 0.1), clip(5, 0.1), clip(6, SECONDS_AT_ONCE), clip(7, 0.1)]
        tasks = await start_clips(encode, clips, others)
        tasks[3].cancel()
        await asyncio.wait([tasks[3]])
        encode.gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    got = asyncio.run(encode_clips())
    clips.stop()
    assert isinstance(got[3], asyncio.CancelledError)
    codes_by_mark = {int(encoded[0, 0]): encoded for encoded in got if isinstance(encoded, np.ndarray)}
    assert sorted(codes_by_mark) == [1, 2, 3, 5, 6, 7]
    assert codes_by_mark[3].shape == (3, -(-441 // CONFIG.frame_samples))
    assert encode.together == [1, 3, 1, 1]  # 2, 3 and 5 (4 was cancelled), then 6, too long for a batch, then 7


def test_cancelled_clip_does_not_split_a_batch() -> None:
    encode = GatedEncoder()
    clips = ClipEncoder(encode, CONFIG, torch.device("cpu"), 3, lambda: encode.stop_reason)

    async def encode_clips() -> None:
        tasks = await start_clips(encode, clips, [clip(2, 0.1), clip(3, SECONDS_AT_ONCE), clip(4, 0.1)])
        tasks[2].cancel()
        await asyncio.wait([tasks[2]])
        encode.gate.set()
        await asyncio.gather(*tasks, return_exceptions=True)

    asyncio.run(encode_clips())
    clips.stop()
    assert encode.together == [1, 2]


def test_error_reaches_its_caller_and_later_clips_are_encoded() -> None:
    encode = GatedEncoder()
    encode.gate.set()
    clips = ClipEncoder(encode, CONFIG, torch.device("cpu"), 3, lambda: encode.stop_reason)

    async def encode_clips(mark: int) -> np.ndarray:
        return await clips.encode(*clip(mark, 0.1))

    with pytest.raises(RuntimeError, match="broken"):
        asyncio.run(encode_clips(-1))
    assert asyncio.run(encode_clips(4))[0, 0] == 4
    encode.stop_reason = "the engine was stopped"
    with pytest.raises(EngineStopped, match="was stopped"):
        asyncio.run(encode_clips(4))
    clips.stop()


def test_error_in_one_clip_does_not_fail_others_in_its_batch() -> None:
    encode = GatedEncoder()
    clips = ClipEncoder(encode, CONFIG, torch.device("cpu"), 3, lambda: encode.stop_reason)

    async def encode_clips() -> list[np.ndarray | BaseException]:
        tasks = await start_clips(encode, clips, [clip(mark, 0.1) for mark in (2, -3, 4)])
        encode.gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    got = asyncio.run(encode_clips())
    clips.stop()
    assert [int(encoded[0, 0]) for encoded in got if isinstance(encoded, np.ndarray)] == [1, 2, 4]
    assert str(got[2]) == "broken"
    assert encode.together == [1, 3, 1, 1, 1]


def test_clip_that_runs_out_of_memory_is_retried_once_then_refused() -> None:
    encode = GatedEncoder()
    encode.gate.set()
    failures: list[Tensor] = []

    def short_of_memory(audio: Tensor) -> Tensor:
        if len(failures) < limit:
            failures.append(audio)
            raise torch.OutOfMemoryError("CUDA out of memory")
        return encode(audio)

    clips = ClipEncoder(short_of_memory, CONFIG, torch.device("cpu"), 3, lambda: None)
    limit = 1
    assert asyncio.run(clips.encode(*clip(5, 0.1)))[0, 0] == 5
    failures.clear()
    limit = 2
    with pytest.raises(EngineFull, match="too little memory left to encode this clip; try again later"):
        asyncio.run(clips.encode(*clip(6, 0.1)))
    assert asyncio.run(clips.encode(*clip(7, 0.1)))[0, 0] == 7
    clips.stop()

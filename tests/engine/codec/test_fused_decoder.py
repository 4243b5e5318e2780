"""The codec's fused decoder matches the plain one, in small sizes under Triton's interpreter and on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch

from engine.codec import ONLY_ENCODES, Codec, part_on
from tests.engine.codec.small_codec import random_codec, random_qwen_codec, transformer
from tests.engine.kernels.interpreter import DEVICE

fused = pytest.importorskip("engine.fused.codec_decoder")
layers = pytest.importorskip("engine.fused.codec_layer")


CHUNKS = (
    # (rows that continue, number of frames)
    ((0, 1, 2), 1),
    ((2, 0), 2),
    ((1,), 8),
    ((2, 0), 8),
    ((0,), 1),
    ((2, 1), 3),
)


@pytest.mark.parametrize(
    ("made", "chunks"),
    [
        (partial(random_codec, transformer(dim=20, n_head=2, head_dim=12)), CHUNKS),
        (partial(random_codec, transformer()), CHUNKS[:2]),
        (partial(random_qwen_codec, 20), CHUNKS),
        (partial(random_qwen_codec, 24), CHUNKS[:2]),
    ],
)
@torch.inference_mode()
def test_streams_in_uneven_chunks_and_changing_batches_equal_each_alone(
    made: Callable[[], Codec], chunks: tuple[tuple[tuple[int, ...], int], ...]
) -> None:
    codec = made().to(DEVICE)
    codes = torch.randint(0, 10, (3, 3, 14), generator=torch.Generator().manual_seed(1)).to(DEVICE)  # some out of range
    alone = codec.decode(codes)[:, 0]
    clip = torch.randn(1, 1, 60, generator=torch.Generator().manual_seed(2)).to(DEVICE)
    known = codec.encode(clip)
    decoder = fused.FusedDecoder(codec, 4)
    codec.forget_decoder()
    assert torch.equal(codec.encode(clip), known)
    slots, at = (3, 0, 2), [0, 0, 0]
    heard: list[list[torch.Tensor]] = [[], [], []]
    for rows, frames in chunks:
        piece = torch.stack([codes[i, :, at[i] : at[i] + frames] for i in rows])
        pcm = decoder(piece, torch.tensor([slots[i] for i in rows], device=DEVICE))
        for i, sound in zip(rows, pcm, strict=True):
            heard[i].append(sound)
            at[i] += frames
    for row, parts in enumerate(heard):
        sound = torch.cat(parts)
        assert (sound - alone[row, : len(sound)]).abs().max() < 1e-5
    decoder.reset(0)
    again = decoder(codes[1:2, :, :2].contiguous(), torch.tensor([0], device=DEVICE))[0]
    assert (again - alone[1, : len(again)]).abs().max() < 1e-5


@pytest.mark.parametrize(
    ("dim", "whole"), [(20, True), (96, True), (96, False)], ids=["no units", "units", "units of few steps"]
)
@torch.inference_mode()
def test_tf32_decoder_is_close_to_the_plain_one_whole_and_in_chunks(
    dim: int, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Units whose channels fit a tile are one launch if they have enough steps."""
    if not whole:
        monkeypatch.setattr(layers, "unit_tiles", lambda x: None)
    codec = random_codec(transformer(), decoder_dim=dim).to(DEVICE)
    codes = torch.randint(0, 8, (2, 3, 8), generator=torch.Generator().manual_seed(1)).to(DEVICE)
    alone = codec.decode(codes)[:, 0]
    for sizes in ((8,), (1, 5, 2)):
        decoder = fused.FusedDecoder(codec, 2, "tf32")
        assert any(isinstance(layer, layers.FusedUnit) for layer in decoder._layers) == (dim == 96)
        slots = torch.arange(2, device=DEVICE)
        heard = torch.cat([decoder(piece.contiguous(), slots) for piece in codes.split(sizes, 2)], 1)
        assert 1e-6 < (heard - alone).abs().max() / alone.abs().max() < 2e-3


def test_fused_decoder_needs_no_encoder_weights() -> None:
    codec, codes = random_codec(transformer()).to(DEVICE), torch.arange(8).view(1, 1, 8).repeat(1, 3, 1).to(DEVICE)
    part = part_on(codec, torch.device(DEVICE), without=ONLY_ENCODES)
    whole, alone = (
        fused.FusedDecoder(decoder, 1)(codes, torch.zeros(1).long().to(DEVICE)) for decoder in (codec, part)
    )
    assert torch.equal(whole, alone)
    assert next(part.encoder.parameters()).is_meta


def test_more_frames_than_the_decoder_was_built_for_are_refused() -> None:
    decoder = fused.FusedDecoder(random_codec(transformer()).to(DEVICE), 1, frames=2)
    with pytest.raises(ValueError, match="3 frames"):
        decoder(torch.zeros(1, 3, 3).long().to(DEVICE), torch.zeros(1).long().to(DEVICE))

"""The codec's fused decoder sounds as the plain one: small sizes under Triton's interpreter, on a GPU the same ones."""

from __future__ import annotations

import pytest
import torch

from engine.codec import Codec, CodecConfig, TransformerConfig
from tests.engine.test_kernels import DEVICE

fused = pytest.importorskip("engine.codec.fused")


def transformer(**sizes: int) -> TransformerConfig:
    plain = {"input_dim": 24, "dim": 24, "n_layer": 2, "n_head": 3, "head_dim": 8, "intermediate_size": 20, "window": 5}
    return TransformerConfig(**plain | sizes)  # type: ignore[arg-type]  # all of them are int


def random_codec(post: TransformerConfig) -> Codec:
    """No size is a power of two, every gain and period differs from its neighbour's."""
    torch.manual_seed(0)
    codec = Codec(
        CodecConfig(
            encoder_dim=4,
            encoder_rates=(2, 3),
            encoder_transformer_layers=(0, 0),
            decoder_dim=20,
            decoder_rates=(3, 2),
            latent_dim=24,
            semantic_codebook_size=16,
            residual_codebooks=2,
            residual_codebook_size=8,
            codebook_dim=4,
            downsample_factor=(2,),
            downsample_dims=(24,),
            pre_module=transformer(),
            post_module=post,
        )
    )
    for name, parameter in codec.named_parameters():
        if name.endswith(("alpha", "gamma", "norm.weight")):
            parameter.data.uniform_(0.3, 2.0)
    return codec.to(DEVICE).eval().requires_grad_(False)


CHUNKS = (
    # (rows that go on, by how many frames)
    ((0, 1, 2), 1),
    ((2, 0), 2),
    ((1,), 8),
    ((2, 0), 8),
    ((0,), 1),
    ((2, 1), 3),
)


@pytest.mark.parametrize("post", [transformer(), transformer(dim=20, n_head=2, head_dim=12)])
@torch.inference_mode()
def test_streams_in_uneven_chunks_and_changing_company_sound_as_each_alone(post: TransformerConfig) -> None:
    codec = random_codec(post)
    codes = torch.randint(0, 10, (3, 3, 14), generator=torch.Generator().manual_seed(1)).to(DEVICE)  # some past the end
    alone = codec.decode(codes)[:, 0]
    clip = torch.randn(1, 1, 60, generator=torch.Generator().manual_seed(2)).to(DEVICE)
    known = codec.encode(clip)
    decoder = fused.FusedDecoder(codec, 4)
    codec.forget_decoder()
    assert torch.equal(codec.encode(clip), known)
    slots, at = (3, 0, 2), [0, 0, 0]
    heard: list[list[torch.Tensor]] = [[], [], []]
    for rows, frames in CHUNKS:
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


def test_more_frames_than_it_was_made_for_are_refused() -> None:
    decoder = fused.FusedDecoder(random_codec(transformer()), 1, frames=2)
    with pytest.raises(ValueError, match="3 frames"):
        decoder(torch.zeros(1, 3, 3).long().to(DEVICE), torch.zeros(1).long().to(DEVICE))

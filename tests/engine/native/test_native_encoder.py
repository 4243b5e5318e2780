"""The native encoder: torch's codes, and the same bits for any pieces and threads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch
from torch import Tensor

from engine.codec import Codec, load_codec
from engine.native import encoder, library
from engine.native.encoder import NativeEncoder, runs
from engine.runtime.clip_encoder import resample
from studio import ROOT
from tests.tiny import TinyCodec, write_codec

SIZES = {
    "transformer after convolutions": TinyCodec(encoder_dim=16, latent_dim=256, transformer_dim=256),
    "other rates": TinyCodec(encoder_rates=(2, 2, 4), decoder_rates=(4, 2, 2), encoder_dim=8, downsample=(2, 3)),
    "channels in no sixteens": TinyCodec(encoder_dim=4, encoder_layers=0),
    "projected transformers": TinyCodec(encoder_dim=4, encoder_layers=0, transformer_dim=48, n_head=3, head_dim=16),
    "short window": TinyCodec(num_codebooks=2, n_layer=1, window=3, encoder_dim=16, encoder_layers=0, downsample=(2,)),
}


@pytest.fixture(params=SIZES, scope="module")
def codec(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Codec:
    folder = tmp_path_factory.mktemp("codec")
    write_codec(folder, SIZES[request.param], seed=5)
    return load_codec(folder, "cpu")


def noise(codec: Codec, frames: int, rows: int = 1) -> Tensor:
    """Audio that ends within its last frame."""
    samples = frames * codec.config.frame_samples - 31
    return torch.randn(rows, 1, samples, generator=torch.Generator().manual_seed(1)) / 5


@torch.inference_mode()
def test_latents_are_torchs_within_rounding_and_codes_equal(codec: Codec) -> None:
    assert runs(codec)
    audio, native = noise(codec, 21, rows=2), NativeEncoder(codec)
    whole = torch.nn.functional.pad(audio, (0, 31))
    quantizer = codec.quantizer
    expected = quantizer.pre_module(quantizer.downsample(codec.encoder(whole)))
    for clip, latents in zip(whole, expected, strict=True):
        assert (native.latents(clip) - latents).norm() <= 3e-5 * latents.norm()
    assert torch.equal(native(audio), codec.encode(audio))


@torch.inference_mode()
def test_pieces_threads_vectors_and_earlier_clips_change_no_bit(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    audio = torch.nn.functional.pad(noise(codec, 21)[0], (0, 31))
    expected, best = NativeEncoder(codec).latents(audio), library.isa()
    for threads, frames in ((1, 1), (2, 2), (3, 5), (4, 8)):
        values = frames * codec.config.encoder_dim * codec.config.frame_samples
        monkeypatch.setattr(encoder, "PIECE_VALUES", values)
        library.set_threads(threads)
        library.use_isa("avx2" if frames % 2 else best)
        native = NativeEncoder(codec)
        native.latents(audio.flip(1))
        assert torch.equal(native.latents(audio), expected)
        native.release()
        assert torch.equal(native.latents(audio), expected)


@torch.inference_mode()
def test_the_bundled_voices_have_torchs_codes() -> None:
    codec = load_codec(ROOT / "assets/fry", "cpu")
    native = NativeEncoder(codec)
    for name in ("Clara", "Boris"):
        sound, rate = soundfile.read(ROOT / f"assets/fry/voices/{name}.wav", dtype="float32")
        audio = resample(torch.from_numpy(np.atleast_2d(sound.T)[0]), rate, codec.config.sample_rate)
        audio = audio[: 4 * codec.config.sample_rate]
        assert torch.equal(native(audio[None, None]), codec.encode(audio[None, None]))


def test_a_codec_of_other_sizes_is_encoded_in_torch(tmp_path: Path) -> None:
    write_codec(tmp_path, TinyCodec(encoder_dim=5, latent_dim=72), seed=1)
    assert not runs(load_codec(tmp_path, "cpu"))

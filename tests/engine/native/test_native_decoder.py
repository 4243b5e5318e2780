"""The native decoder: torch's sound within rounding, and the same bits for any chunks, threads and other streams."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from engine.checkpoint.speech_tokenizer import load_qwen_codec
from engine.codec import Codec, load_codec
from engine.native import library
from engine.native.decoder import NativeDecoder, runs
from tests.tiny import TinyCodec, write_codec
from tests.tiny_qwen_codec import write_tiny_speech_tokenizer

FRAMES = 23
SIZES = {
    "default": TinyCodec(decoder_dim=512),
    "channels in no sixteens": TinyCodec(decoder_dim=72),
    "projected transformers": TinyCodec(transformer_dim=48, n_head=3, head_dim=16),
    "other rates": TinyCodec(encoder_rates=(2, 2, 4), decoder_rates=(4, 2, 2), encoder_dim=8, downsample=(2,)),
    "short window": TinyCodec(num_codebooks=2, n_layer=1, window=3, decoder_dim=64),
}


@pytest.fixture(params=[*SIZES, "qwen"], scope="module")
def codec(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Codec:
    folder = tmp_path_factory.mktemp("codec")
    if request.param == "qwen":
        return load_qwen_codec(write_tiny_speech_tokenizer(folder), "cpu")
    write_codec(folder, SIZES[request.param], seed=5)
    return load_codec(folder, "cpu")


def codes(codec: Codec, seed: int = 0) -> np.ndarray:
    """From the full range of each table, and beyond the end of the residual ones."""
    config, rng = codec.config, np.random.default_rng(seed)
    residual = rng.integers(0, config.residual_codebook_size + 3, (config.residual_codebooks, FRAMES))
    return np.concatenate([rng.integers(0, config.semantic_codebook_size, (1, FRAMES)), residual]).astype(np.int16)


def streamed(decoder: NativeDecoder, codes: np.ndarray, lengths: list[int], slot: int = 0) -> np.ndarray:
    decoder.reset(slot)
    ends = np.cumsum(lengths)
    assert ends[-1] == codes.shape[1]
    return np.concatenate([decoder(slot, codes[:, end - n : end]) for end, n in zip(ends, lengths, strict=True)])


@torch.inference_mode()
def test_sound_is_torchs_within_rounding(codec: Codec) -> None:
    assert runs(codec)
    given = codes(codec)
    expected = codec.decode(torch.from_numpy(given.astype(np.int64))[None])[0, 0].numpy()
    sound = streamed(NativeDecoder(codec, 1), given, [FRAMES])
    assert sound.dtype == np.float32 and sound.shape == expected.shape
    noise = ((sound - expected) ** 2).mean() / (expected**2).mean()
    assert noise < 10**-7.5, "75 dB"


def test_chunks_threads_wider_vectors_and_other_streams_change_no_bit(codec: Codec) -> None:
    decoder, given, best = NativeDecoder(codec, 2), codes(codec), library.isa()
    whole = streamed(decoder, given, [FRAMES])
    for isa in filter(library.use_isa, ("avx2", best)):
        for threads, lengths in ((1, [1] * 23), (2, [3] * 7 + [2]), (4, [4] * 5 + [3]), (8, [8, 1, 13, 1])):
            library.set_threads(threads)
            assert np.array_equal(streamed(decoder, given, lengths), whole), isa
    other = codes(codec, 1)
    expected = streamed(decoder, other, [FRAMES])
    decoder.reset(0)
    decoder.reset(1)
    for at in range(0, 20, 2):
        a, b = decoder(0, given[:, at : at + 2]), decoder(1, other[:, at : at + 2])
        samples = slice(at * codec.config.frame_samples, (at + 2) * codec.config.frame_samples)
        assert np.array_equal(a, whole[samples]) and np.array_equal(b, expected[samples])


def test_a_processor_without_fused_products_agrees_within_rounding(codec: Codec) -> None:
    decoder, given = NativeDecoder(codec, 1), codes(codec)
    sound = streamed(decoder, given, [FRAMES])
    assert library.use_isa("base")
    base = streamed(decoder, given, [FRAMES])
    assert ((sound - base) ** 2).mean() < 10**-7.5 * (base**2).mean()


def test_a_codec_of_other_sizes_runs_in_torch(tmp_path: Path) -> None:
    write_codec(tmp_path, TinyCodec(latent_dim=72), seed=1)
    assert not runs(load_codec(tmp_path, "cpu"))

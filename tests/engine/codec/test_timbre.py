"""A codec with a timbre part: the vector sets the voice, codes do not change, and streams equal whole takes."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from engine.codec import Codec, StreamState, fingerprint, load_codec
from engine.codec.timbre import Timbre
from engine.runtime.codec_streams import PlainStreams
from tests.tiny import TinyCodec, add_timbre, write_codec

SIZES = TinyCodec(encoder_layers=0, num_codebooks=4)


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    write_codec(folder, SIZES, seed=3)
    return folder


@pytest.fixture(scope="module")
def folder(plain: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("timbre") / "codec"
    shutil.copytree(plain, copy)
    add_timbre(copy)
    return copy


@pytest.fixture(scope="module")
def codec(folder: Path) -> Codec:
    return load_codec(folder, "cpu")


def timbre_of(codec: Codec) -> Timbre:
    assert codec.timbre is not None
    return codec.timbre


def random_codes(frames: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(SIZES.codebook_size, (1, SIZES.num_codebooks, frames), generator=generator)


def voice(seed: int) -> Tensor:
    return torch.randn(1, 12, generator=torch.Generator().manual_seed(seed))


@torch.inference_mode()
def test_timbre_part_does_not_change_encoded_codes(plain: Path, codec: Codec) -> None:
    audio = 0.1 * torch.randn(1, 1, 5 * SIZES.frame_samples, generator=torch.Generator().manual_seed(1))
    assert torch.equal(codec.encode(audio), load_codec(plain, "cpu").encode(audio))


@torch.inference_mode()
def test_neutral_timbre_part_changes_no_sample(plain: Path, folder: Path) -> None:
    silent = load_codec(folder, "cpu")
    for parameter in timbre_of(silent).colouring.parameters():
        parameter.zero_()
    codes = random_codes(6)
    colours = timbre_of(silent).colours(voice(1))
    assert torch.equal(silent.decode(codes, None, colours), load_codec(plain, "cpu").decode(codes))


@torch.inference_mode()
def test_different_vectors_sound_different_and_none_uses_the_default(codec: Codec) -> None:
    codes, timbre = random_codes(6), timbre_of(codec)
    one, other = (codec.decode(codes, None, timbre.colours(voice(seed))) for seed in (1, 2))
    assert (one - other).abs().max() > 1e-3
    assert torch.equal(codec.decode(codes), codec.decode(codes, None, timbre.colours(timbre.default[None])))


@torch.inference_mode()
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1, 5, 3), (7, 5), (2, 10)])
def test_stream_with_timbre_equals_the_whole_take(codec: Codec, sizes: tuple[int, ...]) -> None:
    codes, colours = random_codes(12), timbre_of(codec).colours(voice(4))
    whole = codec.decode(codes, None, colours)
    state = StreamState(1)
    pieces = [codec.decode(piece, state, colours) for piece in codes.split(sizes, dim=2)]
    torch.testing.assert_close(torch.cat(pieces, 2), whole, atol=1e-5, rtol=0)


def test_concurrent_streams_keep_their_own_voices(folder: Path) -> None:
    codec = load_codec(folder, "cpu")
    codes = random_codes(4)[0].numpy().astype(np.int16)
    streams = PlainStreams(codec)
    voices = {name: voice(seed)[0].numpy() for seed, name in enumerate("ab")} | {"c": None}
    alone = {}
    for name, vector in voices.items():
        streams.open(name, vector)
        alone[name] = np.concatenate([streams.decode([(name, codes)])[0] for _ in range(2)])
        streams.close(name)
    for name, vector in voices.items():
        streams.open(name, vector)
    turns = [streams.decode([(name, codes) for name in voices]) for _ in range(2)]
    for index, name in enumerate(voices):
        assert np.array_equal(np.concatenate([turn[index] for turn in turns]), alone[name])
    assert not np.allclose(alone["a"], alone["b"])


@torch.inference_mode()
def test_timbre_vector_depends_on_the_voice_not_the_level(codec: Codec) -> None:
    encoder = timbre_of(codec).encoder
    generator = torch.Generator().manual_seed(0)
    sound = torch.randn(1, 30000, generator=generator)
    dull = torch.nn.functional.avg_pool1d(sound, 9, 1, 4)
    assert encoder(sound).shape == (1, 12)
    torch.testing.assert_close(encoder(0.05 * sound), encoder(0.4 * sound), atol=1e-2, rtol=0)
    assert (encoder(sound) - encoder(dull)).abs().max() > 0.05
    for odd in (torch.zeros(1, 5000), 0.1 * sound[:, :1]):  # silence, and a single sample
        assert encoder(odd).isfinite().all() and abs(float(encoder(odd).std(correction=0)) - 1) < 1e-2


def test_fingerprint_includes_the_timbre_encoder_but_not_its_projections(plain: Path, folder: Path) -> None:
    codec = load_codec(folder, "cpu")
    first = fingerprint(codec.config, codec.state_dict())
    assert first != fingerprint(load_codec(plain, "cpu").config, load_codec(plain, "cpu").state_dict())
    timbre_of(codec).colouring.weight.data += 1
    timbre_of(codec).default += 1
    assert fingerprint(codec.config, codec.state_dict()) == first
    timbre_of(codec).encoder.pooled.weight.data += 1
    assert fingerprint(codec.config, codec.state_dict()) != first


def test_fingerprint_of_a_codec_without_a_timbre_part_is_unchanged(plain: Path) -> None:
    assert "timbre" not in repr(load_codec(plain, "cpu").config)

"""The codec against fish-speech's own: bit-equal codes, audio within 1e-5, and streams equal to whole takes."""

from __future__ import annotations

import random
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import Tensor

from engine.codec import Codec, CodecConfig, StreamState, fingerprint, load_codec
from engine.codec import model as codec_model
from engine.engine_errors import CheckpointError
from tests import upstream
from tests.tiny import Nesting, TinyCodec, write_codec

TOLERANCE = 1e-5

SIZES = {
    "default": TinyCodec(),
    "projected transformers": TinyCodec(transformer_dim=48, n_head=3, head_dim=16),
    "no encoder transformer": TinyCodec(encoder_layers=0, num_codebooks=4),
    "other rates": TinyCodec(encoder_rates=(2, 2, 4), decoder_rates=(4, 2, 2), encoder_dim=8, downsample=(2,)),
    "one residual codebook": TinyCodec(num_codebooks=2, n_layer=1, window=3),
}
SHORT_FRAMES = TinyCodec(
    encoder_rates=(2, 2), decoder_rates=(2, 2), encoder_dim=16, decoder_dim=16, encoder_layers=0,
    n_layer=1, window=128, num_codebooks=3,
)  # fmt: skip


def digest(codec: Codec) -> str:
    return fingerprint(codec.config, codec.state_dict())


@pytest.fixture(params=SIZES, scope="module")
def sizes(request: pytest.FixtureRequest) -> TinyCodec:
    return SIZES[request.param]


@pytest.fixture(scope="module")
def folder(sizes: TinyCodec, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("codec")
    write_codec(path, sizes, seed=5)
    return path


@pytest.fixture(scope="module")
def codec(folder: Path) -> Codec:
    return load_codec(folder, "cpu")


@pytest.fixture(scope="module")
def reference(folder: Path) -> torch.nn.Module:
    """The same codec in fish-speech."""
    return upstream.load_codec(folder)


@pytest.fixture(scope="module")
def codec_of_products(folder: Path) -> Codec:
    """The same codec, in the form used by streams on a CPU."""
    loaded = load_codec(folder, "cpu")
    loaded.use_products()
    return loaded


def noise(samples: int, seed: int) -> Tensor:
    """Coloured noise with a loud and a quiet half, (samples,)."""
    generator = torch.Generator().manual_seed(seed)
    white = torch.randn(samples, generator=generator)
    coloured = torch.nn.functional.avg_pool1d(white[None, None], 5, 1, 2)[0, 0]
    return coloured * torch.where(torch.arange(samples) < samples // 2, 0.4, 0.05)


def random_codes(sizes: TinyCodec, frames: int, seed: int, rows: int = 1) -> Tensor:
    """Codes (rows, codebooks, frames) from the full range of each table."""
    generator = torch.Generator().manual_seed(seed)
    first = torch.randint(sizes.semantic_codebook_size, (rows, 1, frames), generator=generator)
    shape = (rows, sizes.num_codebooks - 1, frames)
    return torch.cat([first, torch.randint(sizes.codebook_size, shape, generator=generator)], dim=1)


@torch.inference_mode()
def test_codes_are_bit_equal_to_upstream(reference: torch.nn.Module, codec: Codec, sizes: TinyCodec) -> None:
    frame = sizes.frame_samples
    for seed, samples in enumerate((frame * 40, frame * 7 + 1, frame * 3 - 1, 5)):
        pcm = noise(samples, seed)
        frames = -(-samples // frame)
        expected = upstream.encode(reference, pcm)[:, :frames]  # upstream always pads to four hops
        actual = codec.encode(pcm[None, None])[0]
        assert actual.shape == (sizes.num_codebooks, frames)
        assert torch.equal(actual, expected)
    assert len(expected.unique()) > 1, "the codes must vary for this test to mean anything"


@torch.inference_mode()
def test_decoded_audio_matches_upstream(reference: torch.nn.Module, codec: Codec, sizes: TinyCodec) -> None:
    for seed, frames in enumerate((1, 2, 33, 70)):
        codes = random_codes(sizes, frames, seed)
        expected = upstream.decode(reference, codes[0])
        actual = codec.decode(codes)[0, 0]
        assert actual.shape == (frames * sizes.frame_samples,)
        assert (actual - expected).abs().max() <= TOLERANCE
    assert 0.02 < expected.std() < 0.7, "silence or clipping would hide errors"


@torch.inference_mode()
def test_codes_beyond_a_residual_codebook_use_its_last_entry(
    reference: torch.nn.Module, codec: Codec, sizes: TinyCodec
) -> None:
    codes = random_codes(sizes, 9, seed=3)
    codes[:, 1:, ::2] += sizes.codebook_size
    expected = upstream.decode(reference, codes[0])
    assert (codec.decode(codes)[0, 0] - expected).abs().max() <= TOLERANCE


@torch.inference_mode()
@pytest.mark.parametrize("seed", range(2))
def test_stream_split_anywhere_equals_the_whole_take(
    codec: Codec, codec_of_products: Codec, sizes: TinyCodec, seed: int
) -> None:
    draw = random.Random(seed)
    codes = random_codes(sizes, 50, seed)  # more than the windows of all layers together
    whole = codec.decode(codes)
    lengths = [1] * 6 + [30] + [1] * 14 if seed == 0 else []  # before and after the layers' windows are full
    while sum(lengths) < 50:
        lengths.append(min(draw.choice((1, 2, 3, 5, 8, 21)), 50 - sum(lengths)))
    for streaming in (codec, codec_of_products):
        state = StreamState(1)
        pieces = [streaming.decode(part, state) for part in codes.split(lengths, dim=2)]
        assert [piece.shape[2] for piece in pieces] == [length * sizes.frame_samples for length in lengths]
        assert (torch.cat(pieces, dim=2) - whole).abs().max() <= TOLERANCE


@torch.inference_mode()
def test_rows_of_a_stream_are_independent(codec: Codec, sizes: TinyCodec) -> None:
    codes = random_codes(sizes, 24, seed=8, rows=3)
    state = StreamState(3)
    together = torch.cat([codec.decode(codes[:, :, i : i + 4], state) for i in range(0, 24, 4)], dim=2)
    for row in range(3):
        assert (together[row] - codec.decode(codes[row : row + 1])[0]).abs().max() <= TOLERANCE


@torch.inference_mode()
def test_more_than_4096_frames_are_decoded_streamed_and_whole(tmp_path: Path) -> None:
    write_codec(tmp_path, SHORT_FRAMES, seed=2)
    codec, reference = load_codec(tmp_path, "cpu"), upstream.load_codec(tmp_path)
    frames = 4300
    upstream.extend_positions(reference, frames)
    codes = random_codes(SHORT_FRAMES, frames, seed=4)
    expected = upstream.decode(reference, codes[0])
    whole = codec.decode(codes)[0, 0]
    state = StreamState(1)
    parts = codes.split([1, 4000, 94, 1, 1, 3, 100, 100], dim=2)
    streamed = torch.cat([codec.decode(part, state)[0, 0] for part in parts])
    assert (whole - expected).abs().max() <= TOLERANCE
    assert (streamed - whole).abs().max() <= TOLERANCE


@torch.inference_mode()
def test_codes_of_a_prefix_equal_the_prefix_of_the_codes(codec: Codec, sizes: TinyCodec) -> None:
    pcm = noise(sizes.frame_samples * 12, seed=11)
    whole = codec.encode(pcm[None, None])
    part = codec.encode(pcm[None, None, : sizes.frame_samples * 7])
    assert torch.equal(part, whole[:, :, :7])


@torch.inference_mode()
def test_pieces_of_any_size_give_the_codes_of_the_whole_clip(
    codec: Codec, sizes: TinyCodec, monkeypatch: pytest.MonkeyPatch
) -> None:
    clips = torch.stack([noise(sizes.frame_samples * 37 + 5, seed) for seed in (1, 2)])[:, None]
    one_frame = len(clips) * codec.config.encoder_dim * sizes.frame_samples
    monkeypatch.setattr(codec_model, "PIECE_VALUES", 100 * one_frame)
    whole = codec.encode(clips)
    for frames in (1, 3, 16):
        monkeypatch.setattr(codec_model, "PIECE_VALUES", frames * one_frame)
        assert torch.equal(codec.encode(clips), whole), frames


def test_default_sizes_without_a_codec_yaml_are_s2_pros() -> None:
    """Names and shapes equal those of fish-speech's class under its own full-size configuration."""
    published = yaml.safe_load(files("fish_speech").joinpath("configs/modded_dac_vq.yaml").read_text())
    with torch.device("meta"):
        ours = Codec(CodecConfig()).state_dict()
        theirs = upstream.build_codec(published).state_dict()
    expected = folded_shapes(theirs)
    assert {key: tuple(value.shape) for key, value in ours.items()} == expected


def folded_shapes(state: dict[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """Names and shapes after weight norm is folded and the stale buffers are dropped."""
    shapes = {}
    for key, value in state.items():
        if key.endswith(("freqs_cis", "causal_mask", "original0", "weight_g")):
            continue
        name = key.replace(".parametrizations.weight.original1", ".weight").replace("weight_v", "weight")
        shapes[name] = tuple(value.shape)
    return shapes


@torch.inference_mode()
@pytest.mark.parametrize("nesting", ["generator", "state_dict", "prefix"])
def test_every_nesting_of_codec_pth_loads_the_same(tmp_path: Path, nesting: Nesting) -> None:
    write_codec(tmp_path / "a", SHORT_FRAMES)
    write_codec(tmp_path / "b", SHORT_FRAMES, nesting=nesting)
    codes = random_codes(SHORT_FRAMES, 20, seed=1)
    plain, nested = load_codec(tmp_path / "a", "cpu"), load_codec(tmp_path / "b", "cpu")
    assert torch.equal(plain.decode(codes), nested.decode(codes))
    assert digest(plain) == digest(nested)


KERNEL = "decoder.model.0.conv.parametrizations.weight.original1"
BIAS = "encoder.block.0.conv.bias"


def change(folder: Path, key: str, value: Tensor | None) -> None:
    """Rewrite one tensor of codec.pth; None removes it."""
    state: dict[str, Any] = torch.load(folder / "codec.pth", weights_only=True)
    state.pop(key, None)
    if value is not None:
        state[key] = value
    torch.save(state, folder / "codec.pth")


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        (BIAS, None, (BIAS, "missing", "[16]")),
        (BIAS, torch.zeros(17), (BIAS, "[16]", "[17]")),
        ("decoder.model.9.bias", torch.zeros(3), ("decoder.model.9.bias", "unexpected", "[3]")),
        (KERNEL, None, ("decoder.model.0.conv", "original1")),
    ],
)
def test_wrong_tensor_is_named_with_the_expected_shape(
    tmp_path: Path, key: str, value: Tensor | None, words: tuple[str, ...]
) -> None:
    write_codec(tmp_path, SHORT_FRAMES)
    change(tmp_path, key, value)
    with pytest.raises(CheckpointError) as caught:
        load_codec(tmp_path, "cpu")
    for word in ("codec.pth", *words):
        assert word in str(caught.value)


def test_missing_or_truncated_codec_pth_is_named(tmp_path: Path) -> None:
    write_codec(tmp_path, SHORT_FRAMES)
    path = tmp_path / "codec.pth"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(CheckpointError, match=r"codec\.pth"):
        load_codec(tmp_path, "cpu")
    path.unlink()
    with pytest.raises(CheckpointError, match=r"codec\.pth is missing"):
        load_codec(tmp_path, "cpu")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x80\x02]q\x00."])
def test_codec_pth_with_invalid_contents_is_refused(tmp_path: Path, content: bytes) -> None:
    write_codec(tmp_path, SHORT_FRAMES)
    (tmp_path / "codec.pth").write_bytes(content)
    with pytest.raises(CheckpointError, match=r"codec\.pth"):
        load_codec(tmp_path, "cpu")


def test_a_key_missing_in_codec_yaml_is_named(tmp_path: Path) -> None:
    write_codec(tmp_path, SHORT_FRAMES)
    tree = yaml.safe_load((tmp_path / "codec.yaml").read_text())
    del tree["quantizer"]["codebook_dim"]
    (tmp_path / "codec.yaml").write_text(yaml.safe_dump(tree))
    with pytest.raises(CheckpointError, match="codebook_dim"):
        load_codec(tmp_path, "cpu")


def test_fingerprint_depends_on_everything_that_affects_codes(tmp_path: Path) -> None:
    write_codec(tmp_path, SHORT_FRAMES)
    before = digest(load_codec(tmp_path, "cpu"))
    change(tmp_path, "decoder.model.0.conv.bias", torch.ones(16))
    assert digest(load_codec(tmp_path, "cpu")) == before
    change(tmp_path, BIAS, torch.ones(16))
    assert digest(load_codec(tmp_path, "cpu")) != before

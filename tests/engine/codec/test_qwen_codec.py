"""Qwen3-TTS's codec against values recorded from qwen-tts: sound, codes, mel, vector; streams equal to whole takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from engine.checkpoint import Source
from engine.checkpoint.families import Family
from engine.checkpoint.speech_tokenizer import check_qwen_codec, load_qwen_codec, load_voice_encoder
from engine.codec import ONLY_DECODES, StreamState, fingerprint, part_on
from engine.codec.qwen_codec import QwenCodec, QwenCodecConfig
from engine.codec.voice_vector import VoiceEncoder, VoiceEncoderConfig, log_mel
from engine.engine_errors import CheckpointError
from engine.model.dual_ar import only_shapes
from tests.engine.codec.qwen_signals import EXPECTED, SAMPLES, codes, sound
from tests.tiny_qwen_codec import (
    SPEAKER_ENCODER,
    speaker_encoder_tensors,
    speech_tokenizer_config,
    speech_tokenizer_tensors,
    write_tiny_speech_tokenizer,
)

FRAME = 1920


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads(EXPECTED.read_text())
    return recorded


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_speech_tokenizer(tmp_path_factory.mktemp("qwen") / "speech_tokenizer")


@pytest.fixture(scope="module")
def codec(folder: Path) -> QwenCodec:
    return load_qwen_codec(folder, "cpu")


def streamed(codec: QwenCodec, codes: Tensor, sizes: list[int]) -> Tensor:
    state = StreamState(1)
    return torch.cat([codec.decode(part[None], state)[0, 0] for part in codes.split(sizes, 1)])


@torch.inference_mode()
def test_decoded_sound_is_upstreams(codec: QwenCodec, expected: dict[str, Any]) -> None:
    samples = codec.decode(codes()[None])[0, 0]
    recorded = torch.tensor(expected["samples"])
    assert len(samples) == 40 * FRAME
    assert (samples[SAMPLES] - recorded).abs().max() <= 2e-6
    assert 0.02 < recorded.std() < 0.7 and (recorded.abs() == 1).float().mean() < 0.05, "clipping would hide errors"


@torch.inference_mode()
def test_stream_in_pieces_of_any_size_is_the_whole(folder: Path, codec: QwenCodec) -> None:
    """More than 600 frames, which is more than the windows of all layers together."""
    long = codes(620)
    whole = codec.decode(long[None])[0, 0]
    by_products = load_qwen_codec(folder, "cpu")
    by_products.use_products()
    sizes = [size for size in range(1, 14) for _ in range(5)]
    sizes.append(long.shape[1] - sum(sizes))
    for streaming in (codec, by_products):
        assert (streamed(streaming, long, sizes) - whole).abs().max() <= 2e-6


@torch.inference_mode()
def test_codes_are_upstreams(codec: QwenCodec, expected: dict[str, Any]) -> None:
    clip = sound()
    found, recorded = codec.encode(clip[None, None])[0], torch.tensor(expected["codes"])
    whole_frames = len(clip) // FRAME
    assert found.shape == recorded.shape == (16, whole_frames + 1)
    assert torch.equal(found[:, :whole_frames], recorded[:, :whole_frames])  # of the last, upstream pads activations
    assert len(recorded[0].unique()) > 5, "the codes must vary for this test to mean anything"


@torch.inference_mode()
def test_silence_behind_a_clip_changes_no_code(codec: QwenCodec) -> None:
    clip = sound()
    alone = codec.encode(clip[None, None])
    longer = codec.encode(torch.nn.functional.pad(clip, (0, 5 * FRAME + 3))[None, None])
    assert torch.equal(longer[:, :, : alone.shape[2]], alone)
    both = codec.encode(torch.stack([clip, clip.flip(0)])[:, None])
    assert torch.equal(both[:1], alone)


@torch.inference_mode()
def test_voice_vector_is_upstreams(tmp_path: Path, expected: dict[str, Any]) -> None:
    save_file(speaker_encoder_tensors(), tmp_path / "model.safetensors")
    encoder = load_voice_encoder(tmp_path, {"speaker_encoder_config": SPEAKER_ENCODER}, "cpu")
    assert encoder is not None
    vector, recorded = encoder(sound()), torch.tensor(expected["vector"])
    assert vector.dtype == torch.float32 and vector.shape == recorded.shape
    assert (vector - recorded).abs().max() <= 1e-5
    mel = log_mel(sound(), 128)[::9, ::25].flatten()
    assert (mel - torch.tensor(expected["mel"])).abs().max() <= 1e-4
    assert encoder(sound(700)).isfinite().all()


def test_voice_encoder_may_be_missing_and_must_be_whole(tmp_path: Path) -> None:
    tensors = speaker_encoder_tensors()
    save_file({"talker.x": torch.zeros(1)}, tmp_path / "model.safetensors")
    assert load_voice_encoder(tmp_path, {}, "cpu") is None
    del tensors["speaker_encoder.fc.bias"]
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"speaker_encoder\.fc\.bias: missing, expected \[24\]"):
        load_voice_encoder(tmp_path, {"speaker_encoder_config": SPEAKER_ENCODER}, "cpu")
    with pytest.raises(CheckpointError, match="speaker_encoder_config"):
        load_voice_encoder(tmp_path, {"speaker_encoder_config": {**SPEAKER_ENCODER, "sample_rate": 16000}}, "cpu")


def test_published_sizes_are_the_defaults() -> None:
    """170,557,441 values in the published file, with those that only Mimi's decoder would use."""
    with only_shapes():
        codec, voice = QwenCodec(QwenCodecConfig()), VoiceEncoder(VoiceEncoderConfig())
    assert codec.config.frame_samples == FRAME and codec.config.num_codebooks == 16
    assert sum(value.numel() for value in voice.state_dict().values()) == 8_854_336
    counted = sum(p.numel() for name, p in codec.named_parameters() if not name.endswith(".codebook.weight"))
    books, unused = 2048 * 257, 2048 * 257 + 1
    folded = 16 * 2048 + 16 * books + 2 * 512 * 256 * 2 + 16 * unused + 2 * 512 * 256 + 16
    assert counted + folded == 170_557_441


@torch.inference_mode()
def test_a_checkpoint_of_the_family_has_both(tmp_path: Path) -> None:
    write_tiny_speech_tokenizer(tmp_path / "speech_tokenizer")
    (tmp_path / "config.json").write_text(json.dumps({"speaker_encoder_config": SPEAKER_ENCODER}))
    save_file(speaker_encoder_tensors(), tmp_path / "model.safetensors")
    source = Source(tmp_path)
    source.family = Family("Qwen", "qwen3_tts", lambda *_: pytest.fail(), codec_folder="speech_tokenizer")
    source.check_codec()
    codec, voice = source.codec(), source.voice_encoder()
    assert isinstance(codec, QwenCodec) and codec.config == source.codec_config and voice is not None
    digest = fingerprint(codec.config, codec.state_dict())
    part = part_on(codec, torch.device("cpu"), without=ONLY_DECODES)
    assert torch.equal(part.encode(sound()[None, None]), codec.encode(sound()[None, None]))
    state = codec.state_dict()
    state["decoder.model.0.conv.bias"] += 1
    assert fingerprint(codec.config, state) == digest
    state["quantizer.downsample.weight"] += 1
    assert fingerprint(codec.config, state) != digest


def broken(folder: Path, **changes: Any) -> None:
    tree = json.loads((folder / "config.json").read_text())
    for key, value in changes.items():
        part = tree["decoder_config"] if key in tree["decoder_config"] else tree
        part[key] = value
    (folder / "config.json").write_text(json.dumps(tree))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"model_type": "qwen3_tts_tokenizer_25hz"}, "only the 12.5 Hz tokenizer"),
        ({"upsample_rates": [8, 5, 4, 4]}, "1920 samples"),
        ({"input_sample_rate": 16000}, "different sample rates"),
        ({"sliding_window": 0}, "sliding_window"),
        ({"head_dim": 7}, "head_dim is 7, expected an even number"),
        ({"num_quantizers": 5000}, "num_quantizers is 5000"),
        ({"upsample_rates": 1920}, "not iterable"),
        ({"codebook_size": 32}, "one of 64 codes where it is encoded"),
        ({"decoder_config": None}, "decoder_config"),
        ({"latent_dim": 50}, "decoder.upsample.0.1.dwconv.conv.bias: expected [50], found [48]"),
    ],
)
def test_other_configs_are_refused_in_a_sentence(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    broken(write_tiny_speech_tokenizer(tmp_path), **changes)
    for act in (check_qwen_codec, lambda folder: load_qwen_codec(folder, "cpu")):
        with pytest.raises(CheckpointError) as caught:
            act(tmp_path)
        assert words in str(caught.value)


def test_files_that_are_cut_or_lack_tensors_are_refused(tmp_path: Path) -> None:
    write_tiny_speech_tokenizer(tmp_path)
    weights = tmp_path / "model.safetensors"
    content, tensors = weights.read_bytes(), speech_tokenizer_tensors(speech_tokenizer_config())
    weights.write_bytes(content[: len(content) // 2])
    with pytest.raises(CheckpointError, match="cut short"):
        load_qwen_codec(tmp_path, "cpu")
    del tensors["decoder.quantizer.rvq_rest.vq.layers.3._codebook.cluster_usage"]
    save_file({**tensors, "decoder.extra": torch.zeros(3)}, weights)
    with pytest.raises(CheckpointError) as caught:
        check_qwen_codec(tmp_path)
    for words in ("layers.3._codebook.cluster_usage: missing, expected [64]", "decoder.extra: unexpected [3]"):
        assert words in str(caught.value)
    (tmp_path / "config.json").unlink()
    with pytest.raises(CheckpointError, match=r"config\.json is missing"):
        load_qwen_codec(tmp_path, "cpu")

"""Records what qwen-tts computes with the tiny codec: python -m tests.engine.codec.record_qwen

Needs qwen-tts 0.1.1 (installed with --no-deps), transformers 4.57.3 and librosa, which the tests do not.
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import types
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from tests.engine.codec.qwen_signals import EXPECTED, SAMPLES, codes, sound
from tests.tiny_qwen_codec import SPEAKER_ENCODER, speaker_encoder_tensors, write_tiny_speech_tokenizer


def upstream(module: str) -> Any:
    """A module of qwen-tts without its package's own imports, which need more than these parts do."""
    root = Path(str(distribution("qwen-tts").locate_file("qwen_tts")))
    for name in ("", ".core", ".core.models", ".core.tokenizer_12hz", ".inference"):
        package = types.ModuleType(f"qwen_tts{name}")
        package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
        sys.modules.setdefault(package.__name__, package)
    wrapper: Any = types.ModuleType("qwen_tts.inference.qwen3_tts_tokenizer")
    wrapper.Qwen3TTSTokenizer = object
    sys.modules.setdefault(wrapper.__name__, wrapper)
    return importlib.import_module(f"qwen_tts.core.{module}")


def loaded(model: Any, tensors: dict[str, Tensor]) -> Any:
    model.load_state_dict(tensors, strict=True)
    return model.eval()


def encoded(codec: Any, clip: Tensor) -> Tensor:
    found: Tensor = codec.encode(clip[None], torch.ones(1, len(clip), dtype=torch.long)).audio_codes[0].t()
    return found


@torch.inference_mode()
def main() -> None:
    configs = upstream("tokenizer_12hz.configuration_qwen3_tts_tokenizer_v2")
    models = upstream("tokenizer_12hz.modeling_qwen3_tts_tokenizer_v2")
    mimi: Any = importlib.import_module("transformers.models.mimi.modeling_mimi")
    masks: Any = importlib.import_module("transformers.masking_utils")
    talker, settings = upstream("models.modeling_qwen3_tts"), upstream("models.configuration_qwen3_tts")
    with tempfile.TemporaryDirectory() as temporary:
        folder = write_tiny_speech_tokenizer(Path(temporary))
        config = configs.Qwen3TTSTokenizerV2Config(**json.loads((folder / "config.json").read_text()))
        codec = loaded(models.Qwen3TTSTokenizerV2Model(config), load_file(folder / "model.safetensors"))
    samples = codec.decoder(codes()[None])[0, 0]
    clip, full_mask = sound(), mimi.create_causal_mask
    # Only its flash attention keeps to the config's sliding_window, which the weights were trained with.
    mimi.create_causal_mask = masks.create_sliding_window_causal_mask
    found = encoded(codec, clip)
    mimi.create_causal_mask = full_mask
    assert (found != encoded(codec, clip)).any(), "the window must matter"
    tensors = {key.removeprefix("speaker_encoder."): value for key, value in speaker_encoder_tensors().items()}
    voice = loaded(talker.Qwen3TTSSpeakerEncoder(settings.Qwen3TTSSpeakerEncoderConfig(**SPEAKER_ENCODER)), tensors)
    mel = talker.mel_spectrogram(clip[None], 1024, 128, 24000, 256, 1024, 0, 12000)
    expected = {
        "samples": [round(value, 8) for value in samples[SAMPLES].tolist()],
        "codes": found.tolist(),
        "mel": [round(value, 6) for value in mel[0, ::9, ::25].flatten().tolist()],
        "vector": [round(value, 7) for value in voice(mel.transpose(1, 2))[0].tolist()],
    }
    EXPECTED.write_text(json.dumps(expected, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()

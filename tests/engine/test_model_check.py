"""The model check: every family, compared with fish-speech's code and with fewer bits; silent and failed takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine import AudioChunk, EngineConfig, ModelReport, Timing, check_model, model_check
from engine.checkpoint import Checkpoint, load
from engine.model_check import _measure
from tests.engine.checkpoint.layouts import AUDIO8, write_dual_ar, write_flat
from tests.tiny import TinyCodec

CODEC = TinyCodec(n_layer=1, decoder_rates=(32, 16), num_codebooks=4)
RATE = 44_100


def check(folder: Path, *texts: str) -> ModelReport:
    lines: list[str] = []
    report = check_model(EngineConfig(str(folder), "cpu", max_rows=1), texts, lines.append)
    assert lines[0] == "loading" and lines[-1] == "comparing logits"
    return report


@pytest.mark.parametrize("family", ["S1", "S2", "Audio8"])
def test_model_matches_fish_speech_and_nearly_matches_its_quantised_form(tmp_path: Path, family: str) -> None:
    if family == "S1":
        write_dual_ar(tmp_path, CODEC)
    else:
        write_flat(tmp_path, CODEC, **(AUDIO8 if family == "Audio8" else {}))
    report = check(tmp_path, "A boat.", "Back.")  # random weights never end a take, which is as long as its text allows
    assert report.info.family == family and len(report.takes) == 2
    same = report.fish_speech
    assert same is not None and report.greedy_frames_kept == 1.0
    assert same.semantic_kept == same.residual_kept == 1.0
    assert same.semantic_kl < 1e-6 and same.residual_kl < 1e-6
    eight, six = report.by_weights["int8"], report.by_weights["int6"]
    assert 0 < eight.semantic_kl < six.semantic_kl < 1


def measure(pcm: np.ndarray, text: str, reason: str = "stop") -> tuple[str, float, float]:
    chunk = AudioChunk(pcm, np.zeros((4, 1), np.int16), 0, Timing(0, 0, 0), reason)  # type: ignore[arg-type]
    take = _measure(text, [chunk], RATE, work_seconds=0.5 * len(pcm) / RATE)
    assert take.real_time_factor == pytest.approx(0.5)
    return take.end, take.level_db, take.longest_silence


def test_level_silence_and_ends_are_measured() -> None:
    tone = (0.1 * np.sin(np.arange(RATE) * 0.1)).astype(np.float32)
    quiet = np.zeros(RATE // 2, np.float32)
    end, level, silence = measure(np.concatenate([tone, quiet, tone]), "Twenty letters or so.")
    assert end == "ok" and level == pytest.approx(-23.0, abs=0.2) and silence == pytest.approx(0.5, abs=0.06)
    assert measure(tone, "word " * 30)[0] == "early"
    assert measure(tone, "word", "length")[0] == "missing"
    assert measure(quiet, "word")[1] == float("-inf")


def test_model_too_large_for_the_gpu_is_compared_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_flat(tmp_path, CODEC)
    devices: list[str] = []

    def load_once_more(path: Path, device: torch.device, *rest: Any) -> Checkpoint:
        devices.append(device.type)
        if len(devices) == 1:
            raise torch.OutOfMemoryError
        return load(path, device, *rest)

    monkeypatch.setattr(model_check, "load", load_once_more)
    lines: list[str] = []
    report = check_model(EngineConfig(str(tmp_path), "cpu", max_rows=1), ["Again."], lines.append)
    assert report.by_weights and len(devices) == 2 and "on the CPU" in lines[-1]

"""The plain path needs only float32, bfloat16 and integers on a device; AMD GPUs are not mistaken for NVIDIA's.

Runs on a CPU that refuses the types that other devices may lack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from engine import EngineConfig, Sampling, Utterance
from engine.checkpoint import load
from engine.config import Weights
from engine.model import layers
from engine.model.prompt import build_prompt
from engine.model.sampling import draw
from engine.runtime.codec_streams import PlainStreams
from engine.runtime.row import Row
from engine.runtime.runner import Runner
from engine.runtime.setup import _missing_kernels
from tests.tiny import write_checkpoint
from tests.tiny_qwen import write_qwen

CPU = torch.device("cpu")
LACKING = torch.float64, torch.complex64, torch.complex128


class LimitedDevice(TorchDispatchMode):
    """Refuses number types that MPS and some of Intel's GPUs lack."""

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.dtype in LACKING:
                raise TypeError(f"{func} makes {leaf.dtype}")
        return result


@pytest.mark.parametrize("weights", ["bf16", "int8", "int6"])
@pytest.mark.parametrize("write", [write_checkpoint, write_qwen])
@torch.inference_mode()
def test_take_is_generated_and_decoded_without_float64_or_complex_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Callable[[Path], Path], weights: Weights
) -> None:
    checkpoint = load(write(tmp_path), CPU, CPU, torch.bfloat16, weights=weights)

    def take() -> tuple[np.ndarray, np.ndarray]:
        prompt = build_prompt(Utterance("Hello there."), checkpoint.tokenizer, checkpoint.config)
        row, runner = Row(prompt, Sampling(seed=5), 9, print), Runner(checkpoint.model, 1, 256)
        row.slot = 0
        while not runner.prefill([row]):
            pass
        codes = np.stack([codes for _ in range(3) for _, codes, _ in runner.launch((row,)).read()], 1)
        streams = PlainStreams(checkpoint.codec, "bfloat16")
        streams.open(0)
        return codes, streams.decode([(0, codes)])[0]

    codes, sound = take()
    monkeypatch.setattr(layers, "has_complex", lambda device: False)
    with LimitedDevice():
        limited_codes, limited_sound = take()
        checkpoint.codec.encode(torch.zeros(1, 1, 5000))
    assert np.array_equal(codes, limited_codes) and np.array_equal(sound, limited_sound)


def test_equal_logits_are_ordered_by_index_for_any_number_of_candidates() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0, 3.0, 3.0, -1.0, 2.0]]).repeat(1, 50)
    how = torch.ones(1), torch.ones(1), torch.tensor([5])
    noise = torch.full((1, 40), 1.0)
    for ranks in (5, 9, 40):
        for best in range(5):
            few = noise[:, :ranks].clone()
            few[0, best] = 1e-3
            assert draw(logits, *how, few).item() == [1, 3, 4, 8, 10][best]


def test_amd_gpus_use_plain_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "hip", "6.4")
    assert "AMD" in str(_missing_kernels(torch.device("cuda"), EngineConfig("m")))

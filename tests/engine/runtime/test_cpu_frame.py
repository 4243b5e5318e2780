"""The CPU's own frame against the plain one: the same codes for any rows, and the same draws in numpy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from engine import Sampling, Utterance
from engine.checkpoint import load
from engine.model import host_sampling, sampling
from engine.model.draw_rules import HostDraw, Penalised, RepetitionAware
from engine.model.dual_ar import Causal
from engine.model.host_sampling import NOISE_FRAMES
from engine.model.kv_cache import KVCache
from engine.model.prompt import build_prompt
from engine.model.stored_weight import QuantisedLinear, weight_of
from engine.native import transformer
from engine.runtime.cpu_frame import CpuFrame, CpuTransformer, SlotKeys
from engine.runtime.plain_frame import PlainFrame
from engine.runtime.row import Row
from engine.runtime.runner import Runner
from tests.engine.checkpoint.layouts import AUDIO8, write_dual_ar, write_flat
from tests.tiny import TinyCodec, TinyModel, write_checkpoint

CPU = torch.device("cpu")
CHECKPOINTS = {
    "default": (TinyModel(), TinyCodec()),
    "fast AR of another width, untied": (
        TinyModel(fast_dim=48, fast_n_head=3, fast_n_local_heads=1, n_local_heads=1, tie_word_embeddings=False),
        TinyCodec(num_codebooks=4),
    ),
    "two codebooks, all key heads": (TinyModel(n_local_heads=4, n_layer=5), TinyCodec(num_codebooks=2)),
}
COUNT = NOISE_FRAMES + 3
"""Frames of a take."""
HOW = (
    Sampling(temperature=0.0),
    Sampling(seed=3),
    Sampling(seed=2**63 - 1, temperature=1.5, top_p=1.0, top_k=200),
    Sampling(seed=7, temperature=1.0, top_p=0.5, top_k=2),
)


@pytest.fixture(params=[True, False], ids=["native", "torch"])
def is_native(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether frames use the native library; otherwise as if it could not be loaded."""
    if not request.param:
        monkeypatch.setattr(transformer, "library", lambda: None)
    return bool(request.param)


def frames(folder: Path, count: int, plain: bool, is_native: bool = True) -> tuple[Tensor, list[int]]:
    """Frames of four rows with prompts of different lengths, two of which end early, and operators per frame."""
    checkpoint = load(folder, CPU, CPU, torch.float32)
    runner = Runner(checkpoint.model, len(HOW), 512)
    assert isinstance(runner._frame, CpuFrame)
    assert plain or runner._frame.is_native == is_native
    if plain:
        runner._frame = PlainFrame(checkpoint.model, runner._cache, runner._slots)
    rows = []
    for slot, how in enumerate(HOW):
        prompt = build_prompt(Utterance("word " * (3 * slot + 1), (), how), checkpoint.tokenizer, checkpoint.config)
        rows.append(Row(prompt, how, count, lambda chunk: None, slot=slot))
    while any(row.position < len(row.prompt) - 1 for row in rows):
        runner.prefill([row for row in rows if row.position < len(row.prompt) - 1])
    drawn = torch.full((count, len(rows), checkpoint.config.num_codebooks + 1), -1, dtype=torch.int16)
    operators = []
    for index in range(count):
        speaking = tuple(rows[: 4 if index < count // 2 else 2])
        drawn[index, : len(speaking)], operated = count_operators(lambda: runner.launch(speaking)._codes)  # noqa: B023
        operators.append(operated)
    return drawn, operators


def count_operators(work: Callable[[], Tensor]) -> tuple[Tensor, int]:
    with Counter() as counter:
        result = work()
    return result, counter.count


class Counter(TorchDispatchMode):
    """Counts operators."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += 1
        return func(*args, **(kwargs or {}))


@pytest.fixture(params=[*CHECKPOINTS, "S1", "Audio8"], scope="module")
def plain_frames(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Tensor, list[int]]:
    """A checkpoint, and its plain `frames`."""
    folder, name = tmp_path_factory.mktemp("plain"), request.param
    if name == "S1":
        write_dual_ar(folder, TinyCodec(num_codebooks=4))
    elif name == "Audio8":
        write_flat(folder, TinyCodec(num_codebooks=4), **AUDIO8)
    else:
        write_checkpoint(folder, *CHECKPOINTS[name], seed=12)
    return folder, *frames(folder, COUNT, plain=True)


def test_cpu_frames_equal_the_plain_ones_with_less_than_half_the_operators(
    plain_frames: tuple[Path, Tensor, list[int]], is_native: bool
) -> None:
    folder, expected, before = plain_frames
    actual, after = frames(folder, COUNT, plain=False, is_native=is_native)
    assert torch.equal(actual, expected)
    assert len(actual[:, 1, 0].unique()) > 8, "the takes must vary for this test to mean anything"
    assert 2 * sum(after) < sum(before)


@torch.inference_mode()
def test_int8_steps_match_the_dequantised_model(tmp_path: Path) -> None:
    write_flat(tmp_path, TinyCodec(num_codebooks=4), **AUDIO8)
    plain, held = (load(tmp_path, CPU, CPU, torch.float32, weights=kind).model.slow for kind in ("bf16", "int8"))
    for name, part in held.named_modules():
        if isinstance(part, QuantisedLinear):
            plain.get_submodule(name).weight.data = weight_of(part).dequantised(torch.float32)
    rows, steps = 3, 12
    x = torch.randn(rows, steps, plain.sizes.dim, generator=torch.Generator().manual_seed(4))
    expected = plain(x, torch.arange(steps)[None], Causal())
    cache = KVCache(plain.sizes, rows, steps, CPU, torch.float32)
    run, kept, slots = CpuTransformer(held, steps), SlotKeys(cache, rows, steps), list(range(rows))
    for step in range(steps):
        actual = run(x[:, step].clone(), run.angles[[step]], kept.steps(slots, [step] * rows))
        assert (actual - expected[:, step]).norm() <= 0.01 * expected[:, step].norm()


@torch.inference_mode()
def test_heads_of_an_int8_model_are_read_in_eight_bits(tmp_path: Path, is_native: bool) -> None:
    write_flat(tmp_path, TinyCodec(num_codebooks=4), **AUDIO8, fast_intermediate_size=96)
    model = load(tmp_path, CPU, CPU, torch.float32, weights="int8").model
    runner = Runner(model, 3, 256)
    assert isinstance(runner._frame, CpuFrame) and runner._frame.is_native == is_native
    x = torch.randn(3, model.config.slow.dim, generator=torch.Generator().manual_seed(5))
    normed, logits = runner._frame._slow(x, [0, 1, 2], [0, 0, 0])
    exact = normed @ model.head().t()
    assert not torch.equal(logits, exact)
    assert (logits - exact).norm() <= 0.01 * exact.norm()
    runner._frame.read(0, 1, torch.randn(2, model.config.slow.dim))  # as when a take is resumed: without logits


@pytest.mark.parametrize("size", [64, 300, 1021])
@pytest.mark.parametrize("draw", [host_sampling.draw, transformer.draw], ids=["numpy", "native"])
def test_samples_are_torchs_even_for_equal_logits(draw: HostDraw, size: int) -> None:
    rng = np.random.default_rng(size)
    for trial in range(90):
        logits = (rng.standard_normal(size) * rng.choice([0.5, 3, 10])).astype(np.float32)
        if trial % 3 == 0:
            logits = logits.round()  # many are equal
        temperature, top_p = np.float32(rng.choice([0, 0.05, 0.8, 2])), np.float32(rng.choice([0, 0.3, 0.9, 1]))
        top_k = int(rng.choice([1, 2, 30, 64, 2000]))
        recent = rng.choice(np.argsort(-logits)[:12], sampling.REPEAT_WINDOW)
        seed, frame = torch.tensor([trial]), torch.tensor([5])
        noise = sampling.exponential_noise(seed, frame, 2, top_k)
        torch_how = torch.tensor([temperature]), torch.tensor([top_p]), torch.tensor([top_k])
        given = torch.from_numpy(logits)[None]
        expected = sampling.draw(given, *torch_how, noise[:, 0])
        assert draw(logits, temperature, top_p, top_k, noise[0, 0].numpy()) == int(expected)
        how, said = (temperature, top_p, top_k), np.bincount(recent, minlength=size)
        for rule, memory, number in (
            (RepetitionAware(stop=size - 1), recent, 5),
            (Penalised(stop=size - 1), said, 5),
            (Penalised(stop=int(logits.argmax())), said, 1),
        ):
            spoken = rule.main(given, torch_how, noise, torch.from_numpy(memory)[None], torch.tensor([number]))
            assert rule.main_on_host(draw, logits, how, noise[0].numpy(), memory, number) == int(spoken)


def test_nan_logits_still_yield_a_valid_token() -> None:
    noise = np.ones(30, np.float32)
    for logits in (np.full(64, np.nan, np.float32), np.array([1.0, np.nan, 2.0] * 20, np.float32)):
        for draw in (host_sampling.draw, transformer.draw):
            assert 0 <= draw(logits, np.float32(0.8), np.float32(0.9), 30, noise) < len(logits)

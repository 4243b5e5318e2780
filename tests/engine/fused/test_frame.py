"""The fused frame, one graph on a GPU, draws the same as plain torch; on a CPU it runs under Triton's interpreter."""

from __future__ import annotations

import importlib
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engine.checkpoint import Checkpoint, load
from engine.config import Weights
from engine.model.dual_ar import DualAR
from engine.model.prompt import PrefillChunk, build_prompt
from engine.runtime.graphs import PrefillGraphs
from engine.runtime.plain_frame import PlainFrame
from engine.runtime.row import Row
from engine.runtime.runner import Runner
from engine.types import Reference, Sampling, Utterance
from tests.engine.checkpoint.layouts import AUDIO8, write_dual_ar, write_flat
from tests.engine.checkpoint.qwen_cases import CLIP_CODES, vector
from tests.engine.kernels.interpreter import DEVICE
from tests.tiny import TinyCodec, TinyModel, write_checkpoint
from tests.tiny_qwen import write_qwen

fused = pytest.importorskip("engine.fused.frame")
pytestmark = pytest.mark.usefixtures("wide_tiles")

TEXTS = (
    ("Hello there.", Sampling(seed=5)),
    ("A second row, longer than the first one.", Sampling(temperature=0.0, seed=1)),
    ("Third", Sampling(temperature=1.2, top_p=0.95, top_k=50, seed=9)),
)

ALL, FIRST, OTHERS = slice(0, 3), slice(0, 1), slice(1, 3)


def round_to_twelve_bits(model: DualAR) -> None:
    """Round the plain model's weights to values that twelve bits can represent."""
    for weight in model.parameters():
        if weight.ndim == 2:
            weight.data = fused.kernels.Packed12.of(weight).unpacked()


@pytest.mark.parametrize(
    ("fast_dim", "kernel_attention", "batch_invariant", "weights", "turns"),
    [  # the number of rows decides which kernels run
        (64, True, False, "bf16", (FIRST, OTHERS)),
        (64, True, True, "bf16", (ALL, FIRST)),
        (32, True, False, "int8", (OTHERS, FIRST)),
        (32, True, True, "int8", (ALL, FIRST)),
        (32, True, False, "int6", (OTHERS, FIRST)),
        (32, False, False, "bf16", (ALL, ALL)),
    ],
)
@torch.inference_mode()
def test_fused_frame_draws_the_same_codes_as_the_plain_one(
    tmp_path: Path,
    fast_dim: int,
    kernel_attention: bool,
    batch_invariant: bool,
    weights: Weights,
    turns: tuple[slice, ...],
) -> None:
    sizes = TinyModel(fast_dim=fast_dim, n_layer=2, fast_n_layer=1)
    folder = write_checkpoint(tmp_path, sizes, TinyCodec(num_codebooks=3, semantic_codebook_size=60))
    checkpoint = load(folder, torch.device(DEVICE), torch.device(DEVICE), torch.float32, weights=weights)
    plain, mine = draw_frames(checkpoint, turns, kernel_attention=kernel_attention, batch_invariant=batch_invariant)
    assert np.array_equal(plain, mine)


@pytest.mark.parametrize("family", ["S1", "Audio8", "Qwen3-TTS"])
@torch.inference_mode()
def test_fused_frames_of_other_families_equal_the_plain_ones(tmp_path: Path, family: str) -> None:
    codec = TinyCodec(num_codebooks=3, semantic_codebook_size=60)
    if family == "Qwen3-TTS":
        write_qwen(tmp_path, "custom_voice")
    elif family == "S1":
        write_dual_ar(tmp_path, codec)
    else:
        write_flat(tmp_path, codec, **AUDIO8)
    checkpoint = load(tmp_path, torch.device(DEVICE), torch.device(DEVICE), torch.float32)
    assert checkpoint.config.family == family
    turns = (FIRST, OTHERS, ALL) if family == "Qwen3-TTS" else (FIRST, OTHERS)  # its rule counts what was said
    plain, mine = draw_frames(checkpoint, turns, kernel_attention=True)
    assert np.array_equal(plain, mine)


@pytest.mark.parametrize("text_on_host", [False, True])
@torch.inference_mode()
def test_prefill_graphs_read_sums_and_vectors_as_plain_torch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, text_on_host: bool
) -> None:
    if DEVICE == "cpu":
        request.getfixturevalue("eager_graphs")
    device, text_device = torch.device(DEVICE), torch.device("cpu" if text_on_host else DEVICE)
    folder = write_qwen(tmp_path, layers=1 if text_on_host else 2)  # where the text is read concerns no layer
    checkpoint = load(folder, device, device, torch.float32, text_device=text_device)
    model, config = checkpoint.model, checkpoint.config
    monkeypatch.setattr(DualAR, "text_on_host", text_on_host)
    voices = [Reference(CLIP_CODES[:, :0], "", vector()), Reference(CLIP_CODES[:, :6], "He", -vector())]
    prompts = [
        build_prompt(Utterance(text, (voice,)), checkpoint.tokenizer, config)
        for text, voice in zip(("Hello there.", "Third"), voices, strict=True)
    ]
    caches = []
    size = 66  # more rows than kernels with TMA take, whose alignment the file's mapping lacks
    assert sum(map(len, prompts)) < size, "some are padding"
    for is_plain in (True, False):
        runner = Runner(model, 2, 256)
        pieces = [PrefillChunk.of(prompt, slot, 0, len(prompt)) for slot, prompt in enumerate(prompts)]
        if not is_plain:
            frame = fused.FusedFrame(model, runner._cache, runner._slots, True)
            read = fused.FusedPrefill(model, frame.slow, runner._cache)
            graphs = PrefillGraphs(read, model, runner._slots.input, 2, (size,))
            graphs.capture(size)
            runner._read = graphs.replay
        runner._read(pieces)
        caches.append([runner._cache.keys[:, slot, : len(prompt)] for slot, prompt in enumerate(prompts)])
    assert all((mine - plain).abs().max() < 1e-4 for plain, mine in zip(*caches, strict=True))


@torch.inference_mode()
def test_frames_with_twelve_bit_weights_equal_the_plain_ones(tmp_path: Path) -> None:
    heads: dict[str, Any] = {"n_head": 8, "fast_n_head": 8, "intermediate_size": 128, "fast_intermediate_size": 128}
    sizes = TinyModel(dim=128, fast_dim=128, n_layer=1, fast_n_layer=1, **heads)
    folder = write_checkpoint(tmp_path, sizes, TinyCodec(num_codebooks=3))
    checkpoint = load(folder, torch.device(DEVICE), torch.device(DEVICE), torch.float32)
    round_to_twelve_bits(checkpoint.model)
    plain, mine = draw_frames(checkpoint, (FIRST, ALL), kernel_attention=True, twelve_bits="tiles")
    assert np.array_equal(plain, mine)


@torch.inference_mode()
def test_rehearsal_launches_every_kernel_of_a_frame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiling = importlib.import_module("engine.kernels.compilation")
    launched: list[Any] = []
    for name, module in list(sys.modules.items()):
        if name.startswith("engine.kernels.") and hasattr(module, "launch") and name != "engine.kernels.launch":

            def launch(kernel: Any, grid: Any, *given: Any, really: Any = module.launch, **how: Any) -> None:
                launched.append(
                    (
                        kernel.fn.__name__,
                        tuple(getattr(argument, "dtype", None) for argument in given),
                        tuple(how.items()),
                    )
                )
                really(kernel, grid, *given, **how)

            monkeypatch.setattr(module, "launch", launch)
    sizes = TinyModel(n_layer=3, fast_n_layer=2)
    folder = write_checkpoint(tmp_path, sizes, TinyCodec(num_codebooks=3))
    checkpoint = load(folder, torch.device(DEVICE), torch.device(DEVICE), torch.float32)
    runner = Runner(checkpoint.model, 3, 256)
    step = fused.FusedFrame(checkpoint.model, runner._cache, runner._slots, True)
    for rows in (1, 3):
        slots, results = torch.arange(rows, device=DEVICE), []
        for how in (compiling.rehearsing, nullcontext):
            launched.clear()
            with how():
                step(slots)
            results.append(list(launched))
        assert set(results[0]) == set(results[1])
        assert len(results[0]) < len(results[1])


def draw_frames(checkpoint: Checkpoint, turns: tuple[slice, ...], **how: Any) -> list[np.ndarray]:
    """Codes of one frame per turn for these rows of TEXTS, from plain torch and a FusedFrame with these options."""
    frames = []
    for path in ("plain", "fused"):
        rows = tuple(
            Row(build_prompt(Utterance(text), checkpoint.tokenizer, checkpoint.config), sampling, 99, print)
            for text, sampling in TEXTS
        )
        runner = Runner(checkpoint.model, len(rows), 256)
        for slot, row in enumerate(rows):
            row.slot = slot
            while not runner.prefill([row]):
                pass
        if path == "plain":
            runner._frame = PlainFrame(checkpoint.model, runner._cache, runner._slots)
            codes = [[codes for _, codes, _ in runner.launch(rows[part]).read()] for part in turns]
        else:
            step = fused.FusedFrame(checkpoint.model, runner._cache, runner._slots, **how)
            slots = torch.arange(3, device=DEVICE)
            codes = [step(slots[part])[:, :-1].cpu().numpy() for part in turns]
        frames.append(np.concatenate(codes))
    return frames

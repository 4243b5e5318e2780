"""The spare slot, which pads batches, uses memory for one position and does not affect active rows."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.checkpoint import load
from engine.config import TransformerSizes
from engine.model.kv_cache import KVCache
from engine.model.prompt import Prompt
from engine.runtime import graphs
from engine.runtime.graphs import capture
from engine.runtime.row import Row
from engine.runtime.runner import Runner
from engine.types import Sampling
from tests.engine.kernels.interpreter import DEVICE
from tests.engine.kernels.test_kernels import close
from tests.tiny import TinyCodec, TinyModel, write_checkpoint

pytest.importorskip("engine.fused.frame")


@pytest.fixture
def filled_up(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pad every batch to the largest size."""
    monkeypatch.setattr(graphs, "BATCH_SIZES", ())
    if DEVICE == "cpu":
        request.getfixturevalue("eager_graphs")


@pytest.mark.parametrize(
    ("kernel_attention", "batch_invariant", "rows"),
    [(True, True, 2), (True, False, 1), (True, False, 2), (False, False, 1)],
)
@pytest.mark.usefixtures("filled_up", "wide_tiles")
def test_padding_changes_neither_samples_nor_cache(
    tmp_path: Path, kernel_attention: bool, batch_invariant: bool, rows: int
) -> None:
    device = torch.device(DEVICE)
    folder = write_checkpoint(
        tmp_path, TinyModel(n_layer=1, fast_n_layer=1), TinyCodec(num_codebooks=3, semantic_codebook_size=60)
    )
    checkpoint = load(folder, device, device, torch.float32)
    prompt = Prompt(np.arange(12), np.zeros((3, 12), np.int64), prefix=6)  # prefilled in two turns
    drawn, kept = [], []
    for with_graphs in (False, True):
        runner = Runner(checkpoint.model, rows, 64)
        if with_graphs:
            sets = runner.use_graphs(kernel_attention, batch_invariant)
            capture(*sets)
            for firsts in (graph_set for graph_set in sets if isinstance(graph_set, graphs.FirstFrameGraphs)):
                for size in range(1, len(firsts) + 1):
                    firsts[size].again()  # as a GPU's capture does with every graph
        row = Row(prompt, Sampling(seed=5), 99, print, slot=0)  # the other slots stay empty
        while not runner.prefill([row]):
            pass
        first = runner.launch_first()
        assert (first is not None) == (with_graphs and kernel_attention and not batch_invariant)
        frames = itertools.chain([first] if first else [], (runner.launch((row,)) for _ in range(2)))
        drawn.append(
            np.stack([[codes.copy() for _, codes, _ in frame.read()] for frame in itertools.islice(frames, 2)])
        )
        kept.append(torch.stack([runner._cache.keys[:, :rows], runner._cache.values[:, :rows]]))
    assert np.array_equal(drawn[0], drawn[1])
    assert close(*kept)


def test_a_spare_slot_takes_memory_for_one_position() -> None:
    sizes = TransformerSizes(400, 3, 64, 4, 2, 16, 96, True, 1e6, 1e-6)
    held = {
        spare: KVCache(sizes, 4, 256, torch.device("cpu"), torch.bfloat16, spare).keys.untyped_storage().nbytes()
        for spare in (False, True)
    }
    position = 2 * 16 * 2  # heads · head_dim · bytes, of one layer
    assert held[False] == 3 * 4 * 256 * position
    assert held[True] == held[False] + 3 * position + 255 * position  # the last ones are read but unused
    assert KVCache.nbytes(sizes, 4, 256, torch.bfloat16, spare=True) == 2 * held[True]

"""Data fetch from the device is a separate copy, because graphs keep overwriting their outputs."""

from __future__ import annotations

import numpy as np
import torch

from engine.transfer import fetch, reserve
from tests.engine.kernels.interpreter import DEVICE


def test_fetched_copy_survives_overwriting_the_tensor() -> None:
    if DEVICE == "cuda":
        reserve(2**20)
    outputs = torch.arange(12, dtype=torch.float32, device=DEVICE).view(3, 4)
    got = fetch(outputs[:2])
    outputs.zero_()
    assert np.array_equal(got, np.arange(8, dtype=np.float32).reshape(2, 4))

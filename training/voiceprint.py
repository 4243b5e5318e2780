"""The weights of Resemblyzer's speaker encoder, small: a group of six-bit integers shares a scale.

    python -m training.voiceprint assets/fry/voiceprint.npz

Needs the package resemblyzer. Among 40 people, the mean cosine of two recordings of one person is 0.89 (float32: 0.90),
of two people 0.57.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from training.judging.judges import package_folder

BITS, GROUP = 6, 64
TRIED = (1.0, 0.9, 0.8, 0.7)
"""Shares of a group's largest weight that its scale may cover."""


def quantised(weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights (rows, columns) as int8 and float16 scales (rows, groups), with the least squared error of TRIED."""
    size = GROUP if weights.shape[1] % GROUP == 0 else weights.shape[1]
    groups = weights.reshape(len(weights), -1, size)
    top = 2 ** (BITS - 1) - 1
    largest = np.abs(groups).max(-1, keepdims=True)
    scales = [(largest * share / top).astype(np.float16).astype(np.float32) + 1e-12 for share in TRIED]
    rounded = [np.clip(np.round(groups / scale), -top, top) for scale in scales]
    errors = [np.square(r * s - groups).sum(-1, keepdims=True) for r, s in zip(rounded, scales, strict=True)]
    best = np.argmin(np.stack(errors), 0)
    values = np.take_along_axis(np.stack(rounded), best[None], 0)[0]
    scale = np.take_along_axis(np.stack(scales), best[None], 0)[0]
    return values.reshape(weights.shape).astype(np.int8), scale[..., 0].astype(np.float16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    path = package_folder("resemblyzer") / "pretrained.pt"
    state = torch.load(path, map_location="cpu", weights_only=False)["model_state"]
    kept: dict[str, np.ndarray] = {}
    for name, tensor in state.items():
        if not name.startswith(("lstm.", "linear.")):
            continue
        value = tensor.float().numpy()
        if value.ndim == 2:
            kept[name], kept[f"{name}.scale"] = quantised(value)
        else:
            kept[name] = value.astype(np.float16)
    np.savez_compressed(arguments.out, **kept)  # type: ignore[arg-type]  # none of the names is an option
    print(f"{arguments.out}: {arguments.out.stat().st_size / 2**20:.2f} MiB")


if __name__ == "__main__":
    main()

"""Upstream's own generation loop on the same weights: python -m benchmarks.upstream FOLDER [--compile] [--out FILE]

fish-speech's classes and its `generate`, out of its PyPI wheel, one row, keys and values for 4096 positions (its own
default is the model's 32,768, which is slower), eager unless --compile. A frame is timed from its start to
the start of the next one, sampling included.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.common.report import Report
from tests.upstream import load_ar

CONTEXT = 4096
SAMPLING = {"temperature": 0.8, "top_p": 0.8, "repetition_penalty": 1.1}
"""The defaults of upstream's server."""


def frame_times(model: Any, prompt: Tensor, frames: int, compiled: bool) -> list[float]:
    """Seconds of each frame after the first few."""
    from fish_speech.models.text2semantic import inference

    one = torch.compile(inference.decode_one_token_ar, mode="reduce-overhead") if compiled else None
    starts: list[float] = []

    def decode_one_token(**arguments: Any) -> Tensor:
        starts.append(time.perf_counter())  # upstream's loop has read the previous frame by then
        return (one or inference.decode_one_token_ar)(**arguments)

    inference.generate(
        model=model,
        prompt=prompt,
        max_new_tokens=frames,
        audio_masks=None,
        audio_parts=None,
        decode_one_token=decode_one_token,
        **SAMPLING,
    )
    return [after - before for before, after in itertools.pairwise(starts)]


def random_prompt(model: Any, positions: int) -> Tensor:
    """int (1 + codebooks, positions): random text."""
    prompt = torch.zeros(1 + model.config.num_codebooks, positions, dtype=torch.int)
    prompt[0] = torch.randint(0, model.tokenizer.semantic_begin_id, (positions,))
    return prompt


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--frames", type=int, default=60)
    parser.add_argument("--positions", type=int, default=300, help="length of the prompt")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    report = Report(options.out)
    device = torch.device(options.device)
    model = load_ar(options.folder, device, torch.bfloat16, CONTEXT)
    torch.manual_seed(0)
    times = frame_times(model, random_prompt(model, options.positions).to(device), options.frames, options.compile)
    name = "upstream_compiled_ms" if options.compile else "upstream_ms"
    ms = [1e3 * seconds for seconds in times[len(times) // 4 :]]
    report.add({name: round(statistics.median(ms), 2), f"{name}_worst": round(max(ms), 2), "upstream_frames": len(ms)})
    print(f"upstream, one row, {CONTEXT} positions: {report.results[name]} ms a frame")
    report.close()


if __name__ == "__main__":
    main()

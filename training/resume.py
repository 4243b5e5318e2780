"""Converts a checkpoint folder back to the stages' own files, so that training can continue from it.

    python -m training.resume assets/fry WORK

Writes WORK/codes.pt, WORK/decoder.pt and WORK/speech.pt; the discriminators of stage b are not shipped and start over.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch

from engine.checkpoint import load
from engine.engine_errors import CheckpointError
from training.codec.train_decoder import TRAINED
from training.sizes import CODEC, MODEL

STAGES = "codes.pt", "decoder.pt", "speech.pt"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("work", type=Path)
    arguments = parser.parse_args()
    if present := [name for name in STAGES if (arguments.work / name).exists()]:
        parser.error(f"{arguments.work / present[0]} is there already; name a new folder")
    cpu = torch.device("cpu")
    checkpoint = load(arguments.checkpoint, cpu, cpu, torch.bfloat16)
    if (checkpoint.config, checkpoint.codec.config) != (MODEL, CODEC):
        raise CheckpointError(f"{arguments.checkpoint} has other sizes than training/sizes.py")
    arguments.work.mkdir(parents=True, exist_ok=True)
    # Rounding to half removes the last float32 digit added by folding the weight norm: the codes stay the same.
    codec = {name: tensor.half() for name, tensor in checkpoint.codec.state_dict().items()}
    decoder = {k: v for k, v in codec.items() if k.startswith(TRAINED)}
    for name, state in zip(STAGES, (codec, decoder, checkpoint.model.state_dict()), strict=True):
        torch.save(state, arguments.work / name)


if __name__ == "__main__":
    main()

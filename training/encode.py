"""Encode the corpus with the frozen codec, each utterance from its own start, in float32 as the engine does.

    python -m training.encode DATA CODES OUT

Writes OUT/speech.npz: codes (frames, codebooks) int16 in the corpus's order; and OUT/speech.json: its rows.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.codec.model import Codec
from training.corpus import Corpus
from training.sizes import CODEC
from training.synthesise import FRAME_SAMPLES

BATCH_FRAMES = 12000
"""Frames encoded at a time, padding included."""


@torch.inference_mode()
def encode_corpus(codec: Codec, corpus: Corpus) -> Tensor:
    """Codes (frames, codebooks) int16 for the whole signal, on the corpus's device."""
    frames = np.array([n for _, n, _ in corpus.rows])
    starts = np.concatenate([[0], np.cumsum(frames)[:-1]])
    codes = torch.zeros(int(frames.sum()), CODEC.num_codebooks, dtype=torch.int16, device=corpus.audio.device)
    by_length = np.argsort(frames, kind="stable")
    first = 0
    while first < len(by_length):
        last = first + 1
        while last < len(by_length) and frames[by_length[last]] * (last - first + 1) <= BATCH_FRAMES:
            last += 1
        chosen = by_length[first:last]
        _encode_batch(codec, corpus, starts[chosen], frames[chosen], codes)
        first = last
    return codes


def _encode_batch(codec: Codec, corpus: Corpus, starts: np.ndarray, frames: np.ndarray, codes: Tensor) -> None:
    longest = int(frames.max())
    audio = torch.zeros(len(starts), 1, longest * FRAME_SAMPLES, device=corpus.audio.device)
    for row, (start, count) in enumerate(zip(starts.tolist(), frames.tolist(), strict=True)):
        piece = corpus.audio[start * FRAME_SAMPLES : (start + count) * FRAME_SAMPLES]
        audio[row, 0, : len(piece)] = piece.float() / 32768
    found = codec.encode(audio).transpose(1, 2).to(torch.int16)
    for row, (start, count) in enumerate(zip(starts.tolist(), frames.tolist(), strict=True)):
        codes[start : start + count] = found[row, :count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("codes", type=Path, help="stage a's codes.pt")
    parser.add_argument("out", type=Path)
    parser.add_argument("--hours", type=float, default=25.0)
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cudnn.allow_tf32 = False
    started = time.monotonic()
    corpus = Corpus(arguments.data, device, arguments.hours)
    codec = Codec(CODEC).to(device).eval()
    codec.load_state_dict(torch.load(arguments.codes, map_location=device))
    codes = encode_corpus(codec, corpus)
    arguments.out.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(arguments.out / "speech.npz", codes=codes.cpu().numpy())
    (arguments.out / "speech.json").write_text(json.dumps(corpus.rows))
    print(f"{len(codes)} frames, {len(corpus.rows)} utterances in {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()

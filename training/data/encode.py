"""Encodes the corpus with the frozen codec, each utterance from its own start, in float32 as the engine does.

    python -m training.data.encode DATA WORK

waits for WORK/codes.pt, then encodes DATA's shards as they appear to WORK/codes/NAME.npz (codes int16 (frames,
codebooks), phones int8 (frames,)) and NAME.json (the rows), and removes their audio. Ends when all of DATA/done.PART
exist. With several GPUs, one command for each, with its part and the number of parts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.codec.model import Codec
from training.data.corpus import SLOTS, Corpus
from training.sizes import CODEC
from training.teacher.synthesise import FRAME_SAMPLES

BATCH_FRAMES = 12000
"""Frames encoded at a time, padding included."""
SHARDS = 12
"""Utterances sorted together, so that batches have similar lengths."""


def encode_corpus(codec: Codec, corpus: Corpus) -> Tensor:
    """Codes (frames, codebooks) int16 for the whole signal, on the corpus's device."""
    frames = np.array(corpus.frames)
    starts = np.concatenate([[0], np.cumsum(frames)[:-1]])
    codes = torch.zeros(int(frames.sum()), CODEC.num_codebooks, dtype=torch.int16, device=corpus.audio.device)
    encode_utterances(codec, corpus.audio, starts, frames, codes)
    return codes


@contextmanager
def as_the_engine() -> Iterator[None]:
    """Encode in float32 without TF32, as the engine does; and without tuning, which every new length would repeat."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark
    matmul.allow_tf32 = cudnn.allow_tf32 = cudnn.benchmark = False
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = before


@torch.no_grad()
def encode_utterances(codec: Codec, audio: Tensor, starts: np.ndarray, frames: np.ndarray, codes: Tensor) -> None:
    """Fill codes (frames, codebooks) for utterances of a signal (samples,) int16, each this many frames from its start.

    Batches have similar lengths.
    """
    by_length = np.argsort(frames, kind="stable")
    first = 0
    while first < len(by_length):
        last = first + 1
        while last < len(by_length) and frames[by_length[last]] * (last - first + 1) <= BATCH_FRAMES:
            last += 1
        chosen = by_length[first:last]
        with as_the_engine():
            _encode_batch(codec, audio, starts[chosen], frames[chosen], codes)
        first = last


def _encode_batch(codec: Codec, audio: Tensor, starts: np.ndarray, frames: np.ndarray, codes: Tensor) -> None:
    longest = int(frames.max())
    sounds = torch.zeros(len(starts), 1, longest * FRAME_SAMPLES, device=audio.device)
    for row, (start, count) in enumerate(zip(starts.tolist(), frames.tolist(), strict=True)):
        piece = audio[start * FRAME_SAMPLES : (start + count) * FRAME_SAMPLES]
        sounds[row, 0, : len(piece)] = piece.float() / 32768
    batch_codes = codec.encode(sounds).transpose(1, 2).to(torch.int16)
    for row, (start, count) in enumerate(zip(starts.tolist(), frames.tolist(), strict=True)):
        codes[start : start + count] = batch_codes[row, :count]


def _encode_shards(codec: Codec, data: Path, names: list[str], out: Path, device: torch.device) -> float:
    """Encode shards together, write each one's codes, remove its audio; returns hours."""
    corpus = Corpus(data, device, 24.0 * len(names) / 60, names)
    codes = encode_corpus(codec, corpus).cpu().numpy()
    phones = corpus.phones[: len(codes) * SLOTS].view(-1, SLOTS)[:, SLOTS // 2].cpu().numpy()
    first = 0
    for name in names:
        count = len(np.load(data / f"phones_{name}.npy", mmap_mode="r")) // SLOTS
        np.savez(out / f"{name}.npz", codes=codes[first : first + count], phones=phones[first : first + count])
        (data / f"meta_{name}.json").rename(out / f"{name}.json")
        (data / f"audio_{name}.npy").unlink()
        first += count
    return corpus.hours


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--hold", type=Path, help="keep shards until this file exists, as others still read them")
    parser.add_argument("--part", type=int, default=0)
    parser.add_argument("--parts", type=int, default=1, help="as many as spoke")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    while not (arguments.work / "codes.pt").exists() or (arguments.hold and not arguments.hold.exists()):
        time.sleep(0.5)
    started = time.monotonic()
    codec = Codec(CODEC).to(device).eval()
    codec.load_state_dict(
        {k: v.float() for k, v in torch.load(arguments.work / "codes.pt", map_location=device).items()}
    )
    out = arguments.work / "codes"
    out.mkdir(parents=True, exist_ok=True)
    hours, reported = 0.0, 0.0
    while True:
        is_last = all((arguments.data / f"done.{part}").exists() for part in range(arguments.parts))
        names = sorted(path.stem.removeprefix("meta_") for path in arguments.data.glob("meta_*.json"))
        names = [name for name in names if int(name.split("_")[0]) % arguments.parts == arguments.part]
        for first in range(0, len(names), SHARDS):
            hours += _encode_shards(codec, arguments.data, names[first : first + SHARDS], out, device)
            if time.monotonic() > reported + 10:
                reported = time.monotonic()
                print(f"{hours:.1f} h in {time.monotonic() - started:.0f} s", flush=True)
        if is_last:
            break
        time.sleep(1)
    (out / f"done.{arguments.part}").write_text("")
    print(f"{hours:.1f} h in {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()

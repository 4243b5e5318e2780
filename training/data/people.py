"""Converts recordings of people to sets: each piece unchanged and with two other vocal tracts, to restore the voice
from.

    python -m training.data.people CLIPS OUT

CLIPS is a folder of mono audio files (any that soundfile reads), one person each. Three pieces of a clip are a group,
like the teacher's sentences (`training.teacher.sets`); the first timbre of a set is the recording. Needs the package
soundfile.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from training.codec.disguise import warped
from training.data.phones import UNKNOWN
from training.teacher.sets import SENTENCES, TIMBRE_VALUES, TIMBRES, SpokenSet, write_sets
from training.teacher.synthesise import FRAME_SAMPLES, LEVEL, SLOT_SAMPLES, resampled

LEAST_FRAMES, MOST_FRAMES = 32, 110
"""Seconds of a piece: 1.5 to 5."""
IN_A_SHARD = 60


def groups(audio: np.ndarray, rng: random.Random, device: torch.device) -> Iterator[list[SpokenSet]]:
    """A person's audio (samples,) float32 at 44.1 kHz in pieces, three per group; a short recording gives none."""
    frames = len(audio) // FRAME_SAMPLES
    count = max(1, -(-frames // (SENTENCES * MOST_FRAMES)))
    size = frames // (SENTENCES * count)
    if size < LEAST_FRAMES:
        return
    for group in range(count):
        factors = torch.tensor([1.0, rng.uniform(0.8, 0.93), rng.uniform(1.07, 1.25)], device=device)
        sets = []
        for piece in range(SENTENCES):
            first = (group * SENTENCES + piece) * size * FRAME_SAMPLES
            own = torch.from_numpy(audio[first : first + size * FRAME_SAMPLES]).to(device)
            versions = warped(own.expand(TIMBRES, -1), factors)
            versions[0] = own
            sound = (versions.clamp(-0.99, 0.99) * 32767).to(torch.int16).cpu().numpy()
            phones = np.full(size * FRAME_SAMPLES // SLOT_SAMPLES, UNKNOWN, np.int8)
            styles = np.full((TIMBRES, TIMBRE_VALUES), np.nan, np.float32)
            sets.append(SpokenSet(sound, phones, styles, is_person=True))
        yield sets


def main() -> None:
    import soundfile

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clips", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rng = random.Random(0)
    arguments.out.mkdir(parents=True, exist_ok=True)
    sets: list[SpokenSet] = []
    shard = 0
    paths = sorted(path for path in arguments.clips.rglob("*") if path.is_file())
    for number, path in enumerate(paths):
        sound, rate = soundfile.read(path, dtype="float32")
        audio = resampled(sound * (LEVEL / (np.sqrt(np.mean(sound**2)) + 1e-9)), rate)
        for group in groups(audio, rng, device):
            sets += group
        if len(sets) >= IN_A_SHARD or (number == len(paths) - 1 and sets):
            write_sets(arguments.out, f"people_{shard:04d}", sets)
            sets, shard = [], shard + 1
    print(f"{len(paths)} clips in {shard} shards")


if __name__ == "__main__":
    main()

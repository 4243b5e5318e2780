"""Measures how similar clones of real people sound: by two judges, among people recorded in the same way.

Files are named CORPUS-PERSON-NUMBER.* and contain one person each. A person's first recording is the reference and the
second is compared with the clone; a single recording is split into halves. Everyone in the folder is enrolled, so that
a copied microphone does not count as a copied voice.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from engine import Reference
from engine.runtime.clip_encoder import resample
from training.codec.spectra import SAMPLE_RATE
from training.judging.judges import VoiceJudge
from training.judging.measures import interval, median_pitch

LONGEST_SECONDS = 12.0
"""Seconds used of a recording."""
LEVEL = 0.09


@dataclass(frozen=True, eq=False, slots=True)
class Person:
    """Two recordings of one person, float32 (samples,) at 44.1 kHz."""

    name: str
    reference: np.ndarray
    other: np.ndarray


def read_people(folder: Path) -> list[Person]:
    """Everyone in a folder of audio files. Needs the package soundfile."""
    import soundfile

    paths: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.iterdir()):
        corpus, person, _ = path.stem.rsplit("-", 2)
        paths[f"{corpus}-{person}"].append(path)
    people = []
    for name, own in paths.items():
        sounds = []
        for path in own[:2]:
            sound, rate = soundfile.read(path, dtype="float32")
            sound = torch.from_numpy(sound * (LEVEL / (np.sqrt(np.mean(sound**2)) + 1e-9)))
            sounds.append(resample(sound, rate, SAMPLE_RATE).numpy())
        first, second = sounds if len(sounds) > 1 else np.array_split(sounds[0], 2)
        most = round(LONGEST_SECONDS * SAMPLE_RATE)
        people.append(Person(name, first[:most], second[:most]))
    return people


@dataclass(frozen=True, slots=True)
class Cloning:
    """The engine's part in the test: clones, and the codec alone."""

    encode: Callable[[np.ndarray], Awaitable[Reference]]
    """A recording as a reference, with a transcript by a recogniser."""
    say: Callable[[Reference, int], Awaitable[np.ndarray]]
    """A sentence, by its number, in the voice of a reference."""
    decode: Callable[[Reference], np.ndarray]
    """A reference's own codes, decoded in its own voice."""


async def judge_people(
    people: Sequence[Person],
    cloning: Cloning,
    judges: Mapping[str, VoiceJudge],
    naturalness: Callable[[np.ndarray], float],
    tested: int,
    sentences: int,
) -> dict[str, object]:
    """real_clone_cos, real_clone_top1 and real_roundtrip_cos by each judge, whose name is appended except for the
    first; real_clone_mos by ``naturalness``; real_clone_pitch, by what share the median pitch is wrong.

    The first ``tested`` people speak this many sentences each. Cosines compare with the person's other recording, and
    for the round trip with the recording itself.
    """
    enrolled = {name: {p.name: judge.print(p.other) for p in people} for name, judge in judges.items()}
    cosines, hits, trips = (defaultdict[str, list[float]](list) for _ in range(3))
    scores, pitches = list[float](), list[float]()
    for person in people[:tested]:
        reference = await cloning.encode(person.reference)
        decoded = cloning.decode(reference)
        takes = [await cloning.say(reference, number) for number in range(sentences)]
        pitch = median_pitch(person.reference)
        scores += map(naturalness, takes)
        pitches += [abs(median_pitch(take) / pitch - 1) for take in takes if pitch]
        for name, judge in judges.items():
            trips[name].append(float(judge.print(decoded) @ judge.print(person.reference)))
            for take in takes:
                print_ = judge.print(take)
                likeness = {known: float(print_ @ vector) for known, vector in enrolled[name].items()}
                cosines[name].append(likeness[person.name])
                hits[name].append(max(likeness, key=likeness.__getitem__) == person.name)
    figures: dict[str, object] = {"real_people": len(people), "real_people_tested": min(tested, len(people))}
    for kind, values in (("mos", scores), ("pitch", pitches)):
        figures[f"real_clone_{kind}"] = float(np.mean(values))
        figures[f"real_clone_{kind}_95"] = list(interval(values))
    for number, name in enumerate(judges):
        suffix = f"_{name}" if number else ""
        for kind, by_judge in (("clone_cos", cosines), ("clone_top1", hits), ("roundtrip_cos", trips)):
            figures[f"real_{kind}{suffix}"] = float(np.mean(by_judge[name]))
            figures[f"real_{kind}{suffix}_95"] = list(interval(by_judge[name]))
    return figures

"""python -m benchmarks.drift FOLDER: takes in another voice that the check finds, and its false alarms.

The bundled model speaks 50 sentences in eight voices, as one project, and the short texts among `--varied` of
benchmarks.proof in four; FOLDER keeps them. Then other sound is put in the place of one take at a time: a take in each
other voice, a take whose second half is in another voice, the recording of each voice (made by another model), and WAV
files of another model in ``--other``, named like 07.wav by the sentence. Every finding in the project as generated is a
false alarm. The voices are compared as a project does.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np

from audio.encode import WAV_HEADER, floats, pcm16
from audio.read import read_clip
from audio.resampler import resampled
from audio.voiceprint import Voiceprints
from benchmarks.proof import RATE
from benchmarks.proofing.sentences import SENTENCES
from benchmarks.proofing.varied_texts import VARIED
from benchmarks.serving.api_server import StudioProcess
from longform.library.usual_sound import TakeSound, UsualSound
from longform.proof.part_check import check_take
from speechtext.reading import normalised
from studio import ASSETS
from studio.library.take import Take

VOICES = ("Clara", "Otto", "Nora", "Alan", "Maya", "Ross", "Vera", "Theo")
COUNT = 50
"""Sentences in each voice."""
SHORT = [text for text in VARIED if "[" not in text and 8 < len(text) < 80]
SHORT_VOICES = VOICES[:4]
SOME = 4
"""Takes of each voice in whose place others are put."""
Key = tuple[str, str, int]  # the set, the voice, and the number of the text


def texts() -> Iterator[tuple[Key, str]]:
    yield from ((("long", voice, number), SENTENCES[number]) for number in range(COUNT) for voice in VOICES)
    yield from ((("short", voice, at), text) for at, text in enumerate(SHORT) for voice in SHORT_VOICES)


def generate(folder: Path) -> None:
    """Generate the takes that the folder lacks."""
    missing = [(key, text) for key, text in texts() if not _path(folder, key).exists()]
    if not missing:
        return
    with tempfile.TemporaryDirectory() as home:
        studio = StudioProcess(STUDIO_HOME=home, STUDIO_PAGE="0")
        try:
            studio.wait_until_ready()
            with httpx.Client(base_url=studio.address, timeout=600) as client:
                for key, text in missing:
                    body = {"input": text, "voice": key[1], "seed": 1000 + key[2], "response_format": "wav"}
                    answer = client.post("/v1/audio/speech", json=body).raise_for_status()
                    _path(folder, key).write_bytes(answer.content)
        finally:
            studio.stop()


def _path(folder: Path, key: Key) -> Path:
    return folder / f"{key[0]}-{key[1]}-{key[2]:02}.wav"


def _sound(path: Path) -> np.ndarray:
    return floats(path.read_bytes()[WAV_HEADER:])


class Prints:
    """Checks audio as a project does."""

    def __init__(self) -> None:
        self._voiceprints = Voiceprints(ASSETS / "fry" / "voiceprint.npz")

    def of(self, voice: str, text: str, pcm: np.ndarray) -> TakeSound:
        take = Take("take", 0.0, voice, 0, text=text, parameters={"read_as": normalised(text)}, sample_rate=RATE)
        take = replace(take, seconds=len(pcm) / RATE)
        samples = np.frombuffer(pcm16(pcm), "<i2")
        checked = check_take(None, "", samples, take, "en", (), self._voiceprints)
        return TakeSound(voice, voice, take.seconds, None, None, checked.print)


def half_switched(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The first half of one take, and the second half of another."""
    return np.concatenate([one[: len(one) // 2], other[len(other) // 2 :]])


def is_found(takes: Sequence[TakeSound], at: int, planted: TakeSound) -> bool:
    """Whether a take is listed that is in the place of another one, whose voice it should have."""
    project = [*takes[:at], replace(planted, voice=takes[at].voice, name=takes[at].name), *takes[at + 1 :]]
    return any(finding.kind == "voice" for finding in UsualSound(project).findings(project)[at])


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.drift", description=__doc__)
    parser.add_argument("folder", type=Path, help="keeps the generated takes")
    parser.add_argument("--other", type=Path, help="a folder with takes of another model, 00.wav, 01.wav …")
    wanted = parser.parse_args()
    wanted.folder.mkdir(parents=True, exist_ok=True)
    generate(wanted.folder)
    prints, choose = Prints(), random.Random(1)
    sounds = {key: _sound(_path(wanted.folder, key)) for key, _ in texts()}
    takes = {key: prints.of(key[1], text, sounds[key]) for key, text in texts()}
    compared = {key: take for key, take in takes.items() if take.print}
    for kind in ("long", "short"):
        print(
            f"{kind}: {sum(key[0] == kind for key in takes)} takes, {sum(key[0] == kind for key in compared)} compared"
        )
    project = list(compared.values())
    alarms = Counter[str]()
    for key, findings in zip(compared, UsualSound(project).findings(project), strict=True):
        for finding in findings:
            alarms[key[0]] += 1
            print(f"false alarm: {key}, {finding.start:.1f} to {finding.end:.1f} s, {finding.heard}")
    found, planted = Counter[str](), Counter[str]()
    keys = list(compared)
    plants = [
        (choose.choice([key for key in keys if key[:2] == ("long", voice)]), other)
        for voice in VOICES
        for other in VOICES
        if other != voice
        for _ in range(SOME)
    ]
    for key, other in plants:
        at, there = keys.index(key), ("long", other, key[2])
        mixed = prints.of(key[1], SENTENCES[key[2]], half_switched(sounds[key], sounds[there]))
        for kind, take in (("wrong voice", takes[there]), ("half-way switch", mixed)):
            planted[kind] += 1
            found[kind] += is_found(project, at, take)
            if {key[1], other} != {"Clara", "Vera"}:
                planted[f"{kind}, without Clara and Vera"] += 1
                found[f"{kind}, without Clara and Vera"] += is_found(project, at, take)
    for kind, voices, name, sound in _of_other_models(wanted.other):
        take = prints.of("", name, sound)
        for voice in voices:
            at = next(at for at, key in enumerate(keys) if key[1] == voice)
            planted[kind] += 1
            found[kind] += is_found(project, at, take)
    print("\n| planted | found |\n|---|---|")
    for kind in planted:
        print(f"| {kind} | {found[kind]} of {planted[kind]} ({found[kind] / planted[kind]:.1%}) |")
    print(f"| false alarms per 100 parts | {100 * alarms.total() / len(takes):.1f} ({dict(alarms)} of {len(takes)}) |")


def _of_other_models(folder: Path | None) -> Iterator[tuple[str, Sequence[str], str, np.ndarray]]:
    """The kind, the voices in whose place it is put, the text, and the sound."""
    for voice in VOICES:
        path = ASSETS / "fry" / "voices" / f"{voice}.wav"
        yield "its voice's recording", [voice], path.with_suffix(".txt").read_text(), _clip(path)
    for path in sorted(folder.glob("*.wav")) if folder else ():
        yield "another model's take", VOICES, SENTENCES[int(path.stem)], _clip(path)


def _clip(path: Path) -> np.ndarray:
    clip = read_clip(path.read_bytes())
    return resampled(clip.pcm, clip.sample_rate, RATE)


if __name__ == "__main__":
    main()

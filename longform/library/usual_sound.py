"""Finds takes that differ from the rest of their project: in level, in pace, or in the sound of their voice.

A voice's usual sound is the mean of its takes' voiceprints. A take differs if it, or one of its halves, is much farther
from that than the others are, or if it is nearer to another voice of the project.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from longform.library.proof_records import Kind, ProofFinding

DRIFTS: tuple[Kind, ...] = ("level", "pace", "voice", "late")
"""Findings that change with other parts of the project, so that they are found again after each change."""
LEVEL_DRIFT = 4.0
"""Minimum dB from the median of the same voice; listeners notice half as much between two consecutive parts."""
PACE_DRIFT = 0.3
"""Minimum deviation from the median of the same voice. Sentences of one voice differ by 10 % (standard deviation)."""
FEWEST = 8
"""Minimum number of takes for what is usual for a voice. Levels and paces of rarer voices are compared with the book's;
their sound is not compared."""
DRIFT_WEIGHT = 15
"""Weight of an unusual level or pace, a judgement: listeners notice either, and understand every word."""
VOICE_WEIGHT = 65  # another voice confuses listeners about as much as a changed word
WIDTH = 256  # numbers of a voiceprint
DEVIATIONS = np.array((5.0, 4.0))
"""How many standard deviations a take, and the farther one of its halves, may be farther from its voice than the
median. The deviation of halves has fewer exceptions, as it is larger. Measured, like the next two, with
benchmarks/drift.py."""
SMALLEST = np.array((0.015, 0.028))
"""The least standard deviations of these cosines: some takes are alike by chance."""
MARGIN = 0.02
"""A take whose cosine with another voice exceeds that with its own by less is not reported: two voices can be as
alike as 0.97."""


@dataclass(frozen=True, eq=False, slots=True)
class TakeSound:
    """The figures of a checked take that are compared with those of other takes."""

    voice: str  # its id, or its name if it has none
    name: str
    seconds: float
    level: float | None
    pace: float | None
    print: bytes


def packed(prints: np.ndarray) -> bytes:
    """The stored form of the prints (2, 256) of the halves of a take: integers of eight bits."""
    return np.rint(prints / np.maximum(prints.max(-1, keepdims=True), 1e-9) * 127).astype(np.int8).tobytes()


class UsualSound:
    """The usual level, pace and sound of each voice in a project, from its checked takes."""

    def __init__(self, takes: Sequence[TakeSound]) -> None:
        self._medians = {"": _medians(takes)}  # the book's
        self._voices: dict[str, int] = {}
        self._names: list[str] = []
        by_voice: dict[str, list[TakeSound]] = {}
        for take in takes:
            by_voice.setdefault(take.voice, []).append(take)
        compared = list[TakeSound]()
        for voice, of_voice in by_voice.items():
            if sum(take.level is not None for take in of_voice) >= FEWEST:
                self._medians[voice] = _medians(of_voice)
            with_prints = [take for take in of_voice if take.print]
            if len(with_prints) >= FEWEST:
                self._voices[voice] = len(self._names)
                self._names.append(with_prints[0].name)
                compared += with_prints
        if sum(take.level is not None for take in takes) < FEWEST:
            self._medians.clear()
        self._sums, self._limits = self._usual_prints(compared)

    def _usual_prints(self, takes: Sequence[TakeSound]) -> tuple[np.ndarray, np.ndarray]:
        """The sums (voices, 256) of the takes' prints, and the least cosines (voices, 2) of takes and their halves."""
        halves, voices = _halves(takes), np.array([self._voices[take.voice] for take in takes], int)
        sums = np.zeros((len(self._names), WIDTH), np.float32)
        np.add.at(sums, voices, _unit(halves.sum(1)))
        cosines = _cosines(halves, _unit(sums[voices] - _unit(halves.sum(1))))
        medians = np.array([np.median(cosines[voices == voice], axis=0) for voice in range(len(sums))]).reshape(-1, 2)
        # Of all voices together: that of one with a few takes would depend on chance.
        deviations = 1.4826 * np.median(np.abs(cosines - medians[voices]), axis=0) if len(takes) else SMALLEST
        return sums, medians - DEVIATIONS * np.maximum(deviations, SMALLEST)

    def findings(self, takes: Sequence[TakeSound], are_new: bool = False) -> list[list[ProofFinding]]:
        """The differences of each of these takes; ``are_new``: they are not among those of the project."""
        found = [self._of_figures(take) for take in takes]
        compared = [at for at, take in enumerate(takes) if take.print and take.voice in self._voices]
        if compared:
            halves = _halves([takes[at] for at in compared])
            voices, prints = np.array([self._voices[takes[at].voice] for at in compared]), _unit(halves.sum(1))
            own = _unit(self._sums[voices] - (0 if are_new else prints))
            below = self._limits[voices] - _cosines(halves, own)
            others = prints @ _unit(self._sums).T
            others[np.arange(len(voices)), voices] = -1.0
            nearest, nearer = others.argmax(1), others.max(1) - (prints * own).sum(-1)
            farther = np.einsum("thw,tw->th", halves, own).argmin(1)
            for number, at in enumerate(compared):
                if below[number].max() > 0 or nearer[number] > MARGIN:
                    middle, end = takes[at].seconds / 2, takes[at].seconds
                    is_half = below[number, 0] <= 0 and nearer[number] <= MARGIN
                    start, end = ((0.0, middle), (middle, end))[farther[number]] if is_half else (0.0, end)
                    heard = self._names[nearest[number]] if nearer[number] > MARGIN else ""
                    found[at].append(ProofFinding("voice", VOICE_WEIGHT, start, end, heard=heard))
        return found

    def distance(self, take: TakeSound, is_new: bool = False) -> float:
        """How far the farther half of a take is from its voice, from 0 to 2; 0 where its voice cannot be compared."""
        if not take.print or take.voice not in self._voices:
            return 0.0
        halves = _halves([take])
        total = self._sums[[self._voices[take.voice]]] - (0 if is_new else _unit(halves.sum(1)))
        return float(1 - _cosines(halves, _unit(total))[0, 1])

    def _of_figures(self, take: TakeSound) -> list[ProofFinding]:
        """The differences in level and pace, as text: +5.2 dB, -35 %."""
        usual_level, usual_pace = self._medians.get(take.voice) or self._medians.get("") or (None, None)
        findings = []
        if take.level is not None and usual_level is not None and abs(take.level - usual_level) > LEVEL_DRIFT:
            heard = f"{take.level - usual_level:+.1f} dB"
            findings.append(ProofFinding("level", DRIFT_WEIGHT, 0.0, take.seconds, heard=heard))
        if take.pace is not None and usual_pace and abs(take.pace / usual_pace - 1) > PACE_DRIFT:
            heard = f"{100 * (take.pace / usual_pace - 1):+.0f} %"
            findings.append(ProofFinding("pace", DRIFT_WEIGHT, 0.0, take.seconds, heard=heard))
        return findings


def _medians(takes: Sequence[TakeSound]) -> tuple[float | None, float | None]:
    """The medians of level and pace."""
    levels, paces = [take.level for take in takes], [take.pace for take in takes]
    return _median(levels), _median(paces)


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _halves(takes: Sequence[TakeSound]) -> np.ndarray:
    """The prints (takes, 2, 256) of the halves, of length one."""
    data = b"".join(take.print for take in takes)
    return _unit(np.frombuffer(data, np.int8).reshape(-1, 2, WIDTH).astype(np.float32))


def _cosines(halves: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Cosines (takes, 2) of takes, and of the farther one of their halves, with voices (takes, 256)."""
    return np.stack([(_unit(halves.sum(1)) * own).sum(-1), np.einsum("thw,tw->th", halves, own).min(1)], axis=1)


def _unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-9)

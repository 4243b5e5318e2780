"""Asks the recogniser whether the words of a text may have been spoken after all where it heard others, or twice.

Recognisers mishear a few words in every hundred. But they can also rate the likelihood of a text for some audio: if a
word is really missing, the text is about e^10 times less likely than the words heard; if one was misheard, it is not.
Words spoken twice in a row they tend to write once, like listeners: the sound shows where to ask.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from longform.library.proof_records import Kind
from longform.proof.comparison import Comparison, Difference, Text
from longform.proof.spelling import fold, likeness
from speechtext.errors import check_job
from studio.voices.recogniser import LONGEST, RATE, Recogniser

AROUND = 10  # words before and after a difference that are rated with it
MARGIN = 0.15  # seconds of audio around them
NEEDED: Mapping[Kind, float] = {"left_out": 1.5, "changed": 0.5, "added": 0.0, "repeated": 5.0, "cut_end": 3.0}
"""The log-likelihood of the text minus that of the words heard must be below this to count as a fault. Recognisers tend
to complete sentences, and seldom write a word twice: an omission or repetition that they hear nevertheless is real.
Measured with benchmarks/proof.py."""
NEEDED_ALIKE = -5.0  # limit for words heard as others that sound alike
NEEDED_FEWER = -1.5
"""Limit for fewer words heard, such as "their" for "the river", of which one may be missing."""
NEEDED_NAME = -8.0  # limit for names, whose spelling recognisers guess
ALIKE = 0.45  # share of letters or consonants in common with which words sound alike
UNHEARD = -7.5  # minimum log-likelihood of a repetition that was not heard, minus that of the text
UNHEARD_WORD = -5.0  # the same for the repetition of a single word
MOST_WORDS = 4  # of a repetition that was not heard
NEAR = 1.0  # seconds around a difference that was heard, which would explain a repetition
HOP, WINDOW = 160, 400  # samples between frames and per frame: 10 ms, 25 ms
BANDS = 24
LOWEST, HIGHEST = 100.0, 7_000.0  # Hz
SHORTEST_TWICE, LONGEST_TWICE = 0.2, 2.0  # seconds spoken twice: from a long syllable to half a sentence
LIKENESS = 0.5
"""Minimum mean cosine of both spectra. Words spoken twice exceed it in nine of ten cases, other words in two of five
sentences: a finding is only a reason to ask the recogniser."""
QUIET = 5.0
"""Natural logarithm below the loudest frame: quieter frames resemble each other, and are ignored."""
MOST = 2  # spans returned, likeliest first


class Verification:
    """Verifies the differences between a text and the words heard. Blocking: a second for each question."""

    def __init__(
        self, recogniser: Recogniser, language: str, pcm: np.ndarray, text: Text, comparison: Comparison
    ) -> None:
        """``pcm``: float32 (samples,) at RATE."""
        self._recogniser, self._language, self._pcm = recogniser, language, pcm
        self._text, self._comparison = text, comparison

    def differences(self) -> list[Difference]:
        """The differences that the audio supports, in order, with repetitions that were not heard.

        Raises the errors of Recogniser.likelihoods, TooCostly, Cancelled.
        """
        supported = [difference for difference in self._comparison.differences if self._is_supported(difference)]
        supported += self._missed_repetitions(supported)
        return sorted(supported, key=lambda difference: difference.start)

    def _is_supported(self, difference: Difference) -> bool:
        text, first, last = self._text, *self._context(difference.first, difference.last)
        audio = self._audio(first, last)
        if audio is None:
            return True
        before, after = text.between(first, difference.first), text.between(difference.last, last)
        texts = [text.between(first, last), f"{before} {difference.heard} {after}"]
        if fold(read := text.read_between(first, last)) != fold(texts[0]):
            texts.append(read)
        chances = self._recogniser.likelihoods(audio, self._language, texts)
        return max([chances[0], *chances[2:]]) - chances[1] < _needed(text, difference)

    def _missed_repetitions(self, differences: Sequence[Difference]) -> Iterator[Difference]:
        """Words spoken twice and heard once; not beside other differences, which would explain them."""
        for start, end in repeated_spans(self._pcm):
            begin = start - (end - start)
            if any(begin - NEAR < other.start < end + NEAR for other in tuple(differences)):
                continue
            words = [word for word, (at, over) in self._comparison.times.items() if at < end and over > begin]
            if words:
                yield from self._repetition(min(words), max(words) + 1, start, end)

    def _repetition(self, low: int, high: int, start: float, end: float) -> Iterator[Difference]:
        """The likeliest repetition of some of these words, if it is likely enough."""
        text, first, last = self._text, *self._context(low, high)
        audio = self._audio(first, last)
        groups = [(at, at + size) for size in range(1, MOST_WORDS + 1) for at in range(low, high - size + 1)]
        if audio is None or not groups:
            return
        texts = [text.between(first, last)]
        texts += [f"{text.between(first, over)} {text.between(at, last)}" for at, over in groups]
        baseline, *chances = self._recogniser.likelihoods(audio, self._language, texts)
        chance, (at, over) = max(zip(chances, groups, strict=True))
        if chance - baseline > (UNHEARD if over - at > 1 else UNHEARD_WORD):
            yield Difference("repeated", over, over, start, end, text.between(at, over), 1.0)

    def _context(self, first: int, last: int) -> tuple[int, int]:
        return max(0, first - AROUND), min(len(self._text.words), last + AROUND)

    def _audio(self, first: int, last: int) -> np.ndarray | None:
        """The samples in which these words are spoken, found by those that were heard; None: too long for an answer."""
        times, words = self._comparison.times, len(self._text.words)
        before = [times[word] for word in range(first + 1) if word in times]
        after = [times[word] for word in range(max(0, last - 1), words) if word in times]
        start = 0.0 if first == 0 or not before else max(0.0, before[-1][0] - MARGIN)
        end = len(self._pcm) / RATE if last == words or not after else after[0][1] + MARGIN
        return self._pcm[round(start * RATE) : round(end * RATE)] if start < end <= start + LONGEST else None


def _needed(text: Text, difference: Difference) -> float:
    if difference.kind != "changed":
        return NEEDED[difference.kind]
    is_alike = likeness(text.typed(difference.first, difference.last), fold(difference.heard)) >= ALIKE
    if text.has_name(difference.first, difference.last) or (is_alike and difference.first == 0):
        return NEEDED_NAME  # the word that begins a text may be a name
    if is_alike and len(difference.heard.split()) < difference.last - difference.first:
        return NEEDED_FEWER
    return NEEDED_ALIKE if is_alike else NEEDED["changed"]


def repeated_spans(pcm: np.ndarray) -> list[tuple[float, float]]:
    """The spans of audio that repeat the preceding seconds; ``pcm``: float32 (samples,) at RATE.

    Blocking: a hundredth of the audio's length. Raises TooCostly, Cancelled.
    """
    spectra, is_loud = _spectra(pcm)
    candidates = list[tuple[float, int, int]]()
    for lag in range(round(SHORTEST_TWICE * RATE / HOP), min(round(LONGEST_TWICE * RATE / HOP), len(spectra) // 2) + 1):
        check_job()
        likeness = (spectra[:-lag] * spectra[lag:]).sum(axis=1) * (is_loud[:-lag] & is_loud[lag:])
        sums = np.concatenate([[0.0], np.cumsum(likeness)])
        means = (sums[lag:] - sums[:-lag]) / lag
        if len(means):
            at = int(means.argmax())
            candidates.append((float(means[at]), at, lag))
    best = list[tuple[float, float]]()
    for likeness, at, lag in sorted(candidates, reverse=True):
        start, end = ((at + shift) * HOP / RATE for shift in (lag, 2 * lag))
        if likeness < LIKENESS or len(best) == MOST:
            break
        if all(end <= other_start or start >= other_end for other_start, other_end in best):
            best.append((start, end))
    return best


def _spectra(pcm: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The shape of the spectrum in each frame (frames, BANDS), of length one, and whether the frame is loud."""
    if len(pcm) < WINDOW:
        return np.zeros((0, BANDS), np.float32), np.zeros(0, bool)
    frames = np.lib.stride_tricks.sliding_window_view(pcm, WINDOW)[::HOP]
    edges = np.geomspace(LOWEST, HIGHEST, BANDS + 1) / RATE * WINDOW
    starts = np.maximum.accumulate(np.arange(BANDS) + np.floor(edges[:-1])).astype(int)
    power = np.zeros((len(frames), BANDS), np.float32)
    for at in range(0, len(frames), 4096):
        check_job()
        spectrum = np.abs(np.fft.rfft(frames[at : at + 4096] * np.hanning(WINDOW), axis=1)) ** 2
        power[at : at + 4096] = np.add.reduceat(spectrum, np.minimum(starts, spectrum.shape[1] - 1), axis=1)
    levels = np.log(power + 1e-8)
    loudness = np.log(power.sum(axis=1) + 1e-8)
    shape = levels - levels.mean(axis=0)
    shape -= shape.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(shape, axis=1, keepdims=True)
    return shape / np.maximum(norms, 1e-6), loudness > loudness.max() - QUIET

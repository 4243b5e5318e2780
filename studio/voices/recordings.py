"""Transcribes recordings that are longer than the recogniser takes at once: in pieces that end where it is quiet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from audio import InvalidClip, SilentClip
from audio.read import MAX_BYTES, MAX_SECONDS, MIN_SECONDS, STEP, read_clip
from audio.resampler import resampled
from studio.library.checks import clean_language
from studio.voices.clip_service import ClipService
from studio.voices.recogniser import RATE, Recogniser, Transcription, Word

FORM_LIMIT = MAX_BYTES + 256 * 1024
"""Bytes of a request with a recording."""
LONGEST = 300.0
"""Seconds of a recording."""
PIECE = (20.0, 28.0)
"""Seconds: longer recordings are transcribed in pieces that end at the quietest moment in this range."""
PAUSE = round(0.2 / STEP)


@dataclass(frozen=True, slots=True)
class Recording:
    """A transcribed recording; the times of its words are those in the whole."""

    seconds: float
    transcription: Transcription


async def transcribed(clips: ClipService, caller: str, data: bytes, language: str, param: str) -> Recording:
    """``language``: BCP 47, or blank to have it recognised; ``param``: the request's field of the recording.

    Raises InvalidRequest, InvalidClip, and the errors of the recogniser.
    """
    language = clean_language(language)
    pieces = split_recording(*await clips.levels(caller, data, param), param)
    texts, words = list[str](), list[Word]()
    with clips.transcriber.queue.place(caller):  # to the end, as minutes of work would be lost
        for start, end in pieces:
            try:
                piece = await clips.transcriber.run(caller, True, _heard, data, (start, end), language, param)
            except SilentClip:
                if end == pieces[-1][1] and not texts:  # nobody speaks in any of them
                    raise
                continue
            language = language or piece.language
            texts.append(piece.text)
            words += [replace(word, start=start + word.start, end=start + word.end) for word in piece.words]
    return Recording(pieces[-1][1], Transcription(" ".join(filter(None, texts)), language, tuple(words)))


def _heard(recogniser: Recogniser, data: bytes, span: tuple[float, float], language: str, param: str) -> Transcription:
    clip = read_clip(data, param, *span)
    return recogniser.recognise(resampled(clip.pcm, clip.sample_rate, RATE), language.partition("-")[0].lower())


def split_recording(levels: np.ndarray, seconds: float, param: str) -> list[tuple[float, float]]:
    """Start and end of each piece of a recording, in seconds. Raises InvalidClip."""
    if not MIN_SECONDS - 1e-6 <= seconds <= LONGEST:
        limits = f"from {MIN_SECONDS:g} to {LONGEST:g} s are allowed"
        raise InvalidClip(f"the recording lasts {seconds:.2f} s; {limits}", param)
    ends = [*_ends(levels, seconds), seconds]
    return list(zip([0.0, *ends[:-1]], ends, strict=True))


def _ends(levels: np.ndarray, seconds: float) -> Iterator[float]:
    """End of each piece except the last, in seconds."""
    smoothed = np.convolve(np.nan_to_num(levels), np.ones(PAUSE) / PAUSE, mode="same")
    start = 0.0
    while seconds - start > MAX_SECONDS:
        first, last = (round((start + length) / STEP) for length in PIECE)
        # The last piece must not be too short.
        last = min(last, round((seconds - MIN_SECONDS) / STEP))
        start = (first + int(smoothed[first:last].argmin())) * STEP
        yield start

"""POST /v1/asr: transcribes recordings with the studio's recogniser, for Fish Audio's clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from studio.api.fish.fish_body import MESSAGE_PACK, is_true, read_files
from studio.api.http.hangup import until_hangup
from studio.api.http.openapi import reads_form
from studio.api.http.upload import Form
from studio.audio.read import MAX_BYTES, MAX_SECONDS, MIN_SECONDS, STEP
from studio.errors import InvalidClip
from studio.library import Cut
from studio.library.checks import clean_language
from studio.voices.clip_service import ClipService
from studio.voices.hearing.recogniser import Word

RECORDING = reads_form("audio", "language", "ignore_timestamps", required=("audio",), more_types=(MESSAGE_PACK,))
LIMIT = MAX_BYTES + 256 * 1024
LONGEST = 300.0
"""Seconds of a recording."""
PIECE = (20.0, 28.0)
"""Seconds: longer recordings are transcribed in pieces that end at the quietest moment in this range."""
PAUSE = round(0.2 / STEP)


def asr_routes(clips: ClipService) -> APIRouter:
    """The route, on this service's recogniser."""
    routes = APIRouter(tags=["fish audio"])

    @routes.post("/v1/asr", openapi_extra=RECORDING)
    async def transcribe(request: Request) -> JSONResponse:
        """Transcribe ``audio`` (1 s to 5 minutes), with word times unless ``ignore_timestamps`` is true."""
        form = await read_files(request, LIMIT, "audio", 1)
        return JSONResponse(await until_hangup(request, _transcribe(form, clips, request.state.caller)))

    return routes


async def _transcribe(form: Form, clips: ClipService, caller: str) -> dict[str, Any]:
    data, language = form.file("audio"), clean_language(form.text("language"))
    pieces = split_recording(*await clips.levels(caller, data, "audio"))
    texts, segments = list[str](), list[dict[str, Any]]()
    for start, end in pieces:
        clip = await clips.decode(caller, data, Cut(start, end), "audio")
        transcription = await clips.transcriber.transcribe(clip, caller, language)
        language = language or transcription.language
        texts.append(transcription.text)
        segments += [_segment(word, start) for word in transcription.words]
    return {
        "text": " ".join(filter(None, texts)),
        "duration": round(pieces[-1][1], 3),
        "segments": [] if is_true(form, "ignore_timestamps") else segments,
        "language": language,
        "language_code": language.partition("-")[0],
    }


def _segment(word: Word, start: float) -> dict[str, Any]:
    """A word in a piece that begins at ``start``, with times in the whole recording."""
    return {"text": word.word, "start": round(start + word.start, 3), "end": round(start + word.end, 3)}


def split_recording(levels: np.ndarray, seconds: float) -> list[tuple[float, float]]:
    """Start and end of each piece of a recording, in seconds. Raises InvalidClip."""
    if not MIN_SECONDS - 1e-6 <= seconds <= LONGEST:
        limits = f"from {MIN_SECONDS:g} to {LONGEST:g} s are allowed"
        raise InvalidClip(f"the recording lasts {seconds:.2f} s; {limits}", "audio")
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

"""POST /v1/audio/transcriptions: OpenAI's transcription of recordings, with the studio's recogniser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from manuscript.subtitles import write_srt, write_vtt
from studio.api.openapi import reads_form
from studio.api.sending import until_hangup
from studio.api.upload import read_form
from studio.errors import InvalidRequest
from studio.voices.clip_service import ClipService
from studio.voices.recogniser import Word
from studio.voices.recordings import FORM_LIMIT, transcribed

FORMATS = ("json", "text", "srt", "verbose_json", "vtt")
RECORDING = reads_form("file", "model", "language", "response_format", "prompt", "temperature", required=("file",))
CUE_SECONDS = 6.0
CUE_CHARACTERS = 80
"""Limits of a segment: two lines of a subtitle, and the time that they take to read."""
PAUSE_SECONDS = 0.8
"""A longer pause between words begins another segment."""


def transcription_routes(clips: ClipService) -> APIRouter:
    """The route, on this service's recogniser."""
    routes = APIRouter(tags=["speech"])

    @routes.post("/v1/audio/transcriptions", openapi_extra=RECORDING)
    async def create_transcription(request: Request) -> Response:
        """Transcribe ``file`` (1 s to 5 minutes): json, text, srt, vtt, or verbose_json with the times of words."""
        form = await read_form(request, FORM_LIMIT, "file")
        kind = form.text("response_format").strip().lower() or "json"
        if kind not in FORMATS:
            raise InvalidRequest(f"response_format must be one of {', '.join(FORMATS)}", "response_format")
        work = transcribed(clips, request.state.caller, form.file("file"), form.text("language"), "file")
        recording = await until_hangup(request, work)
        heard = recording.transcription
        if kind == "json":
            return JSONResponse({"text": heard.text})
        if kind == "text":
            return PlainTextResponse(f"{heard.text}\n")
        cues = [(start, end, text, "") for start, end, text in _segments(heard.words)]
        if kind == "srt":
            return PlainTextResponse("".join(write_srt(cues)))
        if kind == "vtt":
            return PlainTextResponse("".join(write_vtt(cues)), media_type="text/vtt")
        segments = [
            {"id": number, "start": round(start, 3), "end": round(end, 3), "text": text}
            for number, (start, end, text, _) in enumerate(cues)
        ]
        words = [{"word": word.word, "start": round(word.start, 3), "end": round(word.end, 3)} for word in heard.words]
        facts = {"task": "transcribe", "language": heard.language, "duration": round(recording.seconds, 3)}
        return JSONResponse(facts | {"text": heard.text, "segments": segments, "words": words})

    return routes


def _segments(words: Iterable[Word]) -> Iterator[tuple[float, float, str]]:
    """Start, end and text of each segment: up to the end of a sentence, a pause, or as much as a subtitle holds."""
    held: list[Word] = []
    for word in words:
        if held and (
            held[-1].word.endswith((".", "!", "?", "。", "！", "？"))
            or word.start - held[-1].end > PAUSE_SECONDS
            or word.end - held[0].start > CUE_SECONDS
            or sum(len(each.word) + 1 for each in held) + len(word.word) > CUE_CHARACTERS
        ):
            yield held[0].start, held[-1].end, " ".join(each.word for each in held)
            held = []
        held.append(word)
    if held:
        yield held[0].start, held[-1].end, " ".join(each.word for each in held)

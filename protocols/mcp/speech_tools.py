"""MCP tools for speech and voices: speak, list and clone voices, transcribe, stop, readings and pronunciations."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import AudioContent, CallToolResult, ContentBlock, ResourceLink, TextContent
from pydantic import Field

from audio.formats import MEDIA_TYPES
from protocols.mcp.studio_client import StudioClient
from studio.supervisor import end_tasks

StudioOf = Callable[[Context], StudioClient]
MAX_BLOCK = 2**20
"""Bytes of audio in an answer, a minute of MP3; base64 fills the context of clients that do not take it out."""
QUOTED = 300
"""Characters of a document quoted in an answer."""
TICK_SECONDS = 1.0

Voice = Annotated[str, Field(max_length=200, description="A slug, name or id of list_voices.")]
LocalPath = Annotated[str | None, Field(description="A file of this machine; only over stdio.")]


@asynccontextmanager
async def reporting(context: Context, message: str) -> AsyncIterator[None]:
    """Report the seconds that work takes, if the client asked for progress; this also keeps its time limit away."""

    async def tick() -> None:
        seconds = 0.0
        while True:
            await asyncio.sleep(TICK_SECONDS)
            seconds += TICK_SECONDS
            await context.report_progress(seconds, None, message)

    await context.report_progress(0, None, message)
    ticking = asyncio.create_task(tick())
    try:
        yield
    finally:
        await end_tasks(ticking)


def quoted(text: object) -> str:
    """A line of a document, shortened."""
    line = " ".join(str(text or "").split())
    return line if len(line) <= QUOTED else line[: QUOTED - 1] + "…"


class SpeechTools:
    """``studio_of``: the studio that a call is for."""

    def __init__(self, studio_of: StudioOf) -> None:
        self._studio_of = studio_of

    async def speak(
        self,
        context: Context,
        text: Annotated[str, Field(min_length=1)],
        voice: Voice = "default",
        speed: Annotated[float, Field(ge=0.25, le=4)] = 1.0,
        seed: Annotated[int | None, Field(ge=0)] = None,
        format: Literal["mp3", "wav", "flac", "opus", "aac"] = "mp3",
        save_as: LocalPath = None,
    ) -> CallToolResult:
        """Speak a text. Answers with the audio (up to a minute), a link to it and the take's id.

        Longer texts than 16,384 characters are for make_audiobook. Tags such as [whisper] or [pause:1s] may be in the
        text. save_as: also write a new file.
        """
        studio = self._studio_of(context)
        file = None if save_as is None else await studio.new_file(save_as)
        body = {"input": text, "voice": voice, "speed": speed, "seed": seed, "response_format": format, "live": True}
        async with reporting(context, "speaking"):
            answer = await studio.send("POST", "/v1/audio/speech", json=body)
        take = answer.headers["x-request-id"]
        facts: dict[str, Any] = {"take": take, "bytes": len(answer.content)}
        facts |= {name: answer.headers.get(f"x-{name}", "") for name in ("voice", "seed")}
        if file is not None:
            facts["path"] = await studio.save(file, answer.content)
        kind = MEDIA_TYPES[format]
        link = f"{studio.address}/v1/takes/{take}/audio?format={format}"
        blocks: list[ContentBlock] = [
            TextContent(text=", ".join(f"{name}: {value}" for name, value in facts.items())),
            ResourceLink(uri=link, name=f"{take}.{format}", mime_type=kind, size=len(answer.content)),
        ]
        if len(answer.content) <= MAX_BLOCK:
            blocks.append(AudioContent(data=base64.b64encode(answer.content).decode(), mime_type=kind))
        return CallToolResult(content=blocks, structured_content=facts | {"link": link})

    async def list_voices(
        self,
        context: Context,
        query: Annotated[str, Field(max_length=200, description="Words of name, description or tags.")] = "",
        language: Annotated[str, Field(max_length=35, description="BCP 47, such as de.")] = "",
        gender: Literal["", "female", "male", "neutral"] = "",
        after: Annotated[str | None, Field(description="last_id of the page before.")] = None,
    ) -> dict[str, Any]:
        """List the voices of the library, a hundred at once."""
        studio = self._studio_of(context)
        page = await studio.get("/v1/voices", q=query, language=language, gender=gender, limit=100, after=after)
        names = ("slug", "name", "language", "gender", "accent", "favourite")
        voices = [
            {name: voice[name] for name in names} | {"description": quoted(voice["description"])}
            for voice in page["data"]
        ]
        return {"voices": voices, "has_more": page["has_more"], "last_id": page["last_id"]}

    async def clone_voice(
        self,
        context: Context,
        name: Annotated[str, Field(min_length=1, max_length=100)],
        consent: Annotated[str, Field(min_length=10, description="The speaker's consent in words: who allows what.")],
        path: LocalPath = None,
        audio_base64: str | None = None,
        transcript: Annotated[str, Field(max_length=2000, description="The words in the clip.")] = "",
        language: Annotated[str, Field(max_length=35)] = "",
    ) -> dict[str, Any]:
        """Create a voice from a clip of 1 to 30 seconds.

        Only with the consent of the person who speaks in it: ask the user, never invent it; it is stored with the
        voice. Without a transcript, the clip is transcribed if there is a recogniser.
        """
        studio = self._studio_of(context)
        clip = await studio.file_of(path, audio_base64, "audio_base64")
        fields = {"name": name, "consent": consent, "ref_text": transcript, "language": language}
        async with reporting(context, "creating the voice"):
            answer = await studio.send(
                "POST",
                "/v1/audio/voices",
                data=fields,
                files={"audio_sample": ("clip", clip, "application/octet-stream")},
            )
        voice = answer.json()
        return {"voice": voice["id"], "name": voice["name"]}

    async def transcribe(
        self, context: Context, path: LocalPath = None, audio_base64: str | None = None, language: str = ""
    ) -> dict[str, Any]:
        """Transcribe a recording of 1 second to 5 minutes, with the times of its words; needs a recogniser."""
        studio = self._studio_of(context)
        recording = await studio.file_of(path, audio_base64, "audio_base64")
        async with reporting(context, "transcribing"):
            answer = await studio.send(
                "POST",
                "/v1/audio/transcriptions",
                data={"language": language, "response_format": "verbose_json"},
                files={"file": ("recording", recording, "application/octet-stream")},
            )
        heard = answer.json()
        return {name: heard[name] for name in ("text", "language", "duration", "words")}

    async def stop(self, context: Context, id: Annotated[str, Field(min_length=1, max_length=100)]) -> dict[str, Any]:
        """Stop a request (a take's id, req_…), or the generation of a project (its id); finished audio is kept."""
        studio = self._studio_of(context)
        if id.startswith("req_"):
            await studio.send("DELETE", f"/v1/requests/{segment(id)}")
        else:
            await studio.post(f"/v1/projects/{segment(id)}/cancel", {})
        return {"stopped": id}

    async def show_reading(
        self,
        context: Context,
        text: Annotated[str, Field(min_length=1)],
        voice: Voice = "default",
    ) -> dict[str, Any]:
        """Show how a text would be read: numbers, dates and abbreviations as words, pronunciations applied. Nothing is
        spoken. If a reading looks wrong, add_pronunciation corrects it."""
        studio = self._studio_of(context)
        reading = await studio.post("/v1/audio/speech/reading", {"input": text, "voice": voice})
        return {name: reading[name] for name in ("text", "changed", "language")}

    async def add_pronunciation(
        self,
        context: Context,
        phrase: Annotated[str, Field(min_length=1, max_length=200)],
        said: Annotated[str, Field(max_length=200, description="What is spoken instead.")],
        project: Annotated[str | None, Field(description="Only in this project.")] = None,
        voice: Annotated[str | None, Field(description="Only in this voice.")] = None,
    ) -> dict[str, Any]:
        """Add an entry to the dictionary of a project, of a voice, or of all."""
        body = {"phrase": phrase, "said": said, "project": project, "voice": voice}
        entry = await self._studio_of(context).post("/v1/pronunciations", body)
        return {"pronunciation": entry["id"]}


def segment(id: str) -> str:
    """An id as a segment of a path. Raises ToolError for anything that would be another path."""
    if not id or not all(sign.isalnum() or sign in "_-" for sign in id):
        raise ToolError(f"{id[:80]!r} is not an id")
    return id

"""Home Assistant's protocol Wyoming: a server whose connections speak or transcribe, one event after another.

From the client:  describe, ping
                  synthesize {text, voice?}                       a whole text
                  synthesize-start {voice?}, synthesize-chunk {text} …, synthesize-stop    a text while it is written
                  transcribe {language?}, audio-start {rate, width, channels}, audio-chunk …, audio-stop
From the server:  info, pong, transcript {text, language}, error {text, code} and the end
                  audio-start, audio-chunk …, audio-stop, once for each text; after a written text synthesize-stopped

An event is a line of JSON, then as many bytes of JSON and of audio as it announces; all are bounded. Not by the package
`wyoming`: its reader accepts any length, and its server takes over SIGTERM. The address is STUDIO_WYOMING.
"""

from __future__ import annotations

import asyncio
import json
import time
from asyncio import IncompleteReadError, StreamReader, StreamWriter
from collections.abc import Iterable
from contextlib import aclosing, closing, suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import anyio
import numpy as np
from anyio import to_thread
from pydantic import BaseModel, Field, PrivateAttr

from audio.read import USUAL_RATES, Clip
from engine import EngineError
from protocols import constants_of
from protocols.live_speech import LiveSpeech
from studio import __version__
from studio.api.body import as_model, parse_object
from studio.api.error_responses import ApiError, describe
from studio.api.field_types import NO_BOOLEAN, Whole
from studio.api.sessions import surplus
from studio.api.text_socket import FIRST_SECONDS, IDLE_SECONDS, WrittenText
from studio.errors import REFUSALS, InvalidRequest, TooCostly, TooManyRequests
from studio.library import Voice
from studio.server import SEND_SECONDS
from studio.services import Studio
from studio.speech.request import SpeechRequest, new_request_id
from studio.supervisor import HealthCheck, end_tasks, first_of
from studio.voices.recogniser import Transcription
from studio.voices.resolver import RANDOM_VOICE

ABOUT = {"name": "Fish Voice Studio", "url": ""}  # the attribution, which the protocol requires
UNKNOWN_LANGUAGES = ("en",)
"""Languages of a voice and a model that name none: Home Assistant offers only voices that have one."""
RECOGNISED: list[str] = constants_of("wyoming")["recognised"]
"""Languages that Whisper's models transcribe well; a client may send others."""
MAX_CONNECTIONS = 64
"""Maximum clients at once, each of which may hold a recording of 4 MiB: one more ends an idle one; half of them may be
busy from one address."""
MAX_BLOCK = 256 * 1024
"""Maximum bytes of a line, of the data and of the audio of an event: room for the longest text with every character
escaped, and for two seconds of audio, of which clients send less than a tenth at once."""
MAX_TEXTS = 4  # maximum texts that wait for the one being spoken
MAX_RECORDING = 4 * 2**20
"""Bytes of a recording to transcribe: two minutes as Home Assistant sends it."""
DRAIN_SECONDS = 2.0  # for an error message to reach a client that is still sending
WIDTH = 2  # bytes of a sample
Length = Annotated[int, Field(ge=0, le=MAX_BLOCK), NO_BOOLEAN]


class WyomingServer:
    """Listens on one address; runs as background work, so that a port in use is reported and tried again."""

    def __init__(self, studio: Studio, host: str, port: int) -> None:
        self._studio, self._host, self._port = studio, host, port
        self._connections: dict[asyncio.Task[None], WyomingConnection] = {}
        self.watch = HealthCheck("wyoming")

    async def serve(self) -> None:
        """Serve until cancelled. Raises OSError if the address cannot be used."""
        try:
            server = await asyncio.start_server(self._connected, self._host, self._port, limit=MAX_BLOCK)
        except OSError as error:
            reason = f"STUDIO_WYOMING=tcp://{self._host}:{self._port} cannot be listened on; choose another one"
            raise OSError(f"{reason}: {error.strerror or error}") from error
        self.watch.report_success()
        try:
            await asyncio.Event().wait()
        finally:
            server.close()
            await end_tasks(*self._connections)

    def _connected(self, reader: StreamReader, writer: StreamWriter) -> None:
        new = WyomingConnection(self._studio, reader, writer, self._connections.values())
        task = asyncio.create_task(new.serve())
        self._connections[task] = new
        task.add_done_callback(lambda _: self._connections.pop(task, None))
        idle = [(each.caller, each.used, task) for task, each in self._connections.items() if each.is_idle]
        for each in surplus(idle, MAX_CONNECTIONS - (len(self._connections) - len(idle))):
            self._connections.pop(each).end()
            each.cancel()


def register(studio: Studio) -> None:
    """Add the server to a studio if it has an address for it."""
    if studio.settings.wyoming is not None:
        address = urlsplit(studio.settings.wyoming)
        server = WyomingServer(studio, address.hostname or "", address.port or 0)
        studio.additions.jobs.append((server.watch, server.serve))


class WyomingConnection:
    """One client. Its end cancels its speech."""

    def __init__(
        self, studio: Studio, reader: StreamReader, writer: StreamWriter, clients: Iterable[WyomingConnection]
    ) -> None:
        """``clients``: all that are connected."""
        self._studio, self._service = studio, studio.speech
        self._reader, self._writer, self._clients = reader, writer, clients
        self.caller = f"address {(writer.get_extra_info('peername') or ('unknown',))[0]}"
        self.used = time.monotonic()  # when the last event came
        self._is_reading = self._is_silent = True
        """Whether the next event is awaited; whether the next text is."""
        self._texts: asyncio.Queue[tuple[LiveSpeech, bool]] = asyncio.Queue()
        """Texts to speak, each with whether it is spoken while it is written."""
        self._writing: WrittenText | None = None
        self._recording: _Recording | None = None
        self._language = ""
        self._seconds = FIRST_SECONDS

    async def serve(self) -> None:
        """Run until the client leaves, is silent for too long, or makes an error."""
        with closing(self._writer), suppress(TimeoutError, OSError):  # once the client receives no longer
            try:
                await first_of(self._read(), self._speak())
            except (ApiError, *REFUSALS, EngineError) as error:
                refusal = describe(error)
                await self._send("error", text=refusal.message, code=refusal.code or str(refusal.status))
                await self._drain()

    @property
    def is_idle(self) -> bool:
        return self._is_reading and not self._is_working

    @property
    def _is_working(self) -> bool:
        """Whether it speaks, or receives a text or a recording."""
        return not (self._is_silent and self._texts.empty() and self._writing is self._recording is None)

    def _check_share(self) -> None:
        """Raises TooManyRequests if this client would work and as many as may of its address do already."""
        others = [each for each in self._clients if each is not self and each.caller == self.caller]
        if sum(each._is_working for each in others) >= MAX_CONNECTIONS // 2:
            most = MAX_CONNECTIONS // 2
            raise TooManyRequests(f"{most} clients of your address are busy, the maximum; try again later")

    def end(self) -> None:
        """Say why an idle connection ends."""
        problem = f"{MAX_CONNECTIONS} clients are connected, the maximum, and this one is idle; connect when it speaks"
        self._writer.write(Event("error", {"text": problem, "code": TooManyRequests.code}).as_bytes())
        self._writer.close()

    async def _drain(self) -> None:
        """Discard what the client still sends: closing at once could lose the error on its way."""
        self._writer.write_eof()
        with anyio.move_on_after(DRAIN_SECONDS):
            while await self._reader.read(MAX_BLOCK):
                pass

    async def _read(self) -> None:
        while True:
            event, self._is_reading = None, True
            with anyio.move_on_after(self._seconds):
                event = await read_event(self._reader)
            self._is_reading = False
            if event is None:
                return
            self._seconds, self.used = IDLE_SECONDS, time.monotonic()
            await self._take(event)
            await asyncio.sleep(0)  # let other tasks run even if many events have arrived

    async def _take(self, event: Event) -> None:
        """Unknown events are ignored, as the protocol demands."""
        if event.kind == "describe":
            await self._send("info", **await self._info())
        elif event.kind == "ping":
            await self._send("pong", text=event.fields().text or "")
        elif event.kind == "synthesize":
            if self._writing is None:  # otherwise the written text once more, for servers without streaming
                fields = event.fields()
                (await self._begin(fields, is_written=False)).add_whole(fields.text or "")
        elif event.kind == "synthesize-start":
            if self._writing is not None:
                raise InvalidRequest("synthesize-start came before the synthesize-stop of the previous one", "type")
            self._writing = await self._begin(event.fields(), is_written=True)
        elif event.kind in ("synthesize-chunk", "synthesize-stop"):
            if self._writing is None:
                raise InvalidRequest(f"{event.kind} came before synthesize-start", "type")
            if event.kind == "synthesize-chunk":
                self._writing.add(event.fields().text or "")
            else:
                self._writing.complete()
                self._writing = None
        elif event.kind == "transcribe":
            self._studio.clips.transcriber.require()
            self._language = event.fields().language or ""
        elif event.kind.startswith("audio-"):
            await self._hear(event)

    async def _info(self) -> dict[str, Any]:
        card = self._service.host.engine().info.card if self._service.status.state == "ready" else None
        languages = (card.languages if card else ()) or UNKNOWN_LANGUAGES
        voices = [
            _artifact(voice.slug, voice.name) | {"languages": [voice.language] if voice.language else languages}
            for voice in await self._listed()
        ]
        studio, name = _artifact("fish-voice-studio", ABOUT["name"]), self._studio.clips.transcriber.name
        speech = studio | {"voices": voices, "supports_synthesize_streaming": True}
        models = [_artifact(name, name) | {"languages": RECOGNISED}] if name else []
        return {"tts": [speech], "asr": [studio | {"models": models}] if models else []}

    async def _listed(self) -> list[Voice]:
        """The library's voices and the model's own."""
        voices = self._service.voices.seen_by(self.caller)
        listed = await self._service.queues.lists.run(self.caller, lambda: voices.listed)
        return [voice for voice in listed if voice is not RANDOM_VOICE]

    async def _begin(self, fields: _Fields, is_written: bool) -> WrittenText:
        """The text that will be spoken as these fields say. Raises InvalidRequest, and the errors of the voice."""
        if (fields.text_format or "text") != "text":
            raise InvalidRequest("SSML is not supported; send plain text, with tags such as [pause:1s]", "text_format")
        if self._texts.qsize() >= MAX_TEXTS:
            raise InvalidRequest(f"more than {MAX_TEXTS} texts wait; send one after another", "type")
        voice = fields.voice or _Voice()
        name = voice.name or await self._first_in(voice.language or "")
        if name:  # reports an unknown voice before there is text
            await to_thread.run_sync(self._service.voices.seen_by(self.caller).find, name)
        # With keys, nobody could see the takes of a caller without one.
        keeps = not self._studio.settings.api_keys

        def request_for(sentence: str) -> SpeechRequest:
            # One rate for the whole text: clients take the first as that of all audio.
            return SpeechRequest(sentence, name or None, format="pcm", sample_rate=speech.rate, store=keeps)

        speech = LiveSpeech(self._service, request_for, None, new_request_id(), self.caller, is_timed=False)
        self._check_share()  # only now: the voices of several texts may be looked for at once
        self._texts.put_nowait((speech, is_written))
        return speech.text

    async def _first_in(self, language: str) -> str:
        """The slug of the first voice that is said to speak a language; blank if none is."""
        wanted = language.replace("_", "-").casefold()
        if not wanted:
            return ""
        voices = await self._listed()
        known = [(voice.slug, voice.language.casefold()) for voice in voices if voice.language]
        exact = (slug for slug, own in known if own == wanted)
        related = (slug for slug, own in known if own.partition("-")[0] == wanted.partition("-")[0])
        return next(exact, next(related, ""))

    async def _hear(self, event: Event) -> None:
        transcriber = self._studio.clips.transcriber
        if event.kind == "audio-start":
            transcriber.require()
            self._check_share()
            self._recording = as_model(event.data, _Recording)
            if self._recording.rate not in USUAL_RATES:
                raise InvalidRequest("rate must be a usual one, such as 16000", "rate")
        elif self._recording is None:
            raise InvalidRequest(f"{event.kind} came before audio-start", "type")
        elif event.kind == "audio-chunk":
            self._recording.add(event.audio)
        elif event.kind == "audio-stop":
            clip, self._recording = self._recording.clip(), None
            heard = Transcription("", self._language)
            if clip.pcm.size:
                heard = await transcriber.transcribe(clip, self.caller, self._language)
            await self._send("transcript", text=heard.text, language=heard.language)

    async def _speak(self) -> None:
        while True:
            self._is_silent = True
            speech, is_written = await self._texts.get()
            self._is_silent = False
            form: dict[str, Any] = {"rate": speech.rate, "width": WIDTH, "channels": 1, "timestamp": 0}
            size = 0
            async with aclosing(speech.pieces()) as pieces:
                async for piece in pieces:
                    if not size:
                        await self._send("audio-start", **form)
                    await self._send("audio-chunk", piece.audio, **form)
                    size += len(piece.audio)
                    form["timestamp"] = size * 1000 // (WIDTH * speech.rate)
            if not size:
                await self._send("audio-start", **form)
            # Exactly one: a client takes the first as the end of a whole text.
            await self._send("audio-stop", timestamp=form["timestamp"])
            if is_written:
                await self._send("synthesize-stopped")

    async def _send(self, kind: str, audio: bytes = b"", **data: Any) -> None:
        """Raises TimeoutError, OSError if the client stops receiving."""
        with anyio.fail_after(SEND_SECONDS):
            self._writer.write(Event(kind, data, audio).as_bytes())
            await self._writer.drain()


def _artifact(name: str, description: str) -> dict[str, Any]:
    facts = {"name": name, "description": description, "attribution": ABOUT}
    return facts | {"installed": True, "version": __version__}


class _Voice(BaseModel):
    name: str | None = None
    language: str | None = None


class _Fields(BaseModel):
    """The fields of a text. Others are ignored, null means absent."""

    text: str | None = None
    text_format: str | None = None
    language: str | None = None
    voice: _Voice | None = None


class _Recording(BaseModel):
    """The format of a recording, and its samples."""

    rate: Whole
    width: Literal[2]
    channels: Literal[1, 2]
    _pcm: bytearray = PrivateAttr(default_factory=bytearray)

    def add(self, audio: bytes) -> None:
        """Raises TooCostly."""
        self._pcm += audio
        if len(self._pcm) > MAX_RECORDING:
            raise TooCostly(f"a recording may have {MAX_RECORDING} bytes; send shorter ones", "audio")

    def clip(self) -> Clip:
        """The recording; what lacks the samples of a channel at its end is left out."""
        count = len(self._pcm) // (WIDTH * self.channels) * self.channels
        samples = np.frombuffer(self._pcm, "<i2", count).reshape(-1, self.channels).mean(axis=1, dtype=np.float32)
        return Clip(samples / 32768, self.rate)


class _Head(BaseModel):
    """The line of an event."""

    type: str
    data: dict[str, Any] | None = None
    data_length: Length | None = None
    payload_length: Length | None = None


@dataclass(frozen=True, slots=True)
class Event:
    kind: str
    data: dict[str, Any] = field(default_factory=dict)
    audio: bytes = field(default=b"", repr=False)

    def fields(self) -> _Fields:
        """Raises InvalidRequest."""
        return as_model(self.data, _Fields)

    def as_bytes(self) -> bytes:
        data = json.dumps(self.data).encode()
        line = {"type": self.kind, "version": __version__, "data_length": len(data), "payload_length": len(self.audio)}
        return json.dumps(line).encode() + b"\n" + data + self.audio


async def read_event(reader: StreamReader) -> Event | None:
    """The next event; None at the end. ``reader`` must have MAX_BLOCK as its limit. Raises InvalidRequest."""
    try:
        line = await reader.readline()
        if not line:
            return None
        head = as_model(parse_object(line), _Head)
        data = head.data or {}
        if head.data_length:
            data |= parse_object(await reader.readexactly(head.data_length))
        return Event(head.type, data, await reader.readexactly(head.payload_length or 0))
    except IncompleteReadError:
        return None
    except ValueError as error:  # asyncio's, for a line beyond the limit
        raise InvalidRequest(f"an event's line has more than {MAX_BLOCK} bytes", "type") from error

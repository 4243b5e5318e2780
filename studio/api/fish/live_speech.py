"""The speech between a start and its stop: sentence by sentence in one voice, encoded as one file."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from engine import Reference
from studio.api.fish.fish_speech import FishSpeech, Speakers
from studio.api.fish.tts import alignment_of
from studio.api.text_socket import WrittenText
from studio.audio.encode import floats
from studio.audio.formats import SAMPLE_RATES
from studio.errors import NothingToSay
from studio.speech.encoding import Encoding, OutputFile
from studio.speech.request import Origin, SpeechRequest
from studio.speech.speech_service import Speech, SpeechService
from studio.speech.text import PART_BYTES


@dataclass(frozen=True, slots=True)
class LivePiece:
    """Bytes of the file; if times were requested, ``about`` has the facts of their sentence."""

    audio: bytes
    about: dict[str, Any] | None = None


class LiveSpeech:
    """The speech of one start. Write to `text`, iterate `pieces` once; leaving the iteration cancels the speech."""

    def __init__(self, service: SpeechService, options: FishSpeech, name: str, caller: str, is_timed: bool) -> None:
        """``name``: prefix of its request ids. ``is_timed``: whether word times are requested."""
        self.text = WrittenText(options.chunk_length or PART_BYTES)
        self._service = service
        self._options = options
        self._name, self._caller, self._is_timed = name, caller, is_timed
        self._speakers = Speakers()
        self._history: list[Reference] = []
        self._codec = ""
        self._encoding: Encoding | None = None
        self._seconds = 0.0

    async def pieces(self) -> AsyncGenerator[LivePiece, None]:
        """The file's bytes as they are generated; nothing without text. Raises the errors of `SpeechService.speak`."""
        number = 0
        while (sentence := await self.text.next()) is not None:
            request = self._request(sentence)
            history = None if request.cast is not None else self._history_for_codec()
            origin = Origin(f"{self._name}-{number}", self._caller, patient=True)
            try:
                speech = await self._service.speak(request, origin, history)
            except NothingToSay:
                continue  # only punctuation or tags
            metadata = {"content": sentence, "alignment": None, "chunk_seq": number}
            async with aclosing(speech):
                async for audio in self._file_of(speech):
                    yield LivePiece(audio, self._metadata(metadata))
            if self._is_timed:
                seconds = speech.take.audio_s / request.speed
                alignment = alignment_of(await speech.timestamps("word"), seconds)
                yield LivePiece(b"", self._metadata(metadata | {"alignment": alignment}))
            self._seconds += speech.take.audio_s / request.speed
            number += 1
        if self._encoding is not None and (tail := await self._encoding.finish()):
            yield LivePiece(tail, None)

    def _history_for_codec(self) -> list[Reference]:
        """Empty once a model with another codec is loaded, for which these codes mean other sounds."""
        if (codec := self._service.host.engine().info.codec_fingerprint) != self._codec:
            self._codec, self._history = codec, []
        return self._history

    def _request(self, sentence: str) -> SpeechRequest:
        """A request for raw samples at the model's own rate; they are encoded here, as all sentences are one file."""
        return self._options.raw_request(self._speakers.continued(sentence), self._rate)

    @property
    def _rate(self) -> int:
        rate = self._service.host.engine().info.sample_rate
        return rate if rate in SAMPLE_RATES else 44_100

    async def _file_of(self, speech: Speech) -> AsyncGenerator[bytes, None]:
        if self._encoding is None:
            request = self._options.speech_request("a")
            file = OutputFile(request.format, request.sample_rate, bit_rate=request.bit_rate)
            self._encoding = Encoding(file, self._rate)
        remainder = b""
        async for chunk in speech.body:
            samples = remainder + chunk
            size = len(samples) - len(samples) % 2
            remainder = samples[size:]
            if audio := await self._encoding.write(floats(samples[:size])):
                yield audio

    def _metadata(self, metadata: dict[str, Any]) -> dict[str, Any] | None:
        return metadata | {"chunk_audio_offset_sec": round(self._seconds, 3)} if self._is_timed else None

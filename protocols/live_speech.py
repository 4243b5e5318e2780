"""Speech of a text in progress, sentence by sentence in one voice as one file; and dialogues, for other protocols."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

from audio.encode import floats
from audio.formats import SAMPLE_RATES
from speechtext import NothingToSay
from speechtext.script import is_blank
from studio.api.text_socket import WrittenText
from studio.speech.conversation import ConversationHistory
from studio.speech.delivery import Encoding, OutputFile, Speech
from studio.speech.request import Origin, SpeechRequest
from studio.speech.speech_service import SpeechService
from studio.speech.word_times import Spoken


@dataclass(frozen=True, slots=True)
class LivePiece:
    """Bytes of the file, and the sentence to which they belong; the file's last bytes have none: it is blank."""

    audio: bytes
    sentence: str = ""
    number: int = 0
    start: float = 0.0
    """Where the sentence begins in the file, in seconds."""
    spoken: Spoken | None = None
    """After the last bytes of a sentence, if times are requested: its times, from its own start, without audio."""


class LiveSpeech:
    """Write to `text`, iterate `pieces` once; leaving the iteration cancels the speech."""

    def __init__(
        self,
        service: SpeechService,
        request_for: Callable[[str], SpeechRequest],
        limit: int | None,
        name: str,
        caller: str,
        is_timed: bool,
    ) -> None:
        """``request_for``: the request for a sentence in the file's format; called once for each sentence, in order.

        ``limit``: see WrittenText. ``name``: prefix of its request ids. ``is_timed``: whether word times are requested.
        Raises NotReady, Unavailable.
        """
        self.text = WrittenText(limit)
        self._service = service
        self._request_for = request_for
        self._name, self._caller, self._is_timed = name, caller, is_timed
        self._history = ConversationHistory()
        rate = service.host.engine().info.sample_rate
        self.rate = rate if rate in SAMPLE_RATES else 44_100
        """The sample rate of the generated sound, the same for all sentences: the model's, unless formats lack it."""
        self._encoding: Encoding | None = None

    async def pieces(self) -> AsyncGenerator[LivePiece, None]:
        """The file's bytes as they are generated; nothing without text. Raises the errors of `SpeechService.speak`."""
        number, start = 0, 0.0
        while (sentence := await self.text.next()) is not None:
            request = self._request_for(sentence)
            history = None if request.cast is not None else self._history
            origin = Origin(f"{self._name}-{number}", self._caller, patient=True, live=True)
            # Raw samples: they are encoded here, as all sentences are one file.
            raw = replace(request, format="pcm", sample_rate=self.rate, bit_rate=None)
            try:
                speech = await self._service.speak(raw, origin, history)
            except NothingToSay:
                continue  # only punctuation or tags
            async with aclosing(speech):
                async for audio in self._file_of(speech, request):
                    yield LivePiece(audio, sentence, number, start)
            seconds = speech.take.audio_s / request.speed
            if self._is_timed:
                spoken = await speech.spoken() or Spoken([], [], seconds)
                yield LivePiece(b"", sentence, number, start, replace(spoken, end=seconds))
            start += seconds
            number += 1
        if self._encoding is not None and (tail := await self._encoding.finish()):
            yield LivePiece(tail)

    async def _file_of(self, speech: Speech, request: SpeechRequest) -> AsyncGenerator[bytes, None]:
        if self._encoding is None:
            file = OutputFile(request.format, request.sample_rate, bit_rate=request.bit_rate)
            self._encoding = Encoding(file, self.rate)
        async for samples in speech.body:
            if audio := await self._encoding.write(floats(samples)):
                yield audio


def dialogue_fields(turns: Iterable[tuple[int, str]], voices: Sequence[str]) -> dict[str, Any]:
    """The text and the cast of a dialogue: each turn has the index of its voice, and its words."""
    lines, cast = [], {}
    for number, words in turns:
        if not is_blank(words):
            cast[f"Speaker {number}"] = voices[number]
            lines.append(f"Speaker {number}: {' '.join(words.split())}")
    return {"text": "\n".join(lines), "cast": cast}

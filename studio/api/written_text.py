"""A text that is spoken while it is still being written: sentence after sentence, no more than MAX_INPUT held."""

from __future__ import annotations

import asyncio

from studio.errors import InvalidRequest
from studio.speech.planning.plan import PROBE
from studio.speech.request import MAX_INPUT
from studio.speech.text import Sentences


class WrittenText:
    """Between a writer and a speaker on one event loop."""

    def __init__(self, limit: int | None = None) -> None:
        """``limit``: characters after which a sentence is spoken as far as its last word, complete or not."""
        self._limit = limit
        self._held = Sentences()
        self._sentences: asyncio.Queue[str | None] = asyncio.Queue()
        self._waiting = 0  # characters in them
        self.is_complete = False

    def add(self, text: object) -> None:
        """More of the text. Raises InvalidRequest where it is not a string, or too much of it is waiting."""
        if not isinstance(text, str):
            raise InvalidRequest("text must be a string", "text")
        if self._held.size + len(text) + self._waiting > MAX_INPUT:
            raise InvalidRequest(f"more than {MAX_INPUT} characters are waiting to be spoken", "text")
        self._put(self._held.add(text))
        if self._limit is not None and self._held.size > self._limit:
            for piece in self._held.flush():
                head, _, tail = (piece, "", "") if text[-1:].isspace() else piece.rpartition(" ")
                self._put([head or tail])
                self._held.add(tail if head else "")

    def flush(self) -> None:
        """What is held is spoken, whether its sentence is complete or not."""
        self._put(self._held.flush())

    def complete(self) -> None:
        """No more is written."""
        self.flush()
        self.is_complete = True
        self._sentences.put_nowait(None)

    def drop(self) -> None:
        """Forget what is not being spoken yet."""
        self._held, self._waiting = Sentences(), 0
        while not self._sentences.empty():
            self._sentences.get_nowait()
        if self.is_complete:
            self._sentences.put_nowait(None)

    async def next(self) -> str | None:
        """The next sentence, once it is complete; None after the last."""
        sentence = await self._sentences.get()
        self._waiting -= len(sentence or "")
        return sentence

    def _put(self, sentences: list[str]) -> None:
        for sentence in sentences:
            if PROBE.fullmatch(sentence):
                continue  # an ellipsis between sentences is not a probe
            self._waiting += len(sentence)
            self._sentences.put_nowait(sentence)

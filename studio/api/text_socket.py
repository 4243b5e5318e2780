"""Sockets that generate speech while its text is written: a reader and a speaker run concurrently."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import Any

import anyio
from fastapi import WebSocket
from starlette.websockets import WebSocketDisconnect

from engine import EngineError
from studio.api.http.error_responses import ApiError, describe
from studio.api.http.middleware import SEND_SECONDS
from studio.errors import InvalidRequest, StudioError
from studio.speech.planning.plan import PROBE
from studio.speech.request import MAX_INPUT, new_request_id
from studio.speech.speech_service import SpeechService
from studio.speech.text import Sentences
from studio.supervisor import end_tasks


class TextSocket(ABC):
    """One connection; subclasses implement a protocol."""

    def __init__(self, websocket: WebSocket, service: SpeechService) -> None:
        self._websocket = websocket
        self._service = service
        self._id = new_request_id()
        self._caller: str = websocket.scope["state"]["caller"]

    async def serve(self) -> None:
        """Run until all speech is sent, an error occurs or the client disconnects."""
        await self._websocket.accept()
        try:
            await self._run()
        except (WebSocketDisconnect, TimeoutError):
            return  # the client has disconnected

    async def _run(self) -> None:
        tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._speak())]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
            await self._finish()
        except (ApiError, StudioError, EngineError) as error:
            refusal = describe(error)
            await self._refuse(refusal)
            await self._websocket.close(1008 if refusal.status < 500 else 1011)
        finally:
            await end_tasks(*tasks)

    async def _receive(self, kind: str, expected: str, param: str) -> Any:
        """The next message. kind: text or bytes. Raises InvalidRequest, WebSocketDisconnect."""
        await asyncio.sleep(0)  # let other tasks run even if many messages have arrived
        message = await self._websocket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code") or 1005)
        if message.get(kind) is None:
            raise InvalidRequest(f"messages must be {expected}", param)
        return message[kind]

    async def _send(self, message: str | bytes) -> None:
        """Raises TimeoutError if the client stops receiving."""
        with anyio.fail_after(SEND_SECONDS):
            if isinstance(message, bytes):
                await self._websocket.send_bytes(message)
            else:
                await self._websocket.send_text(message)

    @abstractmethod
    async def _read(self) -> None:
        """Process messages until the last."""

    @abstractmethod
    async def _speak(self) -> None:
        """Send speech; the session ends when this returns."""

    @abstractmethod
    async def _refuse(self, error: ApiError) -> None:
        """Send the error that ends the session."""

    async def _finish(self) -> None:
        await self._websocket.close()


class WrittenText:
    """Splits text from a writer into sentences for a speaker, on one event loop."""

    def __init__(self, limit: int | None = None) -> None:
        """``limit``: characters after which an incomplete sentence is cut after its last complete word."""
        self._limit = limit
        self._held = Sentences()
        self._sentences: asyncio.Queue[str | None] = asyncio.Queue()
        self._waiting_characters = 0  # characters of these sentences
        self.is_complete = False

    def add(self, text: object) -> None:
        """Add text. Raises InvalidRequest if it is not a string or too much text is waiting."""
        if not isinstance(text, str):
            raise InvalidRequest("text must be a string", "text")
        if self._held.size + len(text) + self._waiting_characters > MAX_INPUT:
            raise InvalidRequest(f"more than {MAX_INPUT} characters are waiting", "text")
        self._put(self._held.add(text))
        if self._limit is not None and self._held.size > self._limit:
            for piece in self._held.flush():
                head, _, tail = (piece, "", "") if text[-1:].isspace() else piece.rpartition(" ")
                self._put([head or tail])
                self._held.add(tail if head else "")

    def flush(self) -> None:
        """Release the held text, even if its sentence is incomplete."""
        self._put(self._held.flush())

    def complete(self) -> None:
        """End the text."""
        self.flush()
        self.is_complete = True
        self._sentences.put_nowait(None)

    def drop(self) -> None:
        """Discard all sentences that have not been taken yet."""
        self._held, self._waiting_characters = Sentences(), 0
        while not self._sentences.empty():
            self._sentences.get_nowait()
        if self.is_complete:
            self._sentences.put_nowait(None)

    async def next(self) -> str | None:
        """The next sentence, once it is complete; None after the last."""
        sentence = await self._sentences.get()
        self._waiting_characters -= len(sentence or "")
        return sentence

    def _put(self, sentences: list[str]) -> None:
        for sentence in sentences:
            if PROBE.fullmatch(sentence):
                continue  # an ellipsis between sentences must not become a probe request
            self._waiting_characters += len(sentence)
            self._sentences.put_nowait(sentence)

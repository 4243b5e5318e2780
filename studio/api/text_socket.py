"""Sockets that generate speech while its text is written: a reader and a speaker run concurrently."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import anyio
from fastapi import WebSocket
from starlette.websockets import WebSocketDisconnect, WebSocketState
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from engine import EngineError
from speechtext.script import Sentences
from studio.api.body import MAX_AT_ONCE, hold, release
from studio.api.error_responses import ApiError, describe
from studio.errors import REFUSALS, InvalidRequest, RetryLater, TooManyRequests
from studio.server import SEND_SECONDS
from studio.speech.plan import PROBE
from studio.speech.request import MAX_INPUT, new_request_id
from studio.speech.speech_service import SpeechService
from studio.supervisor import first_of

FIRST_SECONDS = 300.0
"""Seconds in which the first message must come; some clients connect before they have anything to say."""
MAX_SOCKETS = 128
"""Maximum open sockets of a caller: more than one program needs, as each may hold an encoder of several megabytes."""
IDLE_SECONDS = 3600.0
"""Seconds without any message after which a socket is closed: longer than any pause of a conversation."""


class TextSocket(ABC):
    """One connection; subclasses implement a protocol."""

    def __init__(self, websocket: WebSocket, service: SpeechService) -> None:
        self._websocket = websocket
        self._service = service
        self._id = new_request_id()
        self._caller: str = websocket.scope["state"]["caller"]
        self._owner_of_key: Callable[[str], str] | None = websocket.scope["state"].get("owner_of_key")
        """Set if the socket came without a key, which its first message must have."""
        self._is_silent = True
        """Whether no message has come yet."""
        self._patience, self._first_seconds = anyio.CancelScope(), FIRST_SECONDS
        self._has_sent = False
        """Whether something was sent since the last message came, or since the last check."""

    async def serve(self) -> None:
        """Run until all speech is sent, an error occurs, or the client disconnects or is silent for too long."""
        await self._websocket.accept()
        try:
            await self._run()
        except (WebSocketDisconnect, TimeoutError):
            return  # the client has disconnected
        finally:
            self._leave()

    def _enter(self) -> None:
        """Count this socket as its caller's. One too many of an address ends the one that has been waiting longest for
        its key: clients behind a proxy have one address. Raises TooManyRequests."""
        sockets = self._service.sockets[self._caller]
        if len(sockets) >= MAX_SOCKETS:
            waiting = (socket for socket in sockets if socket._owner_of_key and socket._is_silent)
            if not self._owner_of_key or (oldest := next(waiting, None)) is None:
                raise TooManyRequests(f"you have {MAX_SOCKETS} open sockets, the maximum; close some of them")
            oldest._leave()
            oldest._first_seconds = 0.0  # it may not have begun to wait
            oldest._patience.cancel()
        self._service.sockets[self._caller].append(self)

    def _leave(self) -> None:
        if self in (sockets := self._service.sockets[self._caller]):
            sockets.remove(self)
        if not sockets:
            del self._service.sockets[self._caller]

    async def _run(self) -> None:
        try:
            self._enter()
            await first_of(self._read(), self._speak())
            await self._finish()
        except (ApiError, *REFUSALS, EngineError) as error:
            refusal = describe(error)
            await self._refuse(refusal)
            await self._websocket.close(1008 if refusal.status < 500 else 1011, self._close_reason(refusal))

    async def _receive(self, kind: str, expected: str, param: str) -> Any:
        """The next message. kind: text or bytes. Raises InvalidRequest (also after a silence), WebSocketDisconnect."""
        await asyncio.sleep(0)  # let other tasks run even if many messages have arrived
        message, seconds = None, self._first_seconds if self._is_silent else IDLE_SECONDS
        while message is None:
            self._has_sent = False
            with anyio.move_on_after(seconds) as self._patience:
                message = await self._websocket.receive()
            if message is None and not self._has_sent:
                crowd = ", or before other sockets of this address needed the place" if self._owner_of_key else ""
                raise InvalidRequest(f"no message came within {seconds:g} s{crowd}", param)
        self._is_silent = False
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(message.get("code") or 1005)
        if message.get(kind) is None:
            raise InvalidRequest(f"messages must be {expected}", param)
        return message[kind]

    def _sign_in(self, key: object) -> None:
        """Become the owner of the first message's key, unless the socket had one. Raises ApiError, TooManyRequests."""
        if self._owner_of_key is not None:
            self._leave()
            self._caller, self._owner_of_key = self._owner_of_key(key if isinstance(key, str) else ""), None
            self._enter()

    async def _send(self, message: str | bytes) -> None:
        """Raises TimeoutError if the client stops receiving, WebSocketDisconnect if it has disconnected."""
        if self._websocket.application_state is WebSocketState.DISCONNECTED:  # noticed by another task's message
            raise WebSocketDisconnect(1006)
        self._has_sent = True
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

    def _close_reason(self, error: ApiError) -> str | None:
        """The reason in the close after an error, at most 123 bytes, for clients that read no message."""
        return None

    async def _finish(self) -> None:
        await self._websocket.close()


class SocketConnection(WebSocketsSansIOProtocol):
    """uvicorn's connection of a web socket. A large message counts as a body does, from its first bytes until the next
    one: the socket may keep its clip as long as that."""

    arrived = 0  # bytes of the message that is arriving, or of its endless empty pieces

    def data_received(self, data: bytes) -> None:
        before, self.arrived = self.arrived, self.arrived + len(data)
        if self.arrived > MAX_AT_ONCE and self.handshake_complete and not self.close_sent:
            if before <= MAX_AT_ONCE:
                release(self.scope["state"])
            try:
                hold(self.scope["state"], len(data))
            except RetryLater as error:
                self.conn.fail(1013, str(error))
                self.handle_parser_exception()
                return
        super().data_received(data)

    def send_receive_event_to_app(self) -> None:
        self.arrived = 0
        super().send_receive_event_to_app()


class WrittenText:
    """Splits text from a writer into sentences for a speaker, on one event loop."""

    def __init__(self, limit: int | None = None) -> None:
        """``limit``: characters after which an incomplete sentence is cut after its last complete word."""
        self._limit = limit
        self._held = Sentences()
        self._sentences: asyncio.Queue[str | None] = asyncio.Queue()
        self._waiting_characters = 0  # characters of these sentences
        self.is_complete = False

    @property
    def is_holding(self) -> bool:
        """Whether there is an incomplete sentence."""
        return self._held.size > 0

    def add(self, text: object) -> None:
        """Add text. Raises InvalidRequest if it is not a string or too much text is waiting."""
        if not isinstance(text, str):
            raise InvalidRequest("text must be a string", "text")
        if self._held.size + len(text) + self._waiting_characters > MAX_INPUT:
            raise InvalidRequest(f"more than {MAX_INPUT} characters are waiting", "text")
        self._put(self._held.add(text))
        if self._limit is not None and self._held.size > self._limit:
            *whole, last = self._held.flush() or [""]
            head, _, tail = (last, "", "") if text[-1:].isspace() else last.rpartition(" ")
            self._put([sentence for sentence in (*whole, head or tail) if sentence])
            self._put(self._held.add(tail if head else ""))

    def add_whole(self, text: str) -> None:
        """Add a text that is spoken as it is, and end."""
        self._put([text])
        self.complete()

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

"""The messages between the studio and its speech processes, and the channel that carries them."""

from __future__ import annotations

import asyncio
import pickle
import socket
import struct
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from engine import EngineConfig
from studio.engine_host import StartEngine
from studio.library import Library
from studio.library.take import Take
from studio.settings import Settings
from studio.speech.recorder import Outcome

_LENGTH = struct.Struct("!I")
FULL_BYTES = 2**20  # unsent bytes above which messages that can be skipped are skipped


class StartArguments(NamedTuple):
    """The arguments of a speech process, sent at its start."""

    settings: Settings
    config: EngineConfig
    start_engine: StartEngine
    studio: str
    """The path of the socket at which the studio answers requests that the process passes on."""
    library_type: type[Library] = Library  # the type of the library, which knows all of its tables


class Ready(NamedTuple):
    """The process is ready to serve."""


class Failed(NamedTuple):
    """The process could not start, and ends."""

    reason: str


class Draining(NamedTuple):
    """The process accepts no more connections, and ends when its streams end."""


class RequestBegun(NamedTuple):
    """A request begins."""

    take: Take
    question: int | None
    """The number of the `Answer` to wait for; None without limits, when no answer comes."""


class TakesChanged(NamedTuple):
    """Progress of active takes; also shows that the process is alive."""

    takes: tuple[Take, ...]


class TakeEnded(NamedTuple):
    """A take has ended."""

    take: Take


class TakeStored(NamedTuple):
    """The outcome of storing a take; None while it is being stored."""

    take_id: str
    outcome: Outcome | None


class LogLine(NamedTuple):
    """A line of the process's log."""

    line: str


class Accept(NamedTuple):
    """Accept connections."""


class Answer(NamedTuple):
    """Whether a request may continue."""

    question: int
    refusal: str | None
    retry_after: int = 0


class Cancel(NamedTuple):
    """End the request with this id."""

    request_id: str


class Stop(NamedTuple):
    """Accept no more connections, and end."""


Message: TypeAlias = (
    Ready
    | Failed
    | Draining
    | RequestBegun
    | TakesChanged
    | TakeEnded
    | TakeStored
    | LogLine
    | Accept
    | Answer
    | Cancel
    | Stop
)


class Channel(asyncio.Protocol):
    """One end of a pair of sockets, in an event loop. Messages arrive complete and in order.

    Messages are pickled: both ends belong to one start of one program.
    """

    def __init__(self, on_message: Callable[[Message], None], on_end: Callable[[], None]) -> None:
        """``on_end`` is called once the other end has closed."""
        self._on_message = on_message
        self._on_end = on_end
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()

    @classmethod
    async def open(
        cls, end: socket.socket, on_message: Callable[[Message], None], on_end: Callable[[], None]
    ) -> Channel:
        loop = asyncio.get_running_loop()
        _, channel = await loop.create_unix_connection(lambda: cls(on_message, on_end), sock=end)
        return channel

    @property
    def is_full(self) -> bool:
        return self._transport is not None and self._transport.get_write_buffer_size() > FULL_BYTES

    def send(self, message: Message) -> None:
        """Send a message; does nothing if the other end has closed."""
        if self._transport is not None and not self._transport.is_closing():
            payload = pickle.dumps(message)
            self._transport.write(_LENGTH.pack(len(payload)) + payload)

    def close(self) -> None:
        """Close this end after sending everything."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(self._received)[0]
            if len(self._received) < end:
                return
            message = pickle.loads(self._received[_LENGTH.size : end])  # noqa: S301  (from our own process)
            del self._received[:end]
            self._on_message(message)

    def connection_lost(self, error: Exception | None) -> None:
        self._on_end()

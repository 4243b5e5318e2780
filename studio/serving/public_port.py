"""The sockets at which the studio listens: its address once for each process that takes connections there."""

from __future__ import annotations

import errno
import os
import socket

from studio.errors import SettingsError
from studio.settings import Settings

Sockets = list[socket.socket]
"""A socket for each address of the host."""


class PublicPort:
    """The port that callers know, with sockets for each process; the kernel shares connections out among those at work.

    This process keeps all of them open, so that what waits at one whose process has died is not lost.
    """

    def __init__(self, settings: Settings) -> None:
        """Sockets for one process, and the certainty that no other process has the port. Raises SettingsError."""
        self._all: list[Sockets] = [_bind(settings)]

    @property
    def first(self) -> Sockets:
        return self._all[0]

    def several(self, count: int) -> list[Sockets]:
        """This many sockets; binds those that are missing. Raises SettingsError."""
        for listener in self.first:  # only now: with it set from the start, another program could take the port as well
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            while len(self._all) < count:
                self._all.append(
                    [_bound(listener.family, listener.getsockname(), is_shared=True) for listener in self.first]
                )
        except OSError as error:
            raise SettingsError(f"no further socket can listen there: {error.strerror or error}") from error
        return self._all[:count]

    def close(self) -> None:
        """Accept no more connections; those not yet accepted are refused."""
        for listener in (listener for sockets in self._all for listener in sockets):
            listener.close()


def _bind(settings: Settings) -> Sockets:
    sockets: Sockets = []
    try:
        addresses = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in dict.fromkeys(addresses):
            sockets.append(_bound(family, address))
        for listener in sockets:  # two programs that start together can both bind a port, but only one listens at it
            listener.listen()
    except OSError as error:
        for listener in sockets:
            listener.close()
        raise SettingsError(f"it cannot listen on {settings.host}:{settings.port}: {_why(error)}") from error
    return sockets


def _bound(family: int, address: object, is_shared: bool = False) -> socket.socket:
    # With the protocol named: only then does asyncio have connections send at once what is written (TCP_NODELAY) and
    # not hold it until the caller acknowledges what came before, which takes 40 ms once a connection is used again.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":  # else a port stays taken for a minute after its last user has gone
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if is_shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bound.bind(address)  # type: ignore[arg-type]
    except OSError:
        bound.close()
        raise
    return bound


def _why(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another program listens there; stop it, or choose another port, such as STUDIO_PORT=7861"
    return error.strerror or str(error)

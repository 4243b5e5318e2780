"""The sockets on which the studio listens: one on its address for each process that accepts connections."""

from __future__ import annotations

import errno
import socket
import sys

from studio.errors import SettingsError
from studio.settings import Settings

Sockets = list[socket.socket]
"""A socket for each address of the host."""


class PublicPort:
    """The public port, with sockets for each process; the kernel distributes connections among running processes.

    This process keeps all sockets open, so that connections waiting at one whose process has died are not lost.
    """

    def __init__(self, settings: Settings) -> None:
        """Open sockets for one process, exclusively. Raises SettingsError if the port is in use."""
        self._socket_sets: list[Sockets] = [_bind(settings)]

    @property
    def first(self) -> Sockets:
        return self._socket_sets[0]

    @property
    def number(self) -> int:
        """The port: a free one if the setting is 0."""
        return int(self.first[0].getsockname()[1])

    def several(self, count: int) -> list[Sockets]:
        """Return this many sockets, binding missing ones. Raises SettingsError."""
        if sys.platform == "win32":
            raise SettingsError("several processes cannot accept connections at one port on Windows")
        for listener in self.first:  # not earlier: another program could then bind the port as well
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            while len(self._socket_sets) < count:
                self._socket_sets.append(
                    [_open_socket(listener.family, listener.getsockname(), is_shared=True) for listener in self.first]
                )
        except OSError as error:
            raise SettingsError(f"the port cannot be opened again for listening: {error.strerror or error}") from error
        return self._socket_sets[:count]

    def close(self) -> None:
        """Accept no more connections; those not yet accepted are refused."""
        for listener in (listener for sockets in self._socket_sets for listener in sockets):
            listener.close()


def _bind(settings: Settings) -> Sockets:
    sockets: Sockets = []
    try:
        addresses = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in sorted(dict.fromkeys(addresses)):  # IPv4 first
            port = sockets[0].getsockname()[1] if sockets else address[1]  # the free one that was taken for 0
            try:
                sockets.append(_open_socket(family, (address[0], port, *address[2:])))
            except OSError as error:  # as for the ::1 of localhost on a machine without IPv6
                if not sockets or error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
        for listener in sockets:  # two programs that start together can both bind a port, but only one can listen
            listener.listen()
    except OSError as error:
        for listener in sockets:
            listener.close()
        raise SettingsError(f"it cannot listen on {settings.host}:{settings.port}: {_reason(error)}") from error
    return sockets


def _open_socket(family: int, address: object, is_shared: bool = False) -> socket.socket:
    # With an explicit protocol: only then does asyncio set TCP_NODELAY. Otherwise data waits until the caller has
    # acknowledged earlier data, which takes 40 ms once a connection is reused.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if sys.platform != "win32":  # else a port stays in use for a minute after its last process has ended
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        if is_shared and sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind(address)  # type: ignore[arg-type]
    except OSError:
        listener.close()
        raise
    return listener


def _reason(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "another program listens there; stop it, or choose another port, such as STUDIO_PORT=7861"
    return error.strerror or str(error)

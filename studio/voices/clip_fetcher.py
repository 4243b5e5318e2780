"""Fetches reference clips that a request gives as an address (data:, https:, http: or file:), all untrusted.

A remote host is resolved first, all of its addresses must be public, and the connection uses the checked address; each
redirect is checked again. Bytes and time are limited. Every failure gives the same answer, which reveals nothing about
a network or a disk.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ipaddress
import logging
import socket
import ssl
import threading
from concurrent.futures import Future
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import anyio
import httpx
from anyio import to_thread
from pydantic import ConfigDict, TypeAdapter, ValidationError

from audio import InvalidClip
from audio.read import MAX_BYTES
from engine import open_regular

log = logging.getLogger(__name__)

TIMEOUT = 10.0
"""Seconds allowed for a download, redirects included."""
MAX_REDIRECTS = 3
MAX_URL = 2048
PORTS = {"http": 80, "https": 443}
MAX_LOOKUPS = 64
_lookups = dict[tuple[str, int], Future[list[Any]]]()  # one for all who ask for a host meanwhile

_BASE64 = TypeAdapter(bytes, config=ConfigDict(val_json_bytes="base64"))
"""Decodes base64 in a quarter of Python's time, and so holds the GIL for less time."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class _Refused(Exception):
    """The reason for refusing an address: for the log, never for the caller."""


async def _resolved(host: str, port: int) -> list[Any]:
    """Resolve a host in a daemon thread, since that cannot be interrupted: without an answer it takes half a minute,
    also when its caller has left, which must hold up neither other work in threads nor the studio's end."""

    def resolve() -> None:
        try:
            found.set_result(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, ValueError) as error:
            found.set_exception(error)
        finally:
            del _lookups[host, port]

    found = _lookups.get((host, port), Future())
    if not (found.running() or found.done()):  # nobody else waits for it
        if len(_lookups) >= MAX_LOOKUPS:
            raise _Refused("too many hosts are being resolved")
        found.set_running_or_notify_cancel()  # a caller who leaves does not cancel it
        _lookups[host, port] = found
        threading.Thread(target=resolve, daemon=True).start()
    return await asyncio.wrap_future(found)


class ClipFetcher:
    """Downloads clips for requests.

    ``folder``: the folder allowed for file: addresses; None: no files. ``trusted``: private networks allowed
    on any port.
    """

    def __init__(self, folder: Path | None = None, trusted: tuple[Network, ...] = ()) -> None:
        self._folder = folder.resolve() if folder else None
        self._trusted_networks = trusted

    async def fetch(self, url: str, param: str = "ref_audio") -> bytes:
        """The bytes at an address, at most MAX_BYTES. Raises InvalidClip."""
        scheme = _scheme_of(url)
        if is_inline(url):
            return await to_thread.run_sync(data_bytes, url, param)
        if scheme not in ("http", "https", "file"):
            raise InvalidClip(f"{param} must be a data:, https:, http: or file: address", param)
        try:
            if len(url) > MAX_URL:
                raise _Refused("the address is too long")
            if scheme == "file":
                return await to_thread.run_sync(self._read, url)
            with anyio.fail_after(TIMEOUT):
                return await self._follow(url)
        except (_Refused, OSError, ValueError, httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            log.info("a clip was not downloaded: %s: %s", type(error).__name__, error)
            allowed = f"public https: and http: addresses that answer in {TIMEOUT:g} s with at most {MAX_BYTES} bytes"
            allowed += ", and files in the folder for references" if self._folder else ""
            raise InvalidClip(f"{param} cannot be fetched: allowed are {allowed}", param) from None

    async def _follow(self, url: str) -> bytes:
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._get(url)
            if isinstance(answer, bytes):
                return answer
            url = urljoin(url, answer)
        raise _Refused("too many redirects")

    async def _get(self, url: str) -> bytes | str:
        """The body, or the address of a redirect."""
        parts = urlsplit(url)
        if parts.scheme not in PORTS or not parts.hostname or parts.username is not None or parts.password is not None:
            raise _Refused("the address has no plain host name")
        host, port = parts.hostname, parts.port or PORTS[parts.scheme]
        address = await self._checked_address(host, port)
        literal = f"[{address}]" if address.version == 6 else str(address)
        pinned_url = httpx.URL(url).copy_with(host=literal)
        name = f"[{host}]" if ":" in host else host
        headers = {"Host": name if port == PORTS[parts.scheme] else f"{name}:{port}", "Accept-Encoding": "identity"}
        extensions = {"sni_hostname": host}
        tls = await to_thread.run_sync(_tls)
        # Environment proxies are ignored: they would resolve the name again.
        async with (
            httpx.AsyncClient(verify=tls, trust_env=False, follow_redirects=False, timeout=TIMEOUT) as client,
            client.stream("GET", pinned_url, headers=headers, extensions=extensions) as answer,
        ):
            if answer.is_redirect:
                return answer.headers.get("location", "")
            if answer.status_code != 200:
                raise _Refused(f"status {answer.status_code}")
            body = bytearray()
            async for piece in answer.aiter_raw():
                body += piece
                if len(body) > MAX_BYTES:
                    raise _Refused("too many bytes")
            return bytes(body)

    async def _checked_address(self, host: str, port: int) -> Address:
        """An address of the host, if all of its addresses are allowed."""
        addresses = [ipaddress.ip_address(entry[4][0]) for entry in await _resolved(host, port)]
        if not addresses or not all(self._is_allowed(address, port) for address in addresses):
            raise _Refused(f"port {port} of {host} is not public: {', '.join(map(str, addresses))}")
        return addresses[0]

    def _is_allowed(self, address: Address, port: int) -> bool:
        if any(address in network for network in self._trusted_networks):
            return True
        return port in PORTS.values() and is_public(address)

    def _read(self, url: str) -> bytes:
        parts = urlsplit(url)
        if self._folder is None or parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
            raise _Refused("file addresses are not allowed, or not in this form")
        path = Path(unquote(parts.path, errors="strict")).resolve()
        if not path.is_relative_to(self._folder) or not path.is_file():
            raise _Refused("the file is outside the folder, or does not exist")
        with open_regular(path) as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise _Refused("the file is too large")
        return data


@cache
def _tls() -> ssl.SSLContext:
    """The TLS context, shared by all connections. The first call blocks for 30 to 60 ms."""
    return httpx.create_ssl_context(trust_env=False)


def is_public(address: Address) -> bool:
    """Whether an address belongs to a host of the open internet.

    IPv4 addresses embedded in IPv6 do not: in ::/8 (mapped, compatible, NAT64) they are reserved, and tunnels (6to4,
    Teredo) are out of use; Python's versions do not agree on them.
    """
    if isinstance(address, ipaddress.IPv6Address) and (address.sixtofour or address.teredo or address.is_site_local):
        return False
    return address.is_global and not (address.is_private or address.is_multicast or address.is_reserved)


def _scheme_of(url: str) -> str:
    return url.partition(":")[0].strip().lower()


def is_inline(url: str) -> bool:
    """Whether an address contains the clip itself."""
    return _scheme_of(url) == "data"


def data_bytes(url: str, param: str = "ref_audio") -> bytes:
    """The bytes of a base64 data: URL, at most MAX_BYTES. Raises InvalidClip."""
    head, comma, payload = url.partition(",")
    kind = head.partition(":")[2]
    if not comma or not kind.lower().endswith(";base64"):
        raise InvalidClip(f"{param} must be written as data:audio/…;base64,…", param)
    if len(payload) > MAX_BYTES * 4 // 3 + 4:
        raise InvalidClip(f"the clip is larger than {MAX_BYTES} bytes", param)
    try:
        return _decoded(payload)
    except ValueError:
        raise InvalidClip(f"{param} is not valid base64", param) from None


def _decoded(payload: str) -> bytes:
    """Decode with Python's strict decoder, which decides in doubt. Raises ValueError."""
    # The fast decoder also accepts "-", "_" and missing padding.
    if len(payload) % 4 == 0 and "-" not in payload and "_" not in payload:
        with contextlib.suppress(ValidationError):
            return _BASE64.validate_strings(payload)
    return base64.b64decode(payload, validate=True)

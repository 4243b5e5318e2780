"""Checks the Origin and Host of HTTP requests and sockets.

This prevents two attacks by foreign pages: cross-site requests with the visitor's login (CORS does not block forms and
sockets, and withholds only the answer), and DNS rebinding, where a foreign name points to this machine.
"""

from __future__ import annotations

import ipaddress
from typing import Literal

from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.types import Scope

from studio.api.error_responses import ApiError
from studio.settings import Settings

READING = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
DEFAULT_PORTS = {"http": ":80", "https": ":443"}

Trust = Literal["own", "any", "foreign"]
"""own: from no other page, or from one in STUDIO_CORS_ORIGINS; any: from a page that only "*" allows."""


class Origins:
    """The allowed origins and host names."""

    def __init__(self, settings: Settings) -> None:
        self._listed = frozenset(settings.cors_origins)
        self._names = _names(settings)

    def refusal(self, scope: Scope) -> ApiError | None:
        """The error for a request or socket that is not allowed; None if it is."""
        headers = Headers(scope=scope)
        name = _host_name(headers.get("host", ""))
        if self._names and name and name not in self._names:
            return ApiError(
                403,
                f"The host name {name[:80]!r} is not allowed, as another site could have pointed it here. "
                "If the name is yours, add it to STUDIO_ALLOWED_HOSTS.",
                code="host_not_allowed",
            )
        changes = scope["type"] == "websocket" or scope["method"] not in READING
        if changes and self.trust(scope) == "foreign":
            return ApiError(
                403,
                "Pages of other origins may not do this. If you trust the page, add its origin to STUDIO_CORS_ORIGINS; "
                "if it is the studio's own behind a proxy, make the proxy send the Host header or X-Forwarded-Host.",
                code="origin_not_allowed",
            )
        return None

    def trust(self, scope: Scope) -> Trust:
        """The source of a request. Only "own" may use what browsers send automatically: cookies, remembered passwords.

        Browsers send Sec-Fetch-Site, except to plain http: addresses other than localhost; there, Origin must match.
        Programs send neither. A followed link has no Origin, and only reads.
        """
        headers = Headers(scope=scope)
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin in self._listed:
            return "own"
        if scope.get("method") in READING:
            is_own = origin is None or site == "same-origin" or _is_ours(origin, headers)
        elif site is not None:
            is_own = site in ("same-origin", "none")
        else:
            is_own = origin is None or _is_ours(origin, headers)
        return "own" if is_own else "any" if "*" in self._listed else "foreign"


def _names(settings: Settings) -> frozenset[str]:
    """The allowed host names; empty for all.

    With keys, foreign pages lack one. Without keys, names are restricted on loopback, where they are known.
    """
    if "*" in settings.allowed_hosts:
        return frozenset()
    host = _host_name(settings.host)
    if settings.allowed_hosts or (not settings.api_keys and _is_loopback(host)):
        return LOOPBACK | {host, *settings.allowed_hosts}
    return frozenset()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _host_name(host: str) -> str:
    """The name in a Host header or in the setting, without port and brackets, in lower case."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    name = host if host.count(":") > 1 else host.partition(":")[0]
    return name.lower().rstrip(".")


def _is_ours(origin: str, headers: Headers) -> bool:
    """Whether an origin is the studio's own. Pages cannot set Host, and X-Forwarded-Host only if CORS allows it."""
    scheme, _, place = origin.lower().partition("://")
    port = DEFAULT_PORTS.get(scheme, "")
    return place != "" and place in {
        host.lower().removesuffix(port) for host in (headers.get("host", ""), _first(headers, "x-forwarded-host"))
    }


def address_of(reader: HTTPConnection, root_path: str) -> str:
    """The studio's address as the caller sees it, also through proxies, without a slash at the end.

    Callers can claim any, but only for their own answers.
    """
    is_https = "https" in (reader.url.scheme, _first(reader.headers, "x-forwarded-proto"))
    host = _first(reader.headers, "x-forwarded-host") or reader.base_url.netloc
    return f"{'https' if is_https else 'http'}://{host}{root_path}"


def _first(headers: Headers, name: str) -> str:
    """The value that the first of several proxies has added."""
    return headers.get(name, "").partition(",")[0].strip()

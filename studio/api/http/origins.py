"""Whose pages may use the studio, and under which names it answers: the one place that decides, for HTTP and sockets.

Two things a browser would do for a stranger's page: send a request along with the login of who looks at the page
(CORS alone lets forms and sockets through, and withholds only the answer), and, once the stranger has pointed a name
of their own at this machine, take the studio for a part of the stranger's site.
"""

from __future__ import annotations

import ipaddress
from typing import Literal

from starlette.datastructures import Headers
from starlette.types import Scope

from studio.api.http.error_responses import ApiError
from studio.settings import Settings

READING = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
DEFAULT_PORTS = {"http": ":80", "https": ":443"}

Trust = Literal["own", "any", "foreign"]
"""own: no other page is known to be behind it, or STUDIO_CORS_ORIGINS names it; any: a page that only "*" lets in."""


class Origins:
    """What the settings say of pages and names."""

    def __init__(self, settings: Settings) -> None:
        self._listed = frozenset(settings.cors_origins)
        self._names = _names(settings)

    def refusal(self, scope: Scope) -> ApiError | None:
        """Why a request or a socket may not go on; None where it may."""
        headers = Headers(scope=scope)
        name = _host_name(headers.get("host", ""))
        if self._names and name and name not in self._names:
            return ApiError(
                403,
                f"This studio does not answer to the name {name[:80]!r}, which another site could have pointed here. "
                "If the name is yours, add it to STUDIO_ALLOWED_HOSTS.",
                code="host_not_allowed",
            )
        changes = scope["type"] == "websocket" or scope["method"] not in READING
        if changes and self.trust(scope) == "foreign":
            return ApiError(
                403,
                "Pages of other origins may not do this. If you trust the page, add its origin to STUDIO_CORS_ORIGINS; "
                "if it is the studio's own behind a proxy, make the proxy pass on the Host header or X-Forwarded-Host.",
                code="origin_not_allowed",
            )
        return None

    def trust(self, scope: Scope) -> Trust:
        """Who is behind a request. Only "own" may use what a browser sends by itself: cookies, remembered passwords.

        Browsers of today tell in Sec-Fetch-Site, but not to plain http: addresses other than localhost; there their
        Origin must be ours. Programs tell neither. A link that was followed has no Origin, and only reads.
        """
        headers = Headers(scope=scope)
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin in self._listed:
            return "own"
        if scope.get("method") in READING:
            own = origin is None or site == "same-origin" or _is_ours(origin, headers)
        elif site is not None:
            own = site in ("same-origin", "none")
        else:
            own = origin is None or _is_ours(origin, headers)
        return "own" if own else "any" if "*" in self._listed else "foreign"


def _names(settings: Settings) -> frozenset[str]:
    """The names that are answered to; empty for all.

    A stranger cannot guess a key, so only a studio without keys has to know its names by itself; and only on loopback
    it can, as elsewhere nobody has told it yet.
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
    """The name in a Host header or in the setting, without port and brackets, in small letters."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    name = host if host.count(":") > 1 else host.partition(":")[0]
    return name.lower().rstrip(".")


def _is_ours(origin: str, headers: Headers) -> bool:
    """A page cannot set either header: Host is never its own, X-Forwarded-Host only after CORS has allowed it."""
    scheme, _, place = origin.lower().partition("://")
    forwarded = headers.get("x-forwarded-host", "").partition(",")[0].strip()
    port = DEFAULT_PORTS.get(scheme, "")
    return place != "" and place in {host.lower().removesuffix(port) for host in (headers.get("host", ""), forwarded)}

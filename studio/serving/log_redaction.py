"""Redacts secrets in the log: tokens of links, references to files, sessions, keys and cookies."""

from __future__ import annotations

import logging
import re
from urllib.parse import unquote

import httpx

HIDDEN = "[redacted]"

_GRADIO = "/gradio_api"
_IN_PATHS = re.compile(
    r"(/shared/|/takes/[^/?\s]+/shares/"
    rf"|{_GRADIO}/file(?:/|=|%3D)"
    rf"|{_GRADIO}/(?:stream|heartbeat)/"
    rf"|{_GRADIO}/call/(?:v2/)?[^/?\s]+/)"
    r"[^?\s]+",
    re.IGNORECASE,
)
"""The text before a secret, then the secret, which may have several segments."""
_IN_QUERIES = re.compile(r"([?&;])([^=&;?\s]+)=([^&;\s]*)")
_SECRET_NAMES = frozenset(
    {"session_hash", "event_id", "upload_id", "deep_link", "token", "access_token", "key", "api_key", "password"}
)
_FOREIGN_QUERY = re.compile(r"(https?://[^?\s]*)\?\S*")
"""An address from which the studio downloads; its query may contain a signature."""
_SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie"})
_HEADER_LINES = frozenset({"< %s: %s", "> %s: %s"})
"""The format in which websockets logs the headers of a handshake, at the level debug."""
_LOGGERS = ("uvicorn.access", "uvicorn.error", "httpx")


def redacted(address: str) -> str:
    """A path with its query, or a whole address, without the secrets that give access."""
    address = _FOREIGN_QUERY.sub(rf"\1?{HIDDEN}", address)
    address = _IN_PATHS.sub(rf"\1{HIDDEN}", address)
    return _IN_QUERIES.sub(_redacted_value, address)


def redact_logs() -> None:
    """Redact secrets in the log of this process."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_REDACTION)
    # At the level debug it logs the headers of every answer, including the cookie of a sign-in that was passed on.
    logging.getLogger("httpcore").setLevel(logging.INFO)


class LogRedaction(logging.Filter):
    """Accepts every record, and applies `redacted` to its arguments."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            values = tuple(redacted(str(arg)) if isinstance(arg, str | httpx.URL) else arg for arg in record.args)
            if record.msg in _HEADER_LINES and str(values[0]).lower() in _SECRET_HEADERS:
                values = (values[0], HIDDEN)
            record.args = values
        return True


_REDACTION = LogRedaction()


def _redacted_value(parameter: re.Match[str]) -> str:
    before, name, value = parameter.groups()
    return f"{before}{name}={HIDDEN if unquote(name).lower() in _SECRET_NAMES else value}"

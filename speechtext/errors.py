"""Errors of the text libraries, with a message for people; and how a caller ends their work early."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

CHECK: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)
"""Set by the caller around the work; raises an error of the caller's own to end it."""


class TextError(Exception):
    """A text cannot be used. ``param`` names the field of a request that it came in."""

    code = "invalid_value"

    def __init__(self, message: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.code = code or self.code


class NothingToSay(TextError):
    """The text has no words."""

    code = "nothing_to_say"


def check_job() -> None:
    """End this thread's work if its caller wants that, by raising the caller's error; otherwise does nothing."""
    if (check := CHECK.get()) is not None:
        check()

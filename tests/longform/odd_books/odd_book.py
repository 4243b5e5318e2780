"""An odd book and what is expected of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class OddBook:
    """A document, and the expected properties of a project made from it."""

    file_name: str
    data: bytes
    chapters: tuple[str, ...]
    """Their titles, in order."""
    texts: tuple[str, ...]
    """Each is in a part, in this order."""
    absent: tuple[str, ...] = ()
    """Each is in no part, and is not read aloud."""
    skipped: int = 0
    """How many omissions the project reports."""
    reasons: tuple[str, ...] = ()
    """Words of the reasons it reports for them, in order."""
    title: str = ""
    """Of the project; blank: not looked at."""
    fields: dict[str, Any] | None = None
    """Of the form, beside the file."""

"""Computes the numbers of ordered lists, which browsers show but the text does not contain."""

from __future__ import annotations

import re
from collections.abc import Mapping

from studio.projects.documents.books.ordinals import ordinal

MAX_DEPTH = 100
"""Nested lists whose numbers are counted."""
_HAS_NUMBER = re.compile(r"[(\[]?(?:\d{1,4}|[a-zA-Z]|[ivxIVX]{1,5})[.)\]]\s")


class ListNumbers:
    """Follows the tags of a page, and adds the number to the first paragraph of each item."""

    def __init__(self) -> None:
        self._open: list[tuple[str, int, int] | None] = []
        """For each open list: kind, next number and step; None for a list without numbers."""
        self._number = ""

    def begin(self, tag: str, values: Mapping[str, str | None]) -> None:
        if tag in ("ol", "ul") and len(self._open) < MAX_DEPTH:
            is_bare = tag == "ul" or "list-style-type:none" in (values.get("style") or "").replace(" ", "")
            step = -1 if "reversed" in values else 1
            self._open.append(None if is_bare else (values.get("type") or "1", _integer(values.get("start"), 1), step))
        elif tag == "li":
            self._number = ""  # left by an item without text
            if self._open and (numbering := self._open[-1]):
                kind, number, step = numbering
                number = _integer(values.get("value"), number)
                self._number = ordinal(number, kind)
                self._open[-1] = (kind, number + step, step)

    def end(self, tag: str) -> None:
        if tag in ("ol", "ul") and self._open:
            self._open.pop()
        elif tag == "li":
            self._number = ""

    def numbered(self, text: str) -> str:
        """A paragraph with the number of the item that it begins, unless the text has one already."""
        number, self._number = self._number, ""
        return f"{number}. {text}" if number and not _HAS_NUMBER.match(text) else text


def _integer(text: str | None, default: int) -> int:
    try:
        return int((text or "")[:6])
    except ValueError:
        return default

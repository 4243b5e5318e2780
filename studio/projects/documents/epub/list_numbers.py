"""The numbers of ordered lists, which a page shows and its text does not have."""

from __future__ import annotations

import re
from collections.abc import Mapping

from studio.projects.documents.books.ordinals import ordinal

MOST_DEEP = 100
"""Lists within lists whose numbers are counted."""
_HAS_NUMBER = re.compile(r"[(\[]?(?:\d{1,4}|[a-zA-Z]|[ivxIVX]{1,5})[.)\]]\s")


class ListNumbers:
    """Receives a page's tags, and puts its number before the first paragraph of each item."""

    def __init__(self) -> None:
        self._open: list[tuple[str, int, int] | None] = []
        """Of each list: the kind of its numbers, the next one and the step; None for one without."""
        self._number = ""

    def begin(self, tag: str, values: Mapping[str, str | None]) -> None:
        if tag in ("ol", "ul") and len(self._open) < MOST_DEEP:
            bare = tag == "ul" or "list-style-type:none" in (values.get("style") or "").replace(" ", "")
            step = -1 if "reversed" in values else 1
            self._open.append(None if bare else (values.get("type") or "1", _whole(values.get("start"), 1), step))
        elif tag == "li":
            self._number = ""  # of an item without words
            if self._open and (last := self._open[-1]):
                kind, number, step = last
                number = _whole(values.get("value"), number)
                self._number = ordinal(number, kind)
                self._open[-1] = (kind, number + step, step)

    def end(self, tag: str) -> None:
        if tag in ("ol", "ul") and self._open:
            self._open.pop()
        elif tag == "li":
            self._number = ""

    def numbered(self, text: str) -> str:
        """A paragraph with the number of the item that begins with it, unless it has one."""
        number, self._number = self._number, ""
        return f"{number}. {text}" if number and not _HAS_NUMBER.match(text) else text


def _whole(text: str | None, usual: int) -> int:
    try:
        return int((text or "")[:6])
    except ValueError:
        return usual

"""Joins the short cells of a table row into one line, which is spoken without pauses between paragraphs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from studio.projects.documents.headings import is_heading

MAX_CELL = 60
"""Maximum characters; a table with longer cells, or with sentences, only arranges paragraphs."""
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’»)\]]*$")


def row_text(cells: Sequence[str]) -> str | None:
    """A row with commas between its cells; None if each cell is a paragraph. ``cells``: those with text."""
    if len(cells) < 2 or not all(map(_is_item, cells)):
        return None
    line = cells[0]
    for cell in cells[1:]:
        line += f" {cell}" if line[-1] in ",;:" else f", {cell}"
    return None if is_heading(line) else line


def _is_item(cell: str) -> bool:
    is_line = "\n" not in cell and len(cell) <= MAX_CELL
    return is_line and not _SENTENCE_END.search(cell) and not is_heading(cell)

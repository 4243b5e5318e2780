"""Conditions in SQL that select the listed parts of a project."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from studio.library.projects.project_records import SURE, PartState
from studio.library.projects.proof_records import OPEN_NOTE

_NOTED = f"id in (select part_id from findings cross join takes on takes.n = findings.take where {OPEN_NOTE})"


@dataclass(frozen=True, slots=True)
class PartFilter:
    """None: any."""

    state: PartState | None = None
    has_audio: bool | None = None
    """Whether a take is chosen, of the current text or of an earlier one."""
    has_note: bool | None = None
    """Whether a listener's note on one of its takes is still open."""
    character: str | None = None
    """The id of the character who speaks; blank: the narrator."""
    is_unsure: bool = False
    """True: only parts whose speaker is unsure and not confirmed by a person."""
    ids: Sequence[str] | None = None
    """Only these parts."""

    def where(self, project_id: str) -> tuple[str, list[object]]:
        """A condition on parts, and its values."""
        conditions, values = ["project_id = ?"], list[object]([project_id])
        if self.state is not None:
            conditions.append("state = ?")
            values.append(self.state)
        if self.has_audio is not None:
            conditions.append(f"chosen is {'not ' if self.has_audio else ''}null")
        if self.has_note is not None:
            conditions.append(f"{'' if self.has_note else 'not '}{_NOTED}")
        if self.character is not None:
            conditions.append("coalesce(character, '') = ?")
            values.append(self.character)
        if self.is_unsure:
            conditions.append(f"confidence < {SURE} and confirmed = 0")
        if self.ids is not None:
            conditions.append("id in (select value from json_each(?))")
            values.append(json.dumps(list(self.ids)))
        return " and ".join(conditions), values


ALL_PARTS = PartFilter()

"""Which parts of a project are listed: conditions for SQL."""

from __future__ import annotations

from dataclasses import dataclass

from studio.library.projects.project_records import PartState


@dataclass(frozen=True, slots=True)
class PartFilter:
    """None: any."""

    state: PartState | None = None
    has_audio: bool | None = None
    """Whether a take is chosen, of the current text or of an earlier one."""

    def where(self, project_id: str) -> tuple[str, list[object]]:
        """A condition on parts, and its values."""
        conditions, values = ["project_id = ?"], list[object]([project_id])
        if self.state is not None:
            conditions.append("state = ?")
            values.append(self.state)
        if self.has_audio is not None:
            conditions.append(f"chosen is {'not ' if self.has_audio else ''}null")
        return " and ".join(conditions), values


ALL_PARTS = PartFilter()

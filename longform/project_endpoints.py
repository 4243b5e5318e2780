"""The endpoints for projects, /batch_submit and /batch_status; names and arguments are frozen."""

from __future__ import annotations

from typing import Annotated, Any

import gradio as gr

from audio.tempo import MAX_SPEED, MIN_SPEED
from longform.document_import import DocumentImport
from longform.library.project_records import Project, ProjectSettings
from longform.project_service import ProjectService
from manuscript.documents import Document, Passage, kind_of
from manuscript.passages import MAX_PAUSE
from studio.errors import InvalidRequest
from studio.library.client_files import Upload
from studio.work import WorkQueue

DEFAULTS = ProjectSettings()
ProjectState = Annotated[dict[str, object], "project"]


class ProjectEndpoints:
    """The endpoints' methods; callers have the same projects as over HTTP."""

    def __init__(self, projects: ProjectService, reads: WorkQueue) -> None:
        """``reads``: the queue of lookups in projects."""
        self._projects, self._reads = projects, reads

    async def batch_submit(
        self,
        caller: gr.Request,
        *,
        texts: Any = (),
        document: Upload | None = None,
        voice: str = "",
        title: str = "",
        pause: float = DEFAULTS.pause,
        speed: float = 1.0,
        notes: bool = False,
    ) -> ProjectState:
        """Generate texts or a file (.txt, .md, .epub, .docx, .pdf, .srt, .vtt, .ass, .csv) in the background, as a
        project."""
        source = _source(texts, document, notes)
        pause, speed = _check_range(pause, 0, MAX_PAUSE, "pause"), _check_range(speed, MIN_SPEED, MAX_SPEED, "speed")
        settings = ProjectSettings(voice=voice or None, speed=speed, pause=pause)
        return _project_json(await self._projects.create(caller.state.caller, source, title, settings, start=True))

    async def batch_status(self, caller: gr.Request, *, project_id: str = "") -> ProjectState:
        """The state of a project of /batch_submit, part by part; its audio is at GET /v1/projects/{id}/audio."""
        return await self._reads.run(caller.state.caller, self._status, project_id, caller.state.owner_filter)

    def _status(self, project_id: str, owner_filter: str | None) -> dict[str, object]:
        projects = self._projects.library.projects
        project = projects.get(project_id, owner_filter)
        items = [
            {
                "number": part.position,
                "state": part.state,
                "error": part.error,
                "seconds": part.take.seconds if part.take else None,
            }
            for part in projects.parts(project_id, owner_filter)
        ]
        return _project_json(project) | {"items": items}


def _project_json(project: Project) -> dict[str, object]:
    return {
        "id": project.id,
        "title": project.title,
        "state": project.state,
        "parts": {"total": sum(project.parts.values())} | project.parts,
        "seconds": project.seconds,
        "audio": f"/v1/projects/{project.id}/audio",
    }


def _source(texts: object, document: Upload | None, with_notes: bool) -> DocumentImport:
    """Raises InvalidRequest."""
    if document is not None:
        if texts:
            raise InvalidRequest("send either texts or a document, not both", "texts")
        kind = kind_of(document.name)
        return DocumentImport(document.data, kind, with_notes=bool(with_notes), file_name=document.name)
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        raise InvalidRequest("texts must be a list of texts, none of them blank", "texts")
    return DocumentImport(Document(tuple(Passage(text) for text in texts), prose=False), "items")


def _check_range(value: float, low: float, high: float, name: str) -> float:
    if not low <= value <= high:
        raise InvalidRequest(f"{name} must be from {low:g} to {high:g}", name)
    return value

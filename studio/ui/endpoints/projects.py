"""The endpoints of gradio_client for projects, /batch_submit and /batch_status; names and arguments are frozen."""

from __future__ import annotations

import gradio as gr
from anyio import to_thread

from studio.audio.tempo import MAX_SPEED, MIN_SPEED
from studio.errors import InvalidRequest, StudioError
from studio.library.client_files import Upload
from studio.library.projects.project_records import MAX_PAUSE, Project, ProjectSettings
from studio.projects.document_import import DocumentImport
from studio.projects.documents import Document, Passage, kind_of
from studio.projects.project_service import ProjectService
from studio.ui.file_fields import file_field

USUAL = ProjectSettings()


class ProjectEndpoints:
    """What the endpoints do; a caller's projects are those that it has over HTTP."""

    def __init__(self, projects: ProjectService) -> None:
        self._projects = projects

    async def submit(
        self,
        request: gr.Request,
        texts: list[str] | None = None,
        document: Upload | None = None,
        voice: str = "",
        title: str = "",
        pause: float = USUAL.pause,
        speed: float = 1.0,
        notes: bool = False,
    ) -> dict[str, object]:
        """Have a list of texts, or a document, spoken in the background; gives the project with its id."""
        try:
            wanted = _wanted(texts, document, notes)
            pause, speed = _within(pause, 0, MAX_PAUSE, "pause"), _within(speed, MIN_SPEED, MAX_SPEED, "speed")
            settings = ProjectSettings(voice=voice or None, speed=speed, pause=pause)
            project = await self._projects.create(request.state.caller, wanted, title, settings, start=True)
        except StudioError as error:
            raise _refusal(error) from error
        return self._told(project)

    async def status(self, request: gr.Request, project_id: str = "") -> dict[str, object]:
        """How a project stands, part by part; the sound is at GET /v1/projects/{id}/audio."""
        try:
            project = await to_thread.run_sync(self._projects.library.projects.get, project_id, request.state.sees)
            parts = await to_thread.run_sync(self._projects.library.projects.parts, project_id, request.state.sees)
        except StudioError as error:
            raise _refusal(error) from error
        told = [
            {
                "number": part.position,
                "state": part.state,
                "error": part.error,
                "seconds": part.take.seconds if part.take else None,
            }
            for part in parts
        ]
        return self._told(project) | {"items": told}

    def _told(self, project: Project) -> dict[str, object]:
        return {
            "id": project.id,
            "title": project.title,
            "state": project.state,
            "parts": {"total": sum(project.parts.values())} | project.parts,
            "seconds": project.seconds,
            "audio": f"/v1/projects/{project.id}/audio",
        }


def add_project_endpoints(projects: ProjectService) -> None:
    """Add the endpoints to the Blocks being built; their components are never shown."""
    endpoints = ProjectEndpoints(projects)
    with gr.Column(visible=False):
        inputs = [
            gr.JSON([], label="texts"),
            file_field("document"),
            gr.Textbox("", label="voice"),
            gr.Textbox("", label="title"),
            gr.Number(USUAL.pause, label="pause"),
            gr.Number(1.0, label="speed"),
            gr.Checkbox(False, label="notes"),
        ]
        project_id, facts = gr.Textbox("", label="project_id"), gr.JSON(label="project")
        trigger = gr.Button()
    trigger.click(
        endpoints.submit,
        inputs,
        facts,
        api_name="batch_submit",
        api_description="Speak texts or a file (.txt, .md, .epub, .docx, .pdf, .srt, .vtt, .csv) in the background.",
    )
    trigger.click(
        endpoints.status,
        project_id,
        facts,
        api_name="batch_status",
        api_description="The state of a project made by /batch_submit.",
    )


def _wanted(texts: object, document: Upload | None, with_notes: bool) -> DocumentImport:
    """Raises InvalidRequest."""
    if document is not None:
        if texts:
            raise InvalidRequest("give either texts or a document, not both", "texts")
        kind = kind_of(document.name)
        return DocumentImport(document.data, kind, with_notes=bool(with_notes), file_name=document.name)
    if not isinstance(texts, list) or not texts or not all(isinstance(each, str) and each.strip() for each in texts):
        raise InvalidRequest("texts must be a list of texts, none of them blank", "texts")
    return DocumentImport(Document(tuple(Passage(text) for text in texts), prose=False), "items")


def _within(value: float, low: float, high: float, name: str) -> float:
    if not low <= value <= high:
        raise InvalidRequest(f"{name} must be from {low:g} to {high:g}", name)
    return value


def _refusal(error: Exception) -> gr.Error:
    return gr.Error(str(error), title="The studio could not do this", print_exception=False)

"""The check of a project's audio over HTTP: started, cancelled, its doubtful spots, notes, regeneration, report."""

from __future__ import annotations

from copy import copy
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from longform.library.project_repository import ProjectLibrary
from longform.library.proof_records import Kind
from longform.proof.part_check import VERSION
from longform.proof.proof_report import ProofReport
from longform.proof.proof_runs import ProofRegeneration, ProofRuns
from longform.routes.export_routes import saved_as
from longform.routes.project_bodies import Limit, page_json, part_json
from longform.routes.proof_bodies import ImproveBody, NoteBody, ProofBody, SpotBody, proof_json, spot_json
from manuscript.passages import MAX_PARTS
from studio.api.body import JsonBody
from studio.api.openapi import sends
from studio.api.queued import look_up, project_router
from studio.api.sending import until_hangup
from studio.work import WorkQueue

REPORTS = {"csv": "text/csv", "json": "application/json", "txt": "text/plain"}


class ProofRoutes:
    def __init__(
        self, library: ProjectLibrary, runs: ProofRuns, regeneration: ProofRegeneration, exports: WorkQueue
    ) -> None:
        """``exports``: the queue in which reports are written."""
        self._library, self._runs, self._regeneration, self._exports = library, runs, regeneration, exports

    def router(self) -> APIRouter:
        routes = project_router()
        proof = "/v1/projects/{project_id}/proof"
        routes.post(proof, status_code=202)(self.start)
        routes.get(proof)(self.status)
        routes.delete(proof)(self.cancel)
        routes.get(proof + "/spots")(self.spots)
        routes.patch(proof + "/spots/{spot_id}")(self.accept)
        routes.post(proof + "/notes", status_code=201)(self.add_note)
        routes.post(proof + "/regenerate")(self.regenerate)
        routes.get(proof + "/report", **sends(*REPORTS.values()))(self.report)
        return routes

    async def start(self, project_id: str, body: JsonBody[ProofBody], request: Request) -> JSONResponse:
        """Check the audio of all parts in the background: its sound and, with a recogniser, its words.

        Parts that were checked before are not checked again, except for those whose words a recogniser can now compare.
        """
        owner_filter = request.state.owner_filter
        await until_hangup(request, self._runs.start(project_id, owner_filter, request.state.caller, body.again))
        return await self._answer(project_id, request, 202)

    async def status(self, project_id: str, request: Request) -> JSONResponse:
        """The state of the check, and its figures: parts checked, wrong words per 1,000, doubtful spots by kind."""
        return await self._answer(project_id, request)

    async def cancel(self, project_id: str, request: Request) -> JSONResponse:
        """Cancel the check; results so far are kept."""
        check = self._library.projects.check
        await until_hangup(request, look_up(check, project_id, request.state.owner_filter, "edit"))
        await self._runs.cancel(project_id)
        return await self._answer(project_id, request)

    def spots(
        self,
        project_id: str,
        request: Request,
        chapter: Annotated[int | None, Query(ge=1, le=MAX_PARTS)] = None,
        kind: Kind | None = None,
        accepted: bool = False,
        offset: Annotated[int, Query(ge=0, le=2**31)] = 0,
        limit: Limit = 50,
    ) -> JSONResponse:
        """Doubtful spots, the most severe first; ``chapter``: its number, counted from 1 as in exported files.

        Times are seconds of the spot's ``take``: the chosen one, for a note any of its part. ``accepted=true`` lists
        those that were accepted.
        """
        spots, total = self._library.proofs.spots(
            project_id, request.state.owner_filter, chapter, kind, accepted, offset, limit
        )
        return JSONResponse(page_json([spot_json(spot) for spot in spots], offset, total))

    def accept(self, project_id: str, spot_id: str, body: JsonBody[SpotBody], request: Request) -> JSONResponse:
        """Accept a doubtful spot, so that it is no longer listed, or list it again."""
        change = body.accepted, body.acceptance_before
        spot = self._library.proofs.accept(project_id, request.state.owner_filter, spot_id, *change)
        return JSONResponse(spot_json(spot))

    def add_note(self, project_id: str, body: JsonBody[NoteBody], request: Request) -> JSONResponse:
        """Mark a second of a part's take with a note: it is listed like a spot that the check has found."""
        owner_filter = request.state.owner_filter
        spot = self._library.proofs.add_note(project_id, owner_filter, body.take, body.at, body.note)
        return JSONResponse(spot_json(spot), 201)

    async def regenerate(self, project_id: str, body: JsonBody[ImproveBody], request: Request) -> JSONResponse:
        """Regenerate a part with new seeds until nothing in it is doubtful, at most ``tries`` times, and choose the
        best audio as measured by the check; the previous take stays among the part's takes."""
        owner_filter = request.state.owner_filter
        work = self._regeneration.improve(project_id, owner_filter, body.part, body.tries, request.state.caller)
        improved = await until_hangup(request, work)
        project = await until_hangup(
            request, look_up(self._library.projects.get, project_id, owner_filter, patient=True)
        )
        figures = {"tries": improved.tries, "weight_before": improved.before, "weight": improved.after}
        part = part_json(improved.part, project.settings)
        return JSONResponse(
            {"object": "project.proof.regeneration", "replaced": improved.is_replaced, **figures, "part": part}
        )

    async def report(
        self, project_id: str, request: Request, format: Literal["csv", "json", "txt"] = "csv"
    ) -> Response:
        """All doubtful spots in the order of the book, as CSV or JSON, or a summary in plain text."""

        def write() -> tuple[str, str]:
            report = ProofReport(self._library, project_id, request.state.owner_filter)
            return report.title, {"csv": report.as_csv, "json": report.as_json, "txt": report.as_text}[format]()

        title, text = await until_hangup(request, self._exports.run(request.state.caller, write))
        headers = saved_as(f"{title} check", format)
        return Response(text, media_type=f"{REPORTS[format]}; charset=utf-8", headers=headers)

    async def _answer(self, project_id: str, request: Request, status: int = 200) -> JSONResponse:
        run = copy(self._runs.run_of(project_id))  # copied first: a finished run has all its figures
        read = self._library.proofs.figures
        figures = await until_hangup(request, look_up(read, project_id, request.state.owner_filter, VERSION))
        return JSONResponse(proof_json(run, figures, self._runs.has_recogniser), status)

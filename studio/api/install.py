"""Puts the API on an app: routes, errors, middleware, and an envelope for every other /v1 address."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import Response
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import Match, Route

from studio.api.about import about_routes
from studio.api.access import Access
from studio.api.batch import batch_routes
from studio.api.document import install_document
from studio.api.errors import ApiError, Unforeseen, install_errors
from studio.api.library import LibraryRoutes
from studio.api.listing import listing_routes
from studio.api.middleware import EXPOSED, CleanAddresses, RequestIds
from studio.api.project_files import ProjectFiles
from studio.api.projects import ProjectRoutes
from studio.api.requests import request_routes
from studio.api.socket import socket_routes
from studio.api.speech import speech_routes
from studio.api.system import system_routes
from studio.api.takes import TakeRoutes
from studio.api.voices import AudioVoices
from studio.projects import ProjectDesk
from studio.settings import Settings
from studio.speech import SpeechService

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]


def install_api(app: FastAPI, service: SpeechService, settings: Settings, desk: ProjectDesk) -> None:
    """Give the app everything but the page; call it before a page is mounted at "/"."""
    install_errors(app)
    install_document(app, bool(settings.api_keys))
    routers = [
        speech_routes(service, settings),
        batch_routes(service),
        socket_routes(service, settings),
        request_routes(service),
        TakeRoutes(service).router(),
        listing_routes(service),
        AudioVoices(service).router(),
        LibraryRoutes(service).router(),
        ProjectRoutes(desk).router(),
        ProjectFiles(desk).router(),
        system_routes(service),
        about_routes(service, settings),
    ]
    for router in routers:
        app.include_router(router)
    app.router.routes.append(Route("/v1/{path:path}", _nothing_here(routers), methods=METHODS, include_in_schema=False))
    app.add_middleware(CleanAddresses)
    app.add_middleware(Access, settings=settings)
    app.add_middleware(Unforeseen)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=list(settings.cors_origins),
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
        allow_headers=["*"],
        expose_headers=list(EXPOSED),
    )
    app.add_middleware(RequestIds)


def _nothing_here(routers: list[APIRouter]) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    """A page mounted at "/" would take every address that no route fits, and answer in HTML."""

    async def nothing_here(request: Request) -> Response:
        allowed: set[str] = set()
        for route in (route for router in routers for route in router.routes):
            if isinstance(route, Route) and route.matches(request.scope)[0] is not Match.NONE:
                allowed |= route.methods or set()
        url = f"{request.method} {request.url.path}"
        if allowed:
            raise ApiError(405, f"Invalid method for URL ({url})", headers={"Allow": ", ".join(sorted(allowed))})
        raise ApiError(404, f"Invalid URL ({url})")

    return nothing_here

"""Puts the API on an app: routes, errors, middleware, and an envelope for every other /v1 address."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from studio.api.http.docs_page import install_docs_page
from studio.api.http.errors import ApiError, error_response
from studio.api.http.openapi import install_document
from studio.api.layers import install_layers
from studio.api.routes.about import about_routes
from studio.api.routes.batch import batch_routes
from studio.api.routes.continuing import continuing_routes
from studio.api.routes.gradio_files import gradio_file_routes
from studio.api.routes.mending import mending_routes
from studio.api.routes.models import model_routes
from studio.api.routes.projects.arrangement import ArrangementRoutes
from studio.api.routes.projects.covers import cover_routes
from studio.api.routes.projects.files import ProjectFiles
from studio.api.routes.projects.routes import ProjectRoutes
from studio.api.routes.pronunciations import PronunciationRoutes
from studio.api.routes.queue import queue_routes
from studio.api.routes.shares import ShareRoutes
from studio.api.routes.socket import socket_routes
from studio.api.routes.speech import speech_routes
from studio.api.routes.system import system_routes
from studio.api.routes.takes import TakeRoutes
from studio.api.routes.voices.openai import OpenAIVoiceRoutes
from studio.api.routes.voices.recogniser import recogniser_routes
from studio.api.routes.voices.routes import VoiceRoutes
from studio.projects.mending import PartMender
from studio.services import Studio
from studio.takes.mending import TakeMender
from studio.takes.timestamps import TakeTimes


def install_api(app: FastAPI, studio: Studio) -> None:
    """Give the app everything but the page; call it before a page is mounted at "/"."""
    settings, speech = studio.settings, studio.speech
    install_layers(app, settings)
    install_document(app, bool(settings.api_keys), settings.root_path)
    install_docs_page(app, settings.root_path)
    times = TakeTimes(studio.history, studio.library, speech.host)
    routers = [
        speech_routes(speech, settings),
        batch_routes(speech),
        socket_routes(speech, settings),
        queue_routes(speech, settings),
        TakeRoutes(studio.history, times, settings.share_days).router(),
        ShareRoutes(studio.history, studio.library, settings).router(),
        continuing_routes(speech, studio.history, settings),
        mending_routes(TakeMender(studio.history, times, studio.library, speech)),
        model_routes(speech),
        OpenAIVoiceRoutes(speech, studio.voices, studio.transcriber, studio.denoiser).router(),
        VoiceRoutes(speech, studio.library, studio.transcriber, studio.denoiser).router(),
        ProjectRoutes(studio.projects).router(),
        ArrangementRoutes(studio.projects, PartMender(studio.library, speech)).router(),
        ProjectFiles(studio.projects).router(),
        cover_routes(studio.library),
        PronunciationRoutes(speech.voices).router(),
        recogniser_routes(studio.transcriber, studio.recogniser_fetch, settings),
        system_routes(speech, studio.library, studio.transcriber, studio.denoiser),
        about_routes(speech, studio.library, settings),
    ]
    if settings.page:
        routers.append(gradio_file_routes(studio.client_files))
    for router in routers:
        app.include_router(router)
    for path in ("/v1", "/v1/{path:path}", "/V1", "/V1/{path:path}"):
        app.router.routes.append(Route(path, NothingHere(routers), include_in_schema=False))


class NothingHere:
    """An ASGI app, and so for whatever method: 405 where another one is right, else 404.

    A page mounted at "/" would take every address that no route fits, and answer in HTML.
    """

    def __init__(self, routers: list[APIRouter]) -> None:
        self._routers = routers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        allowed: set[str] = set()
        for route in (route for router in self._routers for route in router.routes):
            if isinstance(route, Route) and route.matches(scope)[0] is not Match.NONE:
                allowed |= route.methods or set()
        url = f"{scope['method']} {scope['path']}"
        error = ApiError(404, f"Invalid URL ({url})")
        if allowed:
            error = ApiError(405, f"Invalid method for URL ({url})", headers={"Allow": ", ".join(sorted(allowed))})
        await error_response(error)(scope, receive, send)

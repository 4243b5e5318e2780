"""Installs the API on an app: routes, errors, middleware, and JSON errors for unknown paths."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from studio.api.error_responses import ApiError, error_response, protocol_of
from studio.api.middleware import install_layers
from studio.api.openapi import install_docs_page, install_document
from studio.api.routes.batch import batch_routes
from studio.api.routes.engine_models import EngineModelRoutes, recogniser_routes
from studio.api.routes.gradio_files import gradio_file_routes
from studio.api.routes.models import model_routes
from studio.api.routes.openai_voice_routes import OpenAIVoiceRoutes
from studio.api.routes.pronunciation_routes import PronunciationRoutes
from studio.api.routes.share_routes import ShareRoutes
from studio.api.routes.socket import socket_routes
from studio.api.routes.speech_routes import job_routes, queue_routes, speech_routes
from studio.api.routes.system import about_routes, system_routes
from studio.api.routes.take_routes import TakeRoutes
from studio.api.routes.transcription_routes import transcription_routes
from studio.api.routes.trash_routes import TrashRoutes
from studio.api.routes.voice_routes import VoiceRoutes
from studio.jobs import DownloadJobs
from studio.services import Studio
from studio.takes.take_likeness import TakeLikeness

PREFIXES = ("/v1", "/V1", "/audio", "/models", "/dev")
"""All paths below these belong to the API: /audio and /models are called by OpenAI's clients if their base URL lacks
/v1, /dev by Kokoro-FastAPI's."""


def install_api(app: FastAPI, studio: Studio) -> None:
    """Add everything except the page; call this before a page is mounted at "/"."""
    settings, speech = studio.settings, studio.speech
    install_layers(app, settings)
    install_document(app, bool(settings.api_keys), settings.root_path)
    install_docs_page(app, settings.root_path)
    likeness = TakeLikeness(studio.library, studio.library_prints, studio.clips, speech.queues.clips)
    takes = TakeRoutes(studio.history, studio.word_times, likeness, studio.regeneration, speech, settings.share_days)
    routers = [
        speech_routes(speech),
        batch_routes(speech),
        transcription_routes(studio.clips),
        socket_routes(speech),
        queue_routes(speech, settings),
        job_routes([*studio.additions.listed, DownloadJobs(studio.models, studio.recogniser_download)], settings),
        takes.router(),
        TrashRoutes(studio.library.trash).router(),
        ShareRoutes(studio.history, studio.library, settings).router(),
        model_routes(speech),
        OpenAIVoiceRoutes(speech, studio.voices, studio.clips, studio.history).router(),
        VoiceRoutes(speech, studio.library, studio.clips, speech.queues).router(),
        PronunciationRoutes(speech.voices).router(),
        recogniser_routes(studio.clips.transcriber, studio.recogniser_download, settings),
        EngineModelRoutes(studio.models, speech.host, settings).router(),
        system_routes(speech, studio.library, studio.clips),
        about_routes(speech, studio.library, settings, studio.update_notice),
        *studio.additions.routers,
    ]
    if settings.page:
        routers.append(gradio_file_routes(studio.client_files))
    for router in routers:  # not included: FastAPI would build each route a second time, at the first request
        app.router.routes.extend(router.routes)
    unknown_route = UnknownRoute(routers)
    paths = [path for path in unknown_route.paths if not path.startswith(("/v1/", "/gradio_api/"))]
    for prefix in (*PREFIXES, *studio.additions.prefixes):
        paths += prefix, f"{prefix}/{{path:path}}"
    for path in paths:
        app.router.routes.append(Route(path, unknown_route, include_in_schema=False))


class UnknownRoute:
    """An ASGI app for all methods: answers 405 if another method is allowed, otherwise 404 with a hint.

    Without it, a page mounted at "/" would answer unknown paths in HTML.
    """

    def __init__(self, routers: list[APIRouter]) -> None:
        self._routes = [route for router in routers for route in router.routes if isinstance(route, Route)]

    @property
    def paths(self) -> list[str]:
        """The paths of all routes, without repetitions."""
        return list(dict.fromkeys(route.path for route in self._routes))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        url = f"{scope['method']} {scope['path']}"
        if (refusal := _not_offered(scope["path"])) is not None:
            error = refusal
        elif allowed := self._methods(scope):
            error = ApiError(405, f"Invalid method for URL ({url})", headers={"Allow": ", ".join(sorted(allowed))})
        else:
            error = ApiError(404, f"Invalid URL ({url}){self._hint(scope)}")
        await error_response(error, scope["path"])(scope, receive, send)

    def _methods(self, scope: Scope) -> set[str]:
        """The allowed methods of a path; for /v1/takes/export only its own, not those of /v1/takes/{take}."""
        matches = [route for route in self._routes if route.matches(scope)[0] is not Match.NONE]
        fewest = min((route.path.count("{") for route in matches), default=0)
        return {method for route in matches if route.path.count("{") == fewest for method in route.methods or ()}

    def _hint(self, scope: Scope) -> str:
        path: str = scope["path"]
        correct = path.rstrip("/")
        if not correct.lower().startswith("/v1"):
            correct = f"/v1{correct}"
        if correct == path or not self._methods({**scope, "path": correct}):
            return ""
        return f": the address is {correct}; a client's base URL ends in /v1"


def _not_offered(path: str) -> ApiError | None:
    path = "/" + path.lstrip("/")
    if (protocol := protocol_of(path)) is None:
        return None
    texts = (text for start, text in protocol.not_offered.items() if path == start or path.startswith(f"{start}/"))
    return next((ApiError(protocol.not_offered_status, text, code="not_offered") for text in texts), None)

"""Installs the API on an app: routes, errors, middleware, and JSON errors for unknown paths."""

from __future__ import annotations

from anyio import CapacityLimiter
from fastapi import APIRouter, FastAPI
from starlette.routing import Match, Route
from starlette.types import Receive, Scope, Send

from studio.api.fish.account import account_routes
from studio.api.fish.asr import asr_routes
from studio.api.fish.fish_voices import FishVoices
from studio.api.fish.live import live_routes
from studio.api.fish.model_routes import ModelRoutes
from studio.api.fish.reference_routes import ReferenceRoutes
from studio.api.fish.tts import tts_routes
from studio.api.http.docs_page import install_docs_page
from studio.api.http.error_responses import ApiError, error_response
from studio.api.http.middleware import install_layers
from studio.api.http.openapi import install_document
from studio.api.routes.about import about_routes
from studio.api.routes.batch import batch_routes
from studio.api.routes.engine_models import EngineModelRoutes
from studio.api.routes.gradio_files import gradio_file_routes
from studio.api.routes.models import model_routes
from studio.api.routes.projects.arrangement_routes import ArrangementRoutes
from studio.api.routes.projects.cast_routes import CastRoutes
from studio.api.routes.projects.chapter_routes import ChapterRoutes
from studio.api.routes.projects.cover_routes import cover_routes
from studio.api.routes.projects.export_routes import ProjectFiles
from studio.api.routes.projects.project_routes import ProjectRoutes
from studio.api.routes.projects.proof_routes import ProofRoutes
from studio.api.routes.pronunciation_routes import PronunciationRoutes
from studio.api.routes.share_routes import ShareRoutes
from studio.api.routes.socket import socket_routes
from studio.api.routes.speech_routes import queue_routes, speech_routes
from studio.api.routes.system import system_routes
from studio.api.routes.take_routes import TakeRoutes
from studio.api.routes.trash_routes import TrashRoutes
from studio.api.routes.voices.openai_voice_routes import OpenAIVoiceRoutes
from studio.api.routes.voices.recogniser_routes import recogniser_routes
from studio.api.routes.voices.voice_routes import VoiceRoutes
from studio.history.regeneration import Regeneration
from studio.history.take_likeness import TakeLikeness
from studio.history.take_word_times import TakeWordTimes
from studio.projects.part_regeneration import PartRegeneration
from studio.projects.proof.proof_regeneration import ProofRegeneration
from studio.services import Studio

PREFIXES = ("/v1", "/V1", "/audio", "/models", "/model", "/wallet", "/compat", "/mcp")
"""All paths below these belong to the API: /audio and /models are called by OpenAI's clients if their base URL lacks
/v1; the last four are Fish Audio's."""
NOT_OFFERED = {
    "/v1/voice-design": "Voices cannot be designed from a description; create one from a recording with POST /model.",
    "/v1/audio/infill": "Recordings cannot be edited; POST /v1/takes/{take_id}/mend regenerates a sentence of a take.",
    "/v1/agent": "There are no agents; generate their speech with the socket /v1/tts/live.",
    "/v1/vqgan": "Audio codes are neither returned nor accepted; send recordings to POST /v1/tts.",
    "/v1/chat": "The model does not chat; POST /v1/tts generates speech.",
    "/compat": "Other services' APIs are not available below /compat; OpenAI's is at /v1/audio/speech.",
    "/mcp": "There is no MCP server; POST /v1/tts generates speech.",
}
"""Paths of Fish Audio and fish-speech that the studio lacks, and the alternatives."""


PARTS_REGENERATED = 2
"""Maximum simultaneous regenerations, by request or by the check; others wait, so that live requests get rows."""


def install_api(app: FastAPI, studio: Studio) -> None:
    """Add everything except the page; call this before a page is mounted at "/"."""
    settings, speech = studio.settings, studio.speech
    install_layers(app, settings)
    install_document(app, bool(settings.api_keys), settings.root_path)
    install_docs_page(app, settings.root_path)
    times = TakeWordTimes(studio.library, speech.host, speech.queues.alignments)
    likeness = TakeLikeness(studio.library, studio.library_prints, studio.clips, speech.queues.clips)
    regeneration = Regeneration(studio.history, times, studio.library, speech)
    places = CapacityLimiter(PARTS_REGENERATED)
    fish_voices = FishVoices(studio.library, studio.clips)
    routers = [
        speech_routes(speech),
        batch_routes(speech),
        socket_routes(speech),
        queue_routes(speech, settings),
        TakeRoutes(studio.history, times, likeness, regeneration, speech, settings.share_days).router(),
        TrashRoutes(studio.library.trash).router(),
        ShareRoutes(studio.history, studio.library, settings).router(),
        model_routes(speech),
        OpenAIVoiceRoutes(speech, studio.voices, studio.clips).router(),
        VoiceRoutes(speech, studio.library, studio.clips, speech.queues).router(),
        ProjectRoutes(studio.projects, studio.cast).router(),
        ChapterRoutes(studio.projects).router(),
        CastRoutes(studio.library, studio.cast).router(),
        ArrangementRoutes(studio.projects, PartRegeneration(studio.library, regeneration, places)).router(),
        ProofRoutes(
            studio.library,
            studio.proofs,
            ProofRegeneration(studio.library, speech, studio.proofs, places),
            speech.queues.exports,
        ).router(),
        ProjectFiles(studio.projects, times, speech.queues).router(),
        cover_routes(studio.library),
        PronunciationRoutes(speech.voices).router(),
        recogniser_routes(studio.clips.transcriber, studio.recogniser_download, settings),
        EngineModelRoutes(studio.models, speech.host, settings).router(),
        system_routes(speech, studio.library, studio.clips),
        about_routes(speech, studio.library, settings),
        tts_routes(speech),
        live_routes(speech),
        ModelRoutes(speech, fish_voices, settings.root_path).router(),
        ReferenceRoutes(speech, fish_voices).router(),
        asr_routes(studio.clips),
        account_routes(),
    ]
    if settings.page:
        routers.append(gradio_file_routes(studio.client_files))
    for router in routers:  # not included: FastAPI would build each route a second time, at the first request
        app.router.routes.extend(router.routes)
    unknown_route = UnknownRoute(routers)
    own_paths = [path for path in unknown_route.paths if not path.startswith(("/v1/", "/gradio_api/"))]
    for path in own_paths + [path for prefix in PREFIXES for path in (prefix, f"{prefix}/{{path:path}}")]:
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
        error = ApiError(404, _not_offered(scope["path"]) or f"Invalid URL ({url}){self._hint(scope)}")
        if allowed := self._methods(scope):
            error = ApiError(405, f"Invalid method for URL ({url})", headers={"Allow": ", ".join(sorted(allowed))})
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


def _not_offered(path: str) -> str | None:
    path = "/" + path.lstrip("/")
    return next((text for start, text in NOT_OFFERED.items() if path == start or path.startswith(f"{start}/")), None)

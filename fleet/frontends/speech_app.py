"""The routes that a speech process answers itself, as an app: all that send speech."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.routing import APIRoute
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.types import Scope

from studio.api.fish.live import live_routes
from studio.api.fish.tts import tts_routes
from studio.api.http.middleware import install_layers
from studio.api.routes.batch import batch_routes
from studio.api.routes.socket import socket_routes
from studio.api.routes.speech_routes import speech_routes
from studio.settings import Settings
from studio.speech.speech_service import SpeechService


class SpeechApi:
    """An ASGI app that knows which requests it answers."""

    def __init__(self, service: SpeechService, settings: Settings) -> None:
        routers = (
            speech_routes(service),
            batch_routes(service),
            socket_routes(service),
            tts_routes(service),
            live_routes(service),
        )
        self.app = FastAPI(openapi_url=None)
        install_layers(self.app, settings)
        for router in routers:
            self.app.router.routes.extend(router.routes)
        self._routes = {pair for router in routers for route in router.routes for pair in _routes(route)}

    def answers(self, scope: Scope) -> bool:
        """Whether it answers a request or socket; the studio answers all others, including refusals."""
        return (scope.get("method", scope["type"]), scope["path"]) in self._routes


def _routes(route: BaseRoute) -> set[tuple[str, str]]:
    if isinstance(route, WebSocketRoute):
        return {("websocket", route.path)}
    assert isinstance(route, APIRoute)
    return {(method, route.path) for method in route.methods or ()}

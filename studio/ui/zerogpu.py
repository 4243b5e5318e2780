"""The page launched by Gradio itself, which ZeroGPU requires, behind all other routes of the studio."""

from __future__ import annotations

import gradio as gr
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.services import Studio
from studio.ui.blocks import MAX_SESSIONS
from studio.ui.offered_routes import app_options
from studio.ui.page import build_page, gradio_options, serve_files

FALLBACK = "studio.handed_on"
"""Key in a request's scope: Gradio's app and its original scope."""


class StudioFirst:
    """ASGI middleware of Gradio's app: the studio's app answers, or passes on requests without a route."""

    def __init__(self, gradio_app: ASGIApp, studio: ASGIApp) -> None:
        self._gradio, self._studio = gradio_app, studio

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._gradio(scope, receive, send)
        else:
            await self._studio({**scope, FALLBACK: (self._gradio, scope)}, receive, send)


async def _fall_back(scope: Scope, receive: Receive, send: Send) -> None:
    gradio_app, original = scope[FALLBACK]
    await gradio_app({**original, "headers": scope["headers"]}, receive, send)


def launch_page(app: FastAPI, studio: Studio) -> gr.Blocks:
    """Serve ``app`` with the page at "/" in a thread of Gradio's. Returns the page once it is up; close it."""
    settings = studio.settings
    files = serve_files(app, studio)
    app.mount("/", _fall_back)
    page = build_page(studio)
    page.launch(
        prevent_thread_lock=True,
        quiet=True,
        state_session_capacity=MAX_SESSIONS,
        server_name=settings.host,
        server_port=settings.port,
        app_kwargs=app_options(page.calls, Middleware(StudioFirst, studio=app)),
        **gradio_options(settings, files),
    )
    return page

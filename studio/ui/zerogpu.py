"""The page as Gradio itself launches it, which ZeroGPU wants, behind all other routes of the studio."""

from __future__ import annotations

import gradio as gr
from fastapi import FastAPI
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Receive, Scope, Send

from studio.services import Studio
from studio.ui.blocks import MOST_SESSIONS
from studio.ui.offered_routes import of_offered_routes
from studio.ui.page import build_page, look_of, serve_files

HANDED_ON = "studio.handed_on"
"""Key of a request's scope: Gradio's app, and the scope as Gradio knows it."""


class StudioFirst:
    """ASGI middleware of Gradio's app: the studio's app answers, and hands on what it has no route for."""

    def __init__(self, gradio_app: ASGIApp, studio: ASGIApp) -> None:
        self._gradio, self._studio = gradio_app, studio

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._gradio(scope, receive, send)
        else:
            await self._studio({**scope, HANDED_ON: (self._gradio, scope)}, receive, send)


async def _hand_on(scope: Scope, receive: Receive, send: Send) -> None:
    gradio_app, original = scope[HANDED_ON]
    await gradio_app({**original, "headers": scope["headers"]}, receive, send)


def launch_page(app: FastAPI, studio: Studio) -> gr.Blocks:
    """Serve ``app`` with the page at "/", in a thread of Gradio's; returns once it is up. Close what is returned."""
    settings = studio.settings
    files = serve_files(app, settings)
    app.mount("/", _hand_on)
    page = build_page(studio)
    page.launch(
        prevent_thread_lock=True,
        quiet=True,
        state_session_capacity=MOST_SESSIONS,
        server_name=settings.host,
        server_port=settings.port,
        app_kwargs=of_offered_routes(page.calls, Middleware(StudioFirst, studio=app)),
        **look_of(settings, files),
    )
    return page

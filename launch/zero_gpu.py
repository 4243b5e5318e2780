"""ZeroGPU, all of it: each of Gradio's requests gets a GPU for one call, in a fork of this process, and Gradio launches
the page. Import this before torch."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from launch import import_torch

if os.environ.get("SPACES_ZERO_GPU"):
    os.environ.setdefault("MKL_DISABLE_FAST_MM", "1")  # MKL's cached buffers can hang in a fork
    import spaces  # replaces CUDA, which works only in the thread that imports it
else:
    import_torch()

from engine import DirectEngine, EngineError
from studio.engine_host import Reporter, StartEngine, engine_config
from studio.errors import SettingsError
from studio.settings import Settings

if TYPE_CHECKING:
    import gradio as gr
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Receive, Scope, Send

FALLBACK = "studio.handed_on"  # key in a request's scope: Gradio's app and its original scope
MODEL_FIXED = "On ZeroGPU the model is loaded once: set the Space's variable STUDIO_MODEL and restart it."


def is_here() -> bool:
    """Whether this process runs on ZeroGPU."""
    return bool(os.environ.get("SPACES_ZERO_GPU"))


def check(settings: Settings) -> None:
    """Raise SettingsError for a setting that ZeroGPU does not allow."""
    if settings.has_fleet or not settings.page:
        names = "STUDIO_PAGE=0, STUDIO_ENGINES and STUDIO_RAY_ADDRESS"
        raise SettingsError(f"{names} cannot be used on ZeroGPU, which serves only the page, on a borrowed GPU")


def serve(
    settings: Settings,
    reporter: Reporter,
    create_app: Callable[[Settings, StartEngine, Reporter, bool], FastAPI],
    stopping: Sequence[signal.Signals],
) -> int:
    """Serve until one of the signals ``stopping``; returns the exit code.

    ``create_app`` gets True for an app without a page and without speech generated in the background.
    """
    try:
        engine = DirectEngine.start(engine_config(settings), reporter.progress, _lend)
    except (EngineError, OSError, RuntimeError, MemoryError) as error:
        reporter.failed(str(error))
        return 1
    app = create_app(settings, lambda config, progress: engine, reporter, True)
    app.state.studio.models.fixed_because = MODEL_FIXED
    asyncio.run(_launch_until_stopped(app, stopping))
    return 0


def _lend(task: Callable[..., Any], seconds: Callable[..., float]) -> Callable[..., Any]:
    wrapped: Callable[..., Any] = spaces.GPU(duration=seconds)(task)
    return wrapped


async def _launch_until_stopped(app: FastAPI, stopping: Sequence[signal.Signals]) -> None:
    stopped = asyncio.Event()
    for number in stopping:
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    async with app.router.lifespan_context(app):
        await app.state.studio.speech.host.ready()
        page = _launch_page(app)
        await stopped.wait()
        page.close(verbose=False)


def _launch_page(app: FastAPI) -> gr.Blocks:
    """Serve ``app`` with the page at "/" in a thread of Gradio's. Returns the page once it is up; close it."""
    from starlette.middleware import Middleware

    from studio.ui.blocks import MAX_SESSIONS
    from studio.ui.offered_routes import app_options
    from studio.ui.page import build_page, gradio_options, serve_files  # Gradio takes seconds to import

    studio = app.state.studio
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
        **gradio_options(settings, files, speaks_through_gradio=True),
    )
    return page


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
    changed = {name: scope[name] for name in ("headers", "query_string", "scheme")}
    await gradio_app({**original, **changed}, receive, send)

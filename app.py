"""The studio's start: one FastAPI app of API and page; `python app.py` serves it, on a Space too."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Literal

import uvicorn
from fastapi import FastAPI

from engine import Engine, EngineConfig, EngineError
from studio.api import install_api
from studio.bundled import import_bundled
from studio.errors import InvalidClip
from studio.fetch import Fetcher
from studio.host import EngineHost, Reporter, StartEngine
from studio.library import Library
from studio.limits import Limits
from studio.recogniser import Transcriber
from studio.settings import Settings, SettingsError
from studio.speech import SpeechService
from studio.terminal import Terminal
from studio.voices import VoiceShelf

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

log = logging.getLogger("studio")

KV_ATTENTION: dict[str, Literal["auto", "off", "required"]] = {"1": "auto", "0": "off", "required": "required"}
"""FISH_KVCACHE_ATTN, in the engine's words."""

GRACE_SECONDS = 5
"""How long a shutdown waits for streams under way; then they are ended."""


def create_app(
    settings: Settings,
    start_engine: StartEngine = Engine.start,
    reporter: Reporter | None = None,
) -> FastAPI:
    """The whole studio as one ASGI app; its lifespan starts the engine in the background and stops it.

    ``start_engine`` makes the engine, ``reporter`` hears how that goes.
    """
    config = EngineConfig(
        model=settings.model,
        device=settings.device,
        codec_device=settings.codec_device,
        dtype=settings.dtype,
        codec_dtype=settings.codec_dtype,  # type: ignore[arg-type]  # the settings allow no other
        max_rows=settings.max_rows,
        max_waiting=settings.max_waiting,
        max_context=settings.max_context,
        threads=settings.threads,
        memory_bytes=None if settings.memory_budget is None else settings.memory_budget * 2**30,
        prefix_bytes=settings.prefix_cache_mb * 2**20,
        graphs=settings.graphs,
        kv_attention=KV_ATTENTION[settings.fish_kvcache_attn],
        weights=settings.weights,  # type: ignore[arg-type]
        reproducible=settings.reproducible,
    )
    host = EngineHost(config, start_engine, reporter)
    limits = Limits(settings.max_per_caller, settings.requests_per_minute)
    library = Library(Path(settings.studio_home))
    fetcher = Fetcher(Path(settings.ref_folder) if settings.ref_folder else None, settings.ref_networks)
    transcriber = Transcriber(settings.transcriber)
    import_bundled(library, Path(settings.voices))
    service = SpeechService(host, VoiceShelf(library), limits, settings.keep_takes, fetcher, transcriber)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        host.start()
        warming = asyncio.create_task(_warm(service))
        try:
            yield
        finally:
            warming.cancel()
            await asyncio.to_thread(host.stop)

    app = FastAPI(title="Fish voice studio", lifespan=lifespan, redoc_url=None)
    app.state.service = service
    install_api(app, service, settings)
    if settings.page:
        from studio.ui.page import mount_page  # Gradio takes seconds to import, and the API alone needs none

        mount_page(app, service, settings)
    return app


async def _warm(service: SpeechService) -> None:
    try:
        await service.warm_voices()
    except (EngineError, InvalidClip, OSError, RuntimeError) as error:
        log.warning("the bundled voices could not be made ready: %s", error)


def main() -> int:
    """Serve until stopped; the exit code is 1 when a setting is wrong or the engine cannot start."""
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        print(f"The studio did not start: {error}", file=sys.stderr)
        return 1
    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s")
    terminal = Terminal(settings)
    server = uvicorn.Server(
        uvicorn.Config(
            create_app(settings, reporter=terminal),
            host=settings.host,
            port=settings.port,
            log_level=settings.log_level,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=GRACE_SECONDS,
            server_header=False,
        )
    )

    def leave() -> None:
        server.should_exit = True

    terminal.on_failure = leave
    with contextlib.suppress(KeyboardInterrupt):
        server.run()
    return 1 if terminal.has_failed or not server.started else 0


if __name__ == "__main__":
    sys.exit(main())

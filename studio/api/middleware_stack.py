"""The layers around the routes of each process: request ids, framing, CORS, faults, access, addresses, bodies."""

from __future__ import annotations

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from studio.api.http.access import Access
from studio.api.http.error_responses import Unforeseen, install_errors
from studio.api.http.middleware import EXPOSED, BoundedBodies, CleanAddresses, FrameAncestors, RequestIds, SendTimeout
from studio.settings import Settings


def install_layers(app: FastAPI, settings: Settings) -> None:
    """Errors in the envelope, and the middleware; who comes first is named last."""
    install_errors(app)
    app.add_middleware(BoundedBodies)
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
    app.add_middleware(FrameAncestors, settings=settings)
    app.add_middleware(SendTimeout)
    app.add_middleware(RequestIds)

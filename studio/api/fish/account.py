"""The account that Fish Audio's clients request during setup: constants, as the studio is free."""

from __future__ import annotations

import hashlib

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

CREATED = "2025-01-01T00:00:00+00:00"
FINISHED = "2099-12-31T00:00:00+00:00"
PLENTY = 1_000_000_000
"""Bytes of text in the package, which are never used up."""


def author_of(request: Request) -> str:
    """The id of a caller's account: constant for a key, and the same for all callers without keys."""
    owner = request.state.owner_filter or "everybody"
    return hashlib.sha256(f"account of {owner}".encode()).hexdigest()[:32]


def account_routes() -> APIRouter:
    """The routes of /wallet; ``self`` may be any id."""
    routes = APIRouter(tags=["fish audio"])

    @routes.get("/wallet/{user_id}/api-credit")
    async def credit(user_id: str, request: Request) -> JSONResponse:
        """The credit: constant. Home Assistant calls this during setup and identifies the account by user_id."""
        return _answer(request, credit="1000000", has_phone_sha256=False, has_free_credit=False)

    @routes.get("/wallet/{user_id}/package")
    async def package(user_id: str, request: Request) -> JSONResponse:
        """The package: constant."""
        return _answer(request, type="free", total=PLENTY, balance=PLENTY, finished_at=FINISHED)

    return routes


def _answer(request: Request, **fields: object) -> JSONResponse:
    account = author_of(request)
    return JSONResponse({"_id": account, "user_id": account, "created_at": CREATED, "updated_at": CREATED} | fields)

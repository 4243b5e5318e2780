"""Routes for the studio's owner: the holder of the first API key, or anyone where no keys are set, but on a Space."""

from __future__ import annotations

from fastapi import Request

from studio.api.http.error_responses import ApiError
from studio.settings import Settings, on_space


def is_owner(settings: Settings, request: Request) -> bool:
    """Whether the caller may change what the studio consists of."""
    return settings.has_first_key(request.state.caller) and bool(settings.api_keys or not on_space())


def check_owner(settings: Settings, request: Request) -> None:
    """Raises ApiError (403)."""
    if not is_owner(settings, request):
        raise ApiError(403, "Only the holder of the first API key may do this.", code="owner_only")

"""Links to takes: created, listed and revoked by the owner, opened by anyone with the link, without a key."""

from __future__ import annotations

import html
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import Field

from studio import ASSETS
from studio.api.access import SHARED
from studio.api.body import JsonBody
from studio.api.field_types import NO_BOOLEAN, StrictBody
from studio.api.routes.take_routes import stored_audio
from studio.errors import DamagedAudio, InvalidRequest, NotFound, NotOffered
from studio.i18n import page_phrases
from studio.library import Library
from studio.library.shares import Share
from studio.settings import Settings
from studio.takes.history import History
from studio.work import read, write

_PAGE = ASSETS / "page" / "share"
GUARDED = {
    "Cache-Control": "no-store",  # revoking takes effect immediately
    "Referrer-Policy": "no-referrer",  # the address is the key
    "X-Content-Type-Options": "nosniff",
    "X-Robots-Tag": "noindex",
    "Content-Security-Policy": "default-src 'none'; media-src 'self'; style-src 'unsafe-inline'; form-action 'none'",
}
TAKE = ("audio.take.share", "take")
_SHOWN = 200
"""Characters of the take's text in the preview of a link."""


class NewShare(StrictBody):
    days: Annotated[int, Field(ge=1), NO_BOOLEAN] | None = Field(
        None, description="Days until the link expires; absent: as many as STUDIO_SHARE_DAYS allows."
    )

    def checked(self, limit: int, param: str) -> int:
        """The days; ``limit``: STUDIO_SHARE_DAYS. Raises NotOffered, for ``param``, and InvalidRequest."""
        if not limit:
            raise NotOffered("sharing by links is disabled; the studio's owner can set STUDIO_SHARE_DAYS", param)
        if (self.days or limit) > limit:
            raise InvalidRequest(f"days must be from 1 to {limit}, the value of STUDIO_SHARE_DAYS", "days")
        return self.days or limit


class ShareRoutes:
    def __init__(self, history: History, library: Library, settings: Settings) -> None:
        self._history, self._shares, self._settings = history, library.shares, settings
        pages = ((_PAGE / name).read_text("utf-8") for name in ("take.html", "gone.html"))
        self._page, self._gone_page = map(page_phrases().translations, pages)

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["takes"])
        path = "/v1/takes/{take_id}/shares"
        routes.get(path)(self.list_shares)
        routes.post(path, status_code=201)(self.add_share)
        routes.delete(path + "/{token}")(self.remove_share)
        routes.get(SHARED + "{token}", include_in_schema=False)(self.show)
        routes.get(SHARED + "{token}/audio", include_in_schema=False)(self.play)
        return routes

    async def list_shares(self, take_id: str, request: Request) -> JSONResponse:
        """The links to a take."""
        await self._history.stored_take(take_id, request.state.owner_filter)
        shares = await read(self._shares.of, take_id)
        return JSONResponse({"object": "list", "data": [share_json(share, *TAKE) for share in shares]})

    async def add_share(self, take_id: str, body: JsonBody[NewShare], request: Request) -> JSONResponse:
        """Create a link with which anyone can play this take and read its text: {"days": 7}. STUDIO_SHARE_DAYS
        enables links and limits their days."""
        days = body.checked(self._settings.share_days, "take_id")
        await self._history.sound(take_id, request.state.owner_filter)
        share = await write(self._shares.add, take_id, days)
        return JSONResponse(share_json(share, *TAKE), 201)

    async def remove_share(self, take_id: str, token: str, request: Request) -> JSONResponse:
        """Revoke a link, with immediate effect."""
        await self._history.stored_take(take_id, request.state.owner_filter)
        await write(self._shares.remove, take_id, token)
        return JSONResponse({"token": token, "object": "audio.take.share.deleted", "deleted": True})

    async def show(self, token: str, request: Request) -> Response:
        """A page with the take's audio and text."""
        language = page_phrases().language_for(request)
        try:
            take, _ = await self._history.sound(await self._take_id(token), None)
        except (NotFound, DamagedAudio):
            return HTMLResponse(self._gone_page[language], 404, GUARDED)
        created = datetime.fromtimestamp(take.created, UTC)
        words = " ".join(take.text.split())
        values = {
            "text": take.text,
            "excerpt": words[:_SHOWN] + "…" * (len(words) > _SHOWN),
            "voice": take.label,
            "made": f"{created:%Y-%m-%d}",
            "audio": f"{token}/audio",  # relative, so that it works behind any proxy
        }
        page = self._page[language]
        for name, value in values.items():
            page = page.replace(f"{{{name}}}", html.escape(value).replace("{", "&#123;"))
        return HTMLResponse(page, headers=GUARDED)

    async def play(self, token: str, request: Request) -> Response:
        """The audio as stored."""
        try:
            take, path = await self._history.sound(await self._take_id(token), None)
        except (NotFound, DamagedAudio) as error:
            return Response(error.message, 404, GUARDED, "text/plain")
        return stored_audio(request, take, path, GUARDED)

    async def _take_id(self, token: str) -> str:
        """The id of a link's take. Raises NotFound."""
        if not self._settings.share_days:
            raise NotFound("sharing by links is disabled", "token")
        return await read(self._shares.item_id, token)


def share_json(share: Share, kind: str, item: str, file: str = "") -> dict[str, object]:
    """A link. ``item``: the field of the id of what it opens; ``file``: the rest of its path."""
    return {
        "object": kind,
        "token": share.token,
        item: share.item_id,
        "path": f"{SHARED}{share.token}{file}",  # relative: the studio does not know its public address
        "created": int(share.created),
        "expires": int(share.expires),
    }

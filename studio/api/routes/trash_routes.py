"""The trash over HTTP: /v1/trash, what was deleted and can be restored, or removed for good."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from studio.api.http.body import as_model, read_json
from studio.api.http.openapi import reads
from studio.errors import InvalidRequest, NotFound
from studio.library.trash import Kind, Trash, TrashItem

MAX_PAGE = 200
MAX_ITEMS = 1000


class TrashItemBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: Kind
    id: str


class RestoreTrashBody(BaseModel):
    """What is to be restored: all of it, or nothing."""

    model_config = ConfigDict(extra="forbid")

    items: list[TrashItemBody] = Field(min_length=1, max_length=MAX_ITEMS)


class TrashRoutes:
    """The routes of this trash. With API keys each key sees its own things, and the voices, which all keys share."""

    def __init__(self, trash: Trash) -> None:
        self._trash = trash

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["trash"])
        routes.get("/v1/trash")(self.list_trash)
        routes.post("/v1/trash/restore", openapi_extra=reads(RestoreTrashBody))(self.restore)
        routes.delete("/v1/trash")(self.empty)
        return routes

    def list_trash(self, request: Request, limit: int = 50, after: str | None = None) -> JSONResponse:
        """What was deleted and can be restored, the last deleted first: takes, voices, projects and parts, and as a
        ``replacement`` the texts that parts had before words in them were replaced."""
        if not 1 <= limit <= MAX_PAGE:
            raise InvalidRequest(f"limit must be from 1 to {MAX_PAGE}", "limit")
        found = self._trash.page(request.state.sees, limit + 1, after)
        data = [self._json(item) for item in found[:limit]]
        last = data[-1]["id"] if data else None
        return JSONResponse({"object": "list", "data": data, "last_id": last, "has_more": len(found) > limit})

    async def restore(self, request: Request) -> JSONResponse:
        """Restore things: {"items": [{"kind": "take", "id": "…"}]}; those that were in the trash. If one of them has no
        place any more, as a voice whose name has another owner, none is."""
        body = as_model(await read_json(request), RestoreTrashBody)
        items = [(item.kind, item.id) for item in body.items]
        restored = await to_thread.run_sync(self._trash.restore, items, request.state.sees)
        if not restored:
            raise NotFound("none of these is in the trash", "items")
        return JSONResponse({"object": "list", "data": [{"kind": kind, "id": item_id} for kind, item_id in restored]})

    def empty(
        self,
        request: Request,
        kind: Kind | None = None,
        ids: Annotated[str | None, Query(description="Separated by commas; absent: all of it")] = None,
    ) -> JSONResponse:
        """Delete things in the trash for good: those of a kind, those of these ids, or all. With API keys that leaves
        voices, which other keys may want back, unless it names their kind or ids."""
        named = None if ids is None else [each.strip() for each in ids.split(",") if each.strip()]
        if named is not None and len(named) > MAX_ITEMS:
            raise InvalidRequest(f"ids has {len(named)}; at most {MAX_ITEMS} are allowed", "ids")
        return JSONResponse({"object": "trash.emptied", "count": self._trash.empty(request.state.sees, kind, named)})

    def _json(self, item: TrashItem) -> dict[str, Any]:
        return {"object": "trash.item", **asdict(item), "expires": item.deleted + self._trash.seconds}

"""The trash over HTTP: /v1/trash, to list, restore and permanently remove deleted items."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse
from pydantic import Field

from studio.api.body import JsonBody
from studio.api.field_types import StrictBody, check_deletion, ids_of, list_page
from studio.api.queued import LibraryRoute
from studio.errors import NotFound
from studio.library.trash import Trash, TrashItem, TrashKind

MAX_PAGE = 200
MAX_ITEMS = 20_000
"""As many parts as a project may have, so that what one request deleted, another restores."""


class TrashItemBody(StrictBody):
    kind: TrashKind
    id: str


class RestoreTrashBody(StrictBody):
    """The items to restore: all of them, or none if one fails."""

    items: list[TrashItemBody] = Field(min_length=1, max_length=MAX_ITEMS)


class TrashRoutes:
    """With API keys, each caller sees its own items, and what was deleted in projects that it may edit."""

    def __init__(self, trash: Trash) -> None:
        self._trash = trash

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["trash"], route_class=LibraryRoute)
        routes.get("/v1/trash")(self.list_trash)
        routes.post("/v1/trash/restore")(self.restore)
        routes.delete("/v1/trash")(self.empty)
        return routes

    def list_trash(
        self, request: Request, limit: Annotated[int, Query(ge=1, le=MAX_PAGE)] = 50, after: str | None = None
    ) -> JSONResponse:
        """Deleted items that can be restored, newest first: takes, voices, projects and parts; and, as a
        ``replacement``, the texts of parts before a find and replace."""
        items = self._trash.page(request.state.owner_filter, limit + 1, after)
        return JSONResponse(list_page(items, limit, self._json))

    def restore(self, body: JsonBody[RestoreTrashBody], request: Request) -> JSONResponse:
        """Restore items: {"items": [{"kind": "take", "id": "…"}]}. If one in the trash cannot be restored, none is;
        others are left out. A voice whose name another one has now gets a number after it."""
        items = [(item.kind, item.id) for item in body.items]
        restored = self._trash.restore(items, request.state.owner_filter)
        if not restored:
            raise NotFound("none of these is in the trash", "items")
        return JSONResponse({"object": "list", "data": [{"kind": kind, "id": item_id} for kind, item_id in restored]})

    def empty(
        self,
        request: Request,
        kind: TrashKind | None = None,
        ids: Annotated[str | None, Query(description="Separated by commas; absent: all items")] = None,
    ) -> JSONResponse:
        """Permanently delete items in the trash: those of a kind, with these ids, or all. With API keys, only
        the caller's own."""
        check_deletion(request, "kind", "ids")
        count = self._trash.empty(request.state.owner_filter, kind, ids_of(ids))
        return JSONResponse({"object": "trash.emptied", "count": count})

    def _json(self, item: TrashItem) -> dict[str, Any]:
        return {"object": "trash.item", **asdict(item), "expires": item.deleted + self._trash.seconds}

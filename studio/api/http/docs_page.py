"""GET /docs: the OpenAPI document as a page, with local files of Swagger UI, so that it works offline."""

from __future__ import annotations

import gzip

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse, Response

from studio.paths import ASSETS

ICON = ASSETS / "page" / "icon.svg"
FILES = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}
"""Compressed files in assets/swagger-ui, and their media types."""
METHODS = ["GET", "HEAD"]
CACHE = {"Cache-Control": "private, max-age=86400"}


def install_docs_page(app: FastAPI, root_path: str) -> None:
    """Serve /docs and its files. ``root_path``: path of the studio behind a proxy."""
    page = get_swagger_ui_html(
        openapi_url=f"{root_path}/openapi.json",
        title=app.title,
        swagger_js_url=f"{root_path}/docs/swagger-ui-bundle.js",
        swagger_css_url=f"{root_path}/docs/swagger-ui.css",
        swagger_favicon_url=f"{root_path}/docs/icon.svg",
    )

    @app.api_route("/docs", methods=METHODS, include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(page.body)

    @app.api_route("/docs/icon.svg", methods=METHODS, include_in_schema=False)
    async def icon() -> FileResponse:
        return FileResponse(ICON, headers=CACHE)

    @app.api_route("/docs/{name}", methods=METHODS, include_in_schema=False)
    async def file(name: str, request: Request) -> Response:
        if name not in FILES:
            return PlainTextResponse("There is no such file.", 404)
        compressed = await to_thread.run_sync((ASSETS / "swagger-ui" / f"{name}.gz").read_bytes)
        headers = CACHE | {"Vary": "Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(compressed, media_type=FILES[name], headers=headers | {"Content-Encoding": "gzip"})
        return Response(await to_thread.run_sync(gzip.decompress, compressed), media_type=FILES[name], headers=headers)

"""The OpenAPI document: bodies that routes parse themselves, errors, and fields of other servers."""

from __future__ import annotations

import gzip
from functools import lru_cache
from typing import Any

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from studio import ASSETS
from studio.api.body import BodyReader
from studio.api.error_responses import ApiError, envelope, is_api, protocol_of, protocols
from studio.api.foreign import IGNORED, MEAN, REFUSED

REFERENCE = "#/components/schemas/{model}"

OPEN = frozenset({"/health", "/ready", "/readyz", "/gradio_api/startup-events"})
"""Paths that need no key. The last has no data: Gradio calls it when it launches the page itself."""

EXAMPLE = ApiError(400, "")
_BODIES: dict[str, type[BaseModel]] = {}
"""Models of bodies that routes parse themselves, by name, for the document's schemas."""
CUT = ("start", "end", "gain_db", "channel")
"""Fields of all forms with a clip."""

ICON = ASSETS / "page" / "icon.svg"
FILES = {"swagger-ui-bundle.js": "text/javascript", "swagger-ui.css": "text/css"}
"""Compressed files in assets/swagger-ui, and their media types."""
_unpacked = lru_cache(len(FILES))(gzip.decompress)
METHODS = ["GET", "HEAD"]
CACHE = {"Cache-Control": "private, max-age=86400"}


def reads(model: type[BaseModel], *more_types: str) -> dict[str, Any]:
    """The openapi_extra of a route that reads a JSON body; ``more_types``: further media types of the same object."""
    _BODIES[model.__name__] = model
    return _body({"$ref": REFERENCE.format(model=model.__name__)}, "application/json", *more_types)


def reads_form(
    file: str | None,
    *fields: str,
    required: tuple[str, ...] = (),
    several: tuple[str, ...] = (),
    more_types: tuple[str, ...] = (),
) -> dict[str, Any]:
    """The openapi_extra of a route that reads a multipart form with a file and other fields.

    ``several``: fields that may be repeated; ``more_types``: further media types with the same fields.
    """
    properties: dict[str, Any] = {name: {"type": "string"} for name in fields}
    if file is not None:
        properties[file] = {"type": "string", "format": "binary"}
    properties |= {name: {"type": "array", "items": properties[name]} for name in several}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return _body(schema, "multipart/form-data", *more_types)


def answers(*media_types: str) -> dict[str, Any]:
    """The openapi_extra of a route whose answer has one of these types."""
    answer = {"description": "In the requested format.", "content": {name: {} for name in media_types}}
    return {"responses": {"200": answer}}


def sends(*media_types: str) -> dict[str, Any]:
    """The arguments of a route whose answer has one of these types, not JSON."""
    return {"response_class": Response, "openapi_extra": answers(*media_types)}


def _body(schema: dict[str, Any], *media_types: str) -> dict[str, Any]:
    return {"requestBody": {"required": True, "content": {name: {"schema": schema} for name in media_types}}}


def install_document(app: FastAPI, needs_key: bool, root_path: str) -> None:
    """Serve the document at /openapi.json. ``needs_key``: whether keys are set; ``root_path``: as STUDIO_ROOT_PATH."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app, needs_key)
            if root_path:
                app.openapi_schema["servers"] = [{"url": root_path}]
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _schema_of(example: object) -> dict[str, Any]:
    """The JSON schema of objects like this one of objects, whole numbers and strings; None: may be null."""
    if not isinstance(example, dict):
        return {"type": ["string", "null"] if example is None else "integer" if isinstance(example, int) else "string"}
    properties = {name: _schema_of(value) for name, value in example.items()}
    return {"type": "object", "required": list(example), "properties": properties}


def _document(app: FastAPI, needs_key: bool) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, routes=app.routes, description=_field_table())
    for route in app.routes:
        if isinstance(route, APIRoute) and route.include_in_schema:
            for dependency in route.dependant.dependencies:
                if isinstance(dependency.call, BodyReader):
                    for method in route.methods or ():
                        document["paths"][route.path_format][method.lower()] |= reads(dependency.call.model)
    _, definitions = models_json_schema([(model, "validation") for model in _BODIES.values()], ref_template=REFERENCE)
    components = document.setdefault("components", {})
    key = {"type": "http", "scheme": "bearer", "description": "One of STUDIO_API_KEYS."}
    components["securitySchemes"] = {"key": key}
    if needs_key:
        document["security"] = [{"key": []}]
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own, never sent here
        schemas.pop(name, None)
    schemas.update(definitions["$defs"] | {"Error": _schema_of(envelope(EXAMPLE))})
    schemas.update({protocol.name: _schema_of(protocol.error(EXAMPLE)) for protocol in protocols()})
    for path, operations in document["paths"].items():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            if path in OPEN:
                operation["security"] = []
            if is_api(path):
                protocol = protocol_of(path)
                name, text = (protocol.name, protocol.description) if protocol else ("Error", "OpenAI's envelope.")
                content = {"application/json": {"schema": {"$ref": REFERENCE.format(model=name)}}}
                refusal = {"description": text, "content": content}
                operation["responses"] |= {"4XX": refusal, "5XX": refusal}
    return document


def _field_table() -> str:
    """The description, with a table of other servers' fields, in Markdown."""
    rows = [(name, f"means `{field}`") for name, field in MEAN.items()]
    rows.append(("references", "one `{audio_path, text}`: means `ref_audio` and `ref_text`"))
    rows += [(name, f"ignored: {reason}") for name, reason in IGNORED.items()]
    rows += [(name, f"refused: {remedy}") for name, remedy in REFUSED.items()]
    table = "\n".join(f"| `{name}` | {meaning} |" for name, meaning in rows)
    return (
        "OpenAI's speech API with extensions.\n\nFields of other servers' speech APIs:\n\n"
        f"| field | here |\n|---|---|\n{table}\n\nAll other fields are ignored."
    )


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
        return Response(await to_thread.run_sync(_unpacked, compressed), media_type=FILES[name], headers=headers)

"""The OpenAPI document: bodies that routes parse themselves, errors, and fields of other servers."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.responses import Response
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from studio.api.schemas.foreign import IGNORED, MEAN, REFUSED
from studio.api.url_paths import is_api, is_fish

REFERENCE = "#/components/schemas/{model}"

OPEN = frozenset({"/health", "/ready", "/gradio_api/startup-events"})
"""Paths that need no key. The last has no data: Gradio calls it when it launches the page itself."""

ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}

FISH_ERROR: dict[str, Any] = {
    "type": "object",
    "required": ["status", "message"],
    "properties": {"status": {"type": "integer"}, "message": {"type": "string"}},
}

_BODIES: dict[str, type[BaseModel]] = {}
"""Models of bodies that routes parse themselves, by name, for the document's schemas."""
CUT = ("start", "end", "gain_db", "channel")
"""Fields of all forms with a clip."""


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
    return {
        "responses": {"200": {"description": "In the requested format.", "content": {name: {} for name in media_types}}}
    }


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


def _document(app: FastAPI, needs_key: bool) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, routes=app.routes, description=_field_table())
    _, definitions = models_json_schema([(model, "validation") for model in _BODIES.values()], ref_template=REFERENCE)
    components = document.setdefault("components", {})
    components["securitySchemes"] = {
        "key": {"type": "http", "scheme": "bearer", "description": "One of STUDIO_API_KEYS."}
    }
    if needs_key:
        document["security"] = [{"key": []}]
    schemas = components.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own, never sent here
        schemas.pop(name, None)
    schemas.update(definitions["$defs"] | {"Error": ERROR, "FishError": FISH_ERROR})
    for path, operations in document["paths"].items():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            if path in OPEN:
                operation["security"] = []
            if is_api(path):
                refusal = (
                    _refusal("FishError", "Fish Audio's form.")
                    if is_fish(path)
                    else _refusal("Error", "OpenAI's envelope.")
                )
                operation["responses"] |= {"4XX": refusal, "5XX": refusal}
    return document


def _refusal(schema: str, description: str) -> dict[str, Any]:
    return {
        "description": description,
        "content": {"application/json": {"schema": {"$ref": REFERENCE.format(model=schema)}}},
    }


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

"""The OpenAPI document: the bodies that routes read by themselves, the errors of all, other servers' fields."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from studio.api.fields import IGNORED, MEAN, REFUSED
from studio.api.schemas import BatchBody, SpeechBody

REFERENCE = "#/components/schemas/{model}"

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


def body_doc(model: type[SpeechBody] | type[BatchBody], *media_types: str) -> dict[str, Any]:
    """What a route says of the body that it reads and of its answer's types."""
    schema = {"$ref": REFERENCE.format(model=model.__name__)}
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {"200": {"description": "As asked for.", "content": {name: {} for name in media_types}}},
    }


def install_document(app: FastAPI) -> None:
    """Serve the document at /openapi.json."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(title=app.title, version=app.version, routes=app.routes, description=_about())
    _, definitions = models_json_schema([(SpeechBody, "validation"), (BatchBody, "validation")], ref_template=REFERENCE)
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):  # FastAPI's own, which nobody ever gets here
        schemas.pop(name, None)
    schemas.update(definitions["$defs"] | {"Error": ERROR})
    refusal = {
        "description": "OpenAI's envelope.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    for path, operations in document["paths"].items():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            if path.startswith("/v1/"):
                operation["responses"] |= {"4XX": refusal, "5XX": refusal}
    return document


def _about() -> str:
    """Markdown."""
    rows = [(name, f"means `{ours}`") for name, ours in MEAN.items()]
    rows.append(("references", "one `{audio_path, text}`: means `ref_audio` and `ref_text`"))
    rows += [(name, f"ignored: {why}") for name, why in IGNORED.items()]
    rows += [(name, f"refused: {instead}") for name, instead in REFUSED.items()]
    table = "\n".join(f"| `{name}` | {fate} |" for name, fate in rows)
    return (
        "OpenAI's speech API, and what goes beyond it.\n\nFields of other servers' speech APIs:\n\n"
        f"| field | here |\n|---|---|\n{table}\n\nEvery other field is ignored."
    )

"""Reads untrusted JSON files of bounded size, whose top level must be an object."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from engine.bounded_file import read_bounded
from engine.engine_errors import CheckpointError

CONFIG_BYTES = 2**20
"""Bytes; no config.json is larger."""


def read_json(path: Path, max_bytes: int = CONFIG_BYTES) -> dict[str, Any]:
    """The object in a file of at most ``max_bytes`` bytes. Raises CheckpointError."""
    try:
        return parse_json(read_bounded(path, max_bytes), path)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path} is missing: {path.parent} is not a checkpoint folder") from error


def parse_json(data: bytes, source: object) -> dict[str, Any]:
    """The object in these bytes; messages name ``source``. Raises CheckpointError."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{source} is not valid JSON: {error}") from error
    if not isinstance(tree, dict):
        raise CheckpointError(f"{source} must be a JSON object")
    return tree

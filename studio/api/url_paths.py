"""Paths of the API, and those that Fish Audio's clients call."""

from __future__ import annotations

import re

_FISH = re.compile(
    r"//?(model|wallet|v1/(tts|asr|references|health|vqgan|chat|voice-design|audio/infill|agent)|compat|mcp)(/|$)"
)
"""Clients with a trailing slash in their base URL send two."""


def is_fish(path: str) -> bool:
    """Whether a path belongs to Fish Audio's protocol, whose errors have a different form."""
    return _FISH.match(path) is not None


def is_api(path: str) -> bool:
    """Whether a path is for programs: errors are JSON, answers are not cached, and routes limit their own bodies."""
    return path.startswith(("/v1/", "/V1/")) or path in ("/v1", "/V1") or is_fish(path)

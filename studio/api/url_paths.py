"""Which addresses are the API's, and which of them Fish Audio's clients call."""

from __future__ import annotations

import re

_FISH = re.compile(
    r"//?(model|wallet|v1/(tts|asr|references|health|vqgan|chat|voice-design|audio/infill|agent)|compat|mcp)(/|$)"
)
"""Clients that paste an address to a base URL with a slash at its end call it with two."""


def is_fish(path: str) -> bool:
    """Whether it is an address of Fish Audio's protocol, whose errors have a form of their own."""
    return _FISH.match(path) is not None


def is_api(path: str) -> bool:
    """Whether programs call it: refusals are JSON, answers are not cached, and routes bound their bodies themselves."""
    return path.startswith(("/v1/", "/V1/")) or path in ("/v1", "/V1") or is_fish(path)

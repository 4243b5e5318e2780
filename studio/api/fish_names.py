"""Converts names for Fish Audio's clients: voice ids (32 hexadecimal digits there) and field names."""

from __future__ import annotations

import re

from studio.voices.resolver import DEFAULT

_OURS = "voice_"
_MARK = "f15a0d10"
"""Prefix of Fish Audio ids made from the studio's, whose 24 digits follow."""
_CONVERTED = re.compile(rf"{_MARK}([0-9a-f]{{24}})(@\d+)?")
FIELDS = {"input": "text", "ref_text": "the text of a reference"}
"""Fields of the studio's API, and their names for clients of Fish Audio."""
_VOICE_ID = re.compile(rf"(?<='){_OURS}[0-9a-f]{{24}}\b")
SENT_UNASKED = frozenset(
    (
        "933563129e564b19a115bedd57b7406a",  # LiveKit
        "03397b4c4be74759b72533b663fbd001",  # vision-agents, Dify
        "802e3bc2b27e49c2995d23ef70e6ac89",  # Fish Audio's guides, this and those below
        "8ef4a238714b45718ce04243307c57a7",
        "bf322df2096a46f18c579d0baa36f41d",
        "b347db033a6549378b48d00acb0d06cd",
        "536d3a5e000945adb7038665781a4aca",
        "9a9cf47702da476aa4629e2506d4a857",
    )
)
"""Hosted voices that clients send by default; they mean the default voice."""


def fish_id(voice_id: str) -> str:
    """The Fish Audio id of a voice."""
    return _MARK + voice_id.removeprefix(_OURS)


def voice_of(reference: str) -> str:
    """The library's reference for a client's: converts Fish Audio ids; slugs and names stay."""
    if match := _CONVERTED.fullmatch(reference):
        return f"{_OURS}{match[1]}{match[2] or ''}"
    return DEFAULT if reference in SENT_UNASKED else reference


def for_fish_client(message: str, param: str | None) -> str:
    """An error message with the field names and voice ids of Fish Audio's clients."""
    field = FIELDS.get(param or "")
    if field and message.startswith(f"{param} "):
        message = field + message.removeprefix(param or "")
    return _VOICE_ID.sub(lambda match: fish_id(match[0]), message)

"""Errors in the words of Fish Audio's clients: with the names of their fields and the ids that they know."""

from __future__ import annotations

import re

from studio.api.fish.voice_ids import fish_id

FIELDS = {"input": "text", "ref_text": "the text of a reference"}
"""Fields of the studio's own API, and what a client of Fish Audio sends in their place."""
_VOICE_ID = re.compile(r"(?<=')voice_[0-9a-f]{24}\b")


def in_client_words(message: str, param: str | None) -> str:
    """A message about a field of the studio's own API, as clients of Fish Audio understand it."""
    theirs = FIELDS.get(param or "")
    if theirs and message.startswith(f"{param} "):
        message = theirs + message.removeprefix(param or "")
    return _VOICE_ID.sub(lambda found: fish_id(found[0]), message)

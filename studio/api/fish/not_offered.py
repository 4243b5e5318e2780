"""What Fish Audio and fish-speech offer beyond speech and voices, and what there is here in its place."""

from __future__ import annotations

NOT_OFFERED = {
    "/v1/voice-design": "Voices are not designed from a description here; make one of a recording with POST /model.",
    "/v1/audio/infill": "Recordings are not mended here; POST /v1/takes/{take_id}/mend speaks a sentence again.",
    "/v1/agent": "There are no agents here; speak their text with the socket /v1/tts/live.",
    "/v1/vqgan": "Codes of sound are neither made nor read here; send recordings to POST /v1/tts.",
    "/v1/chat": "The model does not chat here; POST /v1/tts speaks a text.",
    "/compat": "Other services' APIs are not imitated below /compat; OpenAI's is here at /v1/audio/speech.",
    "/mcp": "There is no MCP server here; POST /v1/tts speaks a text.",
}


def not_offered(path: str) -> str | None:
    """What is said of an address below one of these; None for every other."""
    wanted = "/" + path.lstrip("/")
    found = (words for address, words in NOT_OFFERED.items() if wanted == address or wanted.startswith(f"{address}/"))
    return next(found, None)

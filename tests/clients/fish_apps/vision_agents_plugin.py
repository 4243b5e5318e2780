"""Vision Agents' plugin for Fish Audio: a sentence as 16 kHz samples."""

import asyncio
import sys

from vision_agents.plugins import fish


async def main(url: str) -> None:
    tts = fish.TTS(api_key="any", base_url=url)
    pieces = await tts.stream_audio("Hello there, this is a test.")
    seconds = 0.0
    async for piece in pieces:
        seconds += len(piece.samples) / 16_000
    print("spoken:", round(seconds, 2), "s")
    assert seconds > 0.5, "there is no sound"


asyncio.run(main(sys.argv[1]))

"""LiveKit's plugin for Fish Audio: a whole sentence, and two turns of a conversation on one socket."""

import asyncio
import sys

import aiohttp
from livekit.plugins import fishaudio


async def main(url: str) -> None:
    async with aiohttp.ClientSession() as http:
        tts = fishaudio.TTS(api_key="any", base_url=url, http_session=http)
        frames = [event.frame async for event in tts.synthesize("Hello there.")]
        print("in one go:", round(sum(frame.duration for frame in frames), 2), "s")
        for _ in range(2):
            stream = tts.stream()
            for text in ("It costs 3.50 ", "in all. And that ", "is it."):
                stream.push_text(text)
            stream.end_input()
            frames = [event.frame async for event in stream]
            seconds = sum(frame.duration for frame in frames)
            assert seconds > 0.5, "the stream has no sound"
            print("streamed:", round(seconds, 2), "s")
        await tts.aclose()


asyncio.run(main(sys.argv[1]))

"""LiveKit's plugin for ElevenLabs: the voices, a whole sentence, and two turns of a conversation on one socket."""

import asyncio
import sys

import aiohttp
from livekit.plugins import elevenlabs


async def main(url: str) -> None:
    async with aiohttp.ClientSession() as http:
        tts = elevenlabs.TTS(api_key="any", base_url=f"{url}/elevenlabs/v1", http_session=http)
        print("voices:", [voice.name for voice in await tts.list_voices()])
        frames = [event.frame async for event in tts.synthesize("Hello there.")]
        print("in one go:", round(sum(frame.duration for frame in frames), 2), "s")
        for _ in range(2):
            stream = tts.stream()
            for text in ("It costs 3.50 ", "in all. And that ", "is it."):
                stream.push_text(text)
            stream.end_input()
            frames = [event.frame async for event in stream]
            words = [str(word) for frame in frames for word in frame.userdata.get("lk.timed_transcripts", ())]
            seconds = sum(frame.duration for frame in frames)
            assert seconds > 0.5, "the stream has no sound"
            assert "".join(words).split()[-2:] == ["is", "it."], "the stream has no words"
            print("streamed:", round(seconds, 2), "s,", len(words), "words")
        await tts.aclose()


asyncio.run(main(sys.argv[1]))

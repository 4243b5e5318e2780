"""Write speech into a WAV file while it is being generated: python examples/stream_to_file.py TEXT FILE"""

import asyncio
import sys
from contextlib import aclosing

import soundfile

from engine import Engine, EngineConfig, Sampling, Utterance
from studio import ASSETS


async def main(text: str, path: str) -> None:
    engine = Engine.start(EngineConfig(model=str(ASSETS / "fry")))  # or fishaudio/s2-pro
    try:
        with soundfile.SoundFile(path, "w", engine.info.sample_rate, channels=1) as file:
            # Leaving the iteration early cancels the take.
            async with aclosing(engine.speak(Utterance(text, sampling=Sampling(seed=1)))) as chunks:
                async for chunk in chunks:
                    file.write(chunk.pcm)
                    print(f"{file.tell() / engine.info.sample_rate:.2f} s")
    finally:
        engine.stop()


asyncio.run(main(*sys.argv[1:3]))

"""Speak in the voice of a clip of 5 to 30 seconds: python examples/clone_a_voice.py CLIP ITS_WORDS TEXT FILE"""

import asyncio
import sys

import numpy as np
import soundfile

from engine import Engine, EngineConfig, Sampling, Utterance
from studio import ASSETS


async def main(clip: str, words: str, text: str, path: str) -> None:
    engine = Engine.start(EngineConfig(model=str(ASSETS / "fry")))  # or fishaudio/s2-pro
    try:
        pcm, rate = soundfile.read(clip, dtype="float32", always_2d=True)
        voice = await engine.encode_reference(pcm.T, rate, words)  # encode it once, use it for any number of takes
        utterance = Utterance(text, references=(voice,), sampling=Sampling(seed=1))
        pieces = [chunk.pcm async for chunk in engine.speak(utterance)]
        soundfile.write(path, np.concatenate(pieces), engine.info.sample_rate)
    finally:
        engine.stop()


asyncio.run(main(*sys.argv[1:5]))

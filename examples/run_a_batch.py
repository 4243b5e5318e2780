"""Speak every line of a text file, several at a time: python examples/run_a_batch.py LINES.txt FOLDER"""

import asyncio
import sys
from pathlib import Path

import numpy as np
import soundfile

from engine import Engine, EngineConfig, Sampling, Utterance
from studio import ASSETS


async def main(lines: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    texts = [line.strip() for line in lines.read_text("utf-8").splitlines() if line.strip()]
    # Four texts are generated at a time; the others wait in the engine's queue.
    engine = Engine.start(EngineConfig(model=str(ASSETS / "fry"), max_rows=4, max_waiting=len(texts)))

    async def speak(number: int, text: str) -> None:
        pieces = [chunk.pcm async for chunk in engine.speak(Utterance(text, sampling=Sampling(seed=number)))]
        soundfile.write(folder / f"{number:04}.wav", np.concatenate(pieces), engine.info.sample_rate)

    try:
        await asyncio.gather(*(speak(number, text) for number, text in enumerate(texts, start=1)))
    finally:
        engine.stop()


asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2])))

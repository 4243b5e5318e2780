"""Times the voice library: lists, searches and opening in a large one, and first audio by kind of reference.

python -m benchmarks.library [--voices 10000] [--takes 100000] [--model FOLDER]; the last line is JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import random
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from audio import Cut
from audio.encode import pcm16, wav_header
from audio.read import read_clip
from engine import Engine, EngineConfig
from studio.engine_host import EngineHost
from studio.library import Library, NewSample, TakeFilter, Voice, VoiceFields
from studio.library.take import Take
from studio.speech.request import OwnClip, SpeechRequest
from studio.speech.speech_service import SpeechService
from studio.voices.intake import take_in
from studio.voices.resolver import VoiceResolver

REPEATS = 21
VOICES = Path(__file__).resolve().parent.parent / "assets" / "fry" / "voices"
SYLLABLES = ("", "ce", "der", "ful", "ing", "ly", "man", "ness", "ra", "sal", "tion", "ver")
WORDS = [
    "amber",
    "birch",
    "cedar",
    "dawn",
    "ember",
    "frost",
    "grove",
    "harbour",
    "island",
    "juniper",
    "kestrel",
    "lagoon",
    "meadow",
    "north",
    "ocean",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--voices", type=int, default=10_000)
    parser.add_argument("--takes", type=int, default=100_000)
    parser.add_argument("--model", help="a checkpoint folder; without it first audio is not measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = measure_library(Path(folder), options.voices, options.takes)
        if options.model:
            figures |= asyncio.run(measure_references(Path(folder) / "small", options.model))
    for name, value in figures.items():
        print(f"{name:<44} {value:9.2f} ms")
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}))


def measure_library(home: Path, voices: int, takes: int) -> dict[str, float]:
    """Median milliseconds of the operations that people wait for."""
    fill(home, voices, takes)
    figures = {"open the library (a start)": median(lambda: Library(home))}
    library = Library(home)
    some = library.voices.get(f"voice_{voices // 2:024x}")
    last, some_voice = library.takes.page(limit=2)[1], "template"
    middle = library.takes.page(limit=500)[-1].id
    calls: dict[str, Callable[[], object]] = {
        "list 50 voices": lambda: library.voices.page(limit=50),
        "list 50 voices after the middle": lambda: library.voices.page(limit=50, after=some.id),
        "search voices: a word in many": lambda: library.voices.page("birch", limit=50),
        "search voices: one in all": lambda: library.voices.page(some.name, limit=50),
        "search voices: none": lambda: library.voices.page("nobody at all", limit=50),
        "find a voice by name": lambda: library.voices.get(some.name),
        "find a voice by slug@revision": lambda: library.voices.get(some.address),
        "codes of a voice": lambda: library.codes.get(some.samples[0].cut_key, "codec"),
        "list 50 takes": lambda: library.takes.page(),
        "list 50 takes after 500": lambda: library.takes.page(after=middle),
        "search takes: a part of many words": lambda: library.takes.page(TakeFilter("tion")),
        "search takes: one in all": lambda: library.takes.page(TakeFilter(last.text)),
        "search takes: none": lambda: library.takes.page(TakeFilter("zzzz")),
        "search takes: two letters, none": lambda: library.takes.page(TakeFilter("zz")),
        "takes of a voice that has all": lambda: library.takes.page(TakeFilter(voice=some_voice)),
        "takes of a voice that has one": lambda: library.takes.page(TakeFilter(voice="seldom")),
        "takes of a voice that has none": lambda: library.takes.page(TakeFilter(voice="nobody")),
        "takes of a voice: a part of many words": lambda: library.takes.page(TakeFilter("tion", voice=some_voice)),
        "open a take": lambda: library.takes.get(last.id),
    }
    return figures | {name: median(call) for name, call in calls.items()}


def fill(home: Path, voices: int, takes: int) -> None:
    """A library of this size. Its many rows are written at once, to the library's own tables."""
    library, chance = Library(home), random.Random(0)
    sample = NewSample(b"clip", "audio/wav", 5.0, "The words.", Cut(), 5.0, 90, {"snr_db": 40.0})
    first = library.voices.create(VoiceFields(name="template"), [sample])
    library.codes.put(first.samples[0].cut_key, "codec", np.zeros((10, 108), np.int16))
    take = Take("req_0", 0.0, first.address, 1, "finished", text="x", voice_id=first.id, parameters={"top_k": 30})
    library.takes.add(replace(take, finish_reason="stop", queue_ms=1.0, frames=100, seconds=4.6))
    with library.store.writing() as db:
        voice = next(iter(db.table("voices").rows))
        row = next(iter(db.table("samples").rows))
        new_voices, new_samples = [], []
        for number in range(voices):
            name = f"{WORDS[number % len(WORDS)]} {number}"
            words = " ".join(chance.choices(WORDS, k=8))
            columns = {"id": f"voice_{number:024x}", "slug": name.replace(" ", "-"), "name": name, "folded": name}
            new_voices.append(voice | columns | {"description": words, "haystack": f"{name} {words}"})
            new_samples.append(row | {"voice_id": columns["id"], "id": f"sample_{number}"})
        db.table("voices").insert_all(new_voices)
        db.table("samples").insert_all(new_samples)
        template = next(iter(db.table("takes").rows))
        syllables = [a + b + c for a in "bdfglmnprst" for b in ("a", "en", "i", "or", "us") for c in SYLLABLES]
        db.table("takes").insert_all(
            template
            | {"n": None, "id": f"req_{n}", "text": " ".join(chance.choices(syllables, k=20)), "created": float(n)}
            for n in range(1, takes)
        )
    cast = {"cast": {"Ann": first.address, "Bob": "seldom@1"}}
    library.takes.add(replace(take, id="req_cast", voice=f"{first.slug}, seldom", voice_id=None, parameters=cast))


async def measure_references(home: Path, model: str) -> dict[str, float]:
    """Milliseconds to first audio by kind of reference: a library voice, inline and new, inline and cached."""
    library = Library(home)
    async with studio(library, model) as service:
        figures = {"random voice: first audio": await first_audio(service, [{"voice": "random"}] * 9)}
        for seconds in (3, 10, 30):
            old = recording(seconds, 0)
            began = time.perf_counter()
            voice = await service.save_voice(asyncio.to_thread(_saver(library, f"voice of {seconds}", old)))
            figures[f"{seconds} s clip: save and encode"] = (time.perf_counter() - began) * 1000
            known, new = as_url(old.clip), [as_url(recording(seconds, number + 1).clip) for number in range(5)]
            kinds: dict[str, list[dict[str, Any]]] = {
                "uploaded voice": [{"voice": voice.slug}] * 9,
                "inline, known": [{"clips": (OwnClip(known, old.text),)}] * 9,
                "inline, new": [{"clips": (OwnClip(url, old.text),)} for url in new],
            }
            for kind, requests in kinds.items():
                figures[f"{seconds} s {kind}: first audio"] = await first_audio(service, requests)
    library.voices.edit("voice of 10", VoiceFields(favourite=True))
    async with studio(library, model) as service:
        await service.warm_voices()
        figures["favourite of 10 s, restarted: its first"] = await first_audio(service, [{"voice": "voice-of-10"}])
        figures["favourite of 10 s, later ones"] = await first_audio(service, [{"voice": "voice-of-10"}] * 9)
    return figures


@contextlib.asynccontextmanager
async def studio(library: Library, model: str) -> AsyncIterator[SpeechService]:
    """A speech service with its own engine on the library, until the context ends."""
    host = EngineHost(EngineConfig(model=model), Engine.start)
    host.start()
    engine = await host.ready()
    try:
        yield SpeechService(host, VoiceResolver(library))
    finally:
        engine.stop()


async def first_audio(service: SpeechService, requests: Sequence[dict[str, Any]]) -> float:
    """Median milliseconds from the call to the first encoded bytes."""
    times = []
    for fields in requests:
        began = time.perf_counter()
        request = SpeechRequest("Hello there.", format="wav", seed=1, max_frames=8, **fields)
        speech = await service.speak(request)
        times.append((time.perf_counter() - began) * 1000)
        await speech.aclose()
    return statistics.median(times)


def _saver(library: Library, name: str, of: Recording) -> Callable[[], Voice]:
    return lambda: library.voices.create(VoiceFields(name=name), [take_in(of.clip, of.text).sample(of.text)])


@dataclass(frozen=True)
class Recording:
    """A clip of a given length, by repeating a bundled voice's, and its transcript."""

    clip: bytes
    text: str


def recording(seconds: float, number: int) -> Recording:
    """Each number gives another clip: a little softer than the previous one."""
    path = sorted(VOICES.glob("*.wav"))[0]
    spoken = read_clip(path.read_bytes())
    times = max(1, round(seconds / spoken.seconds))
    pcm = np.resize(spoken.pcm, round(seconds * spoken.sample_rate)) * np.float32(0.99**number)
    text = " ".join([path.with_suffix(".txt").read_text("utf-8").strip()] * times)
    return Recording(wav_header(spoken.sample_rate, len(pcm)) + pcm16(pcm), text)


def as_url(clip: bytes) -> str:
    return f"data:audio/wav;base64,{base64.b64encode(clip).decode()}"


def median(call: Callable[[], object]) -> float:
    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


if __name__ == "__main__":
    main()

"""Whole takes in a new voice on some of the machine's cores, for `benchmarks.cpu --takes`: prints one line of JSON.

python -m benchmarks.engine.cpu_takes FOLDER CORES [--isa avx2] [--http]: a process for each number of cores.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FRAMES, TAKES, CLIP_SECONDS = 54, 4, 10
"""A take of 2.5 seconds in Audio8's frames. The first one, which is slower, is reported for itself."""
HTTP_RATE = 24_000
SERVE = "from engine.native import library; library.use_isa({isa!r}); from launch import main; raise SystemExit(main())"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("cores", type=int)
    parser.add_argument("--isa")
    parser.add_argument("--http", action="store_true", help="over HTTP, without a voice, instead of the engine alone")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: options.cores])  # before torch counts them
    results = over_http(options) if options.http else asyncio.run(by_the_engine(options))
    print(json.dumps({"cores": options.cores, "http": options.http} | results), flush=True)


async def by_the_engine(options: argparse.Namespace) -> dict[str, Any]:
    from benchmarks.common.material import noise, sentence
    from engine import Engine, EngineConfig, Sampling, Utterance
    from engine.native import library

    if options.isa and not library.use_isa(options.isa):
        raise SystemExit(f"no native code for {options.isa} here: {library.problem()}")
    started = time.perf_counter()
    engine = Engine.start(EngineConfig(str(options.folder), device="cpu"))
    loaded = time.perf_counter()
    voice = await engine.encode_reference(noise(CLIP_SECONDS, 44_100), 44_100, sentence(0, 150))
    new_voice = time.perf_counter() - loaded
    takes = []
    for seed in range(TAKES):
        begun = time.perf_counter()
        utterance = Utterance(sentence(seed + 1), (voice,), Sampling(seed=seed), max_frames=FRAMES)
        times = [(time.perf_counter() - begun, len(chunk.pcm)) async for chunk in engine.speak(utterance)]
        takes.append((times[0][0], times[-1][0], sum(samples for _, samples in times) / engine.info.sample_rate))
    resident = int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    path = engine.info.frame_path
    engine.stop()
    return {"load_s": round(loaded - started, 1), "new_voice_s": round(new_voice, 2)} | _factors(takes) | {
        "resident_mib": resident >> 20, "path": path,
    }  # fmt: skip


def over_http(options: argparse.Namespace) -> dict[str, Any]:
    from benchmarks.common.material import sentence
    from benchmarks.serving.api_server import StudioProcess

    with tempfile.TemporaryDirectory() as home:
        program = ("-c", SERVE.format(isa=options.isa)) if options.isa else ()
        settings = {
            "STUDIO_MODEL": str(options.folder),
            "STUDIO_DEVICE": "cpu",
            "STUDIO_PAGE": "0",
            "STUDIO_HOME": home,
        }
        studio = StudioProcess(*program, **settings)
        _, engine = studio.wait_until_ready()
        takes = []
        for seed in range(TAKES):
            body = {"input": sentence(seed + 1), "seed": seed, "max_new_tokens": FRAMES, "response_format": "pcm"}
            connection = http.client.HTTPConnection("127.0.0.1", studio.port, timeout=300)
            begun = time.perf_counter()
            connection.request("POST", "/v1/audio/speech", json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read(1)
            first = time.perf_counter() - begun
            if answer.status != 200:
                raise SystemExit(f"the studio answered {answer.status}: {answer.read().decode()}")
            samples = (1 + len(answer.read())) / 2
            takes.append((first, time.perf_counter() - begun, samples / HTTP_RATE))
        peak = studio.stop()
    return _factors(takes) | {"peak_mib": round(peak), "path": engine["frame_path"]}


def _factors(takes: Sequence[tuple[float, float, float]]) -> dict[str, Any]:
    """Of each take: seconds to its first audio, to its end, and of audio."""
    factors = [total / audio for _, total, audio in takes]
    return {
        "rtf": round(statistics.median(factors[1:]), 3),
        "rtf_first_take": round(factors[0], 3),
        "first_audio_ms": round(1000 * statistics.median(first for first, _, _ in takes[1:])),
    }


if __name__ == "__main__":
    main()

"""The studio under load for half an hour: memory, open files and threads must not grow, and no request may fail.

python -m benchmarks.soak [--minutes 30] [--out FILE] starts app.py, with the settings of the environment and its own
library. Callers use every format and voice, and one in four hangs up during its stream. After each minute they pause,
and the idle process is examined. Prints a table, one JSON object last; the exit code is 1 when a request failed, when
a take was not kept whole, or when, after the first five minutes and 200 takes, files or threads grew at all, or memory
by more than 2 % from the lowest value of the first third to that of the last: single values include memory that the
process has freed and not yet returned to the system, and threads that FFmpeg starts for each encoder. Linux only.

python -m benchmarks.soak --gpu [--minutes 20] is the load of a busy card: 72 callers on 64 rows, one in ten with a clip
of its own in the request, one in twenty with a text of 3,000 characters. Memory counts from the third minute on, the
card's too, and may grow by 1 %. STUDIO_MODEL names the checkpoint, which may be
random weights of full size (benchmarks.full_size).

python -m benchmarks.soak --takes-a-second 25 50 [--minutes 10] instead runs an engine that needs no time with takes of
ten seconds, for this many minutes at each rate; the exit code is 1 when the first rate lost a take or its audio.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import httpx

from audio.formats import FORMATS
from benchmarks.common.material import clip, data_url, sentence
from benchmarks.common.report import Report, percentile, table
from benchmarks.serving.api_server import StudioProcess
from benchmarks.serving.listener import Address
from benchmarks.serving.loads import CLIP_WORDS
from benchmarks.serving.recording import Recorded, record

HANG_UPS = 0.25
CHARACTERS = (10, 120)
LONG_CHARACTERS = 3_000
MAX_FRAMES, MAX_LONG_FRAMES = 300, 1_500
"""More than the callers of a model that ends by itself need."""
ALONE = 10
"""Takes by one caller before and after the load; first audio is their median."""
REST_SECONDS = 11.0
"""Idle seconds before the process is examined: anyio ends worker threads after ten."""
TIMEOUT = 120.0
TAKE_SECONDS = 10.0
"""Seconds of each take with --takes-a-second."""


@dataclass(frozen=True)
class LoadMix:
    """The callers, and the growth that the process may show."""

    callers: int
    minutes: float
    settled_minutes: float
    settled_takes: int
    """By then every voice has been used in every format beside every other voice, so every cache is full."""
    max_growth: float
    clips: float = 0.0
    """Share of requests with a new clip of their own."""
    long_texts: float = 0.0
    """Share of requests with a long text."""
    settings: dict[str, str] = field(default_factory=dict)


ORDINARY = LoadMix(callers=4, minutes=30, settled_minutes=5, settled_takes=200, max_growth=0.02)
BUSY_CARD = LoadMix(
    callers=72,
    minutes=20,
    settled_minutes=2,
    settled_takes=200,
    max_growth=0.01,
    clips=0.1,
    long_texts=0.05,
    settings={"STUDIO_MAX_ROWS": "64", "STUDIO_MAX_CONTEXT": "1024"},
)


@dataclass(frozen=True)
class ProcessSample:
    """Measurements of the idle process."""

    minute: float
    memory_mib: float
    """Resident memory in MiB."""
    files: int
    threads: int
    takes: int
    """Takes heard to their end so far."""
    hang_ups: int
    failed: int
    card_mib: int | None = None
    """GPU memory in use, by the driver; None without a GPU."""


@dataclass
class Load:
    """The callers' requests, and their results."""

    http: httpx.AsyncClient
    voices: list[str]
    mix: LoadMix
    choose: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    async def until(self, end: float) -> None:
        """Let all callers send requests, one after the other, until this value of `time.monotonic`."""

        async def caller() -> None:
            while time.monotonic() < end:
                await self._ask()

        await asyncio.gather(*(caller() for _ in range(self.mix.callers)))

    async def _ask(self) -> None:
        is_long = self.choose.random() < self.mix.long_texts
        characters = LONG_CHARACTERS if is_long else self.choose.randint(*CHARACTERS)
        request = {
            "input": sentence(self.choose.getrandbits(32), characters),
            "response_format": self.choose.choice(FORMATS),
            "seed": self.choose.getrandbits(31),
            "max_new_tokens": MAX_LONG_FRAMES if is_long else MAX_FRAMES,
        }
        if self.choose.random() < self.mix.clips:
            wav = await asyncio.to_thread(clip, self.choose.getrandbits(32), 5.0)
            request |= {"ref_audio": data_url(wav), "ref_text": CLIP_WORDS}
        else:
            request["voice"] = self.choose.choice(self.voices)
        pieces = self.choose.randint(1, 6) if self.choose.random() < HANG_UPS else None
        try:
            outcome = await self._hear(request, pieces)
        except httpx.HTTPError as error:
            outcome = f"{type(error).__name__}: {error}"
        if outcome in ("takes", "hang_ups"):
            self.counts[outcome] += 1
        else:
            self.counts["failed"] += 1
            self.reasons[f"{request['response_format']}: {outcome}"] += 1

    async def _hear(self, request: dict[str, object], pieces: int | None) -> str:
        """Hear a take, or hang up after this many pieces; returns takes, hang_ups, or the reason for a failure."""
        async with self.http.stream("POST", "/v1/audio/speech", json=request) as answer:
            if answer.status_code != 200:
                return f"{answer.status_code} {(await answer.aread())[:300]!r}"
            count = 0
            async for piece in answer.aiter_raw():
                count += bool(piece)
                if count == pieces:
                    return "hang_ups"
        return "takes" if count else "no audio arrived"


async def soak(
    studio: StudioProcess, mix: LoadMix, minutes: float, report: Report
) -> tuple[list[ProcessSample], list[str]]:
    """The measurements of the process, one a minute, and what went wrong with requests and takes."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)  # a connection per request, none when idle
    async with httpx.AsyncClient(base_url=studio.address, timeout=TIMEOUT, limits=limits) as http:
        voices = [voice["id"] for voice in (await http.get("/v1/voices")).json()["data"]]
        load = Load(http, voices or ["random"], mix, random.Random(0))
        report.add({"first_ms_before": await _first_audio_ms(studio.address)})
        started = time.monotonic()
        samples: list[ProcessSample] = []
        while not samples or samples[-1].minute < minutes:
            await load.until(min(time.monotonic() + 60, started + 60 * minutes))
            await asyncio.sleep(REST_SECONDS)
            await http.get("/v1/voices")  # its worker thread ends those that are idle
            samples.append(_sample(studio.pid, (time.monotonic() - started) / 60, load.counts))
            report.add({"samples": [asdict(sample) for sample in samples], "reasons": dict(load.reasons)})
        kept = _kept((await http.get("/metrics")).text)
        report.add({"first_ms_after": await _first_audio_ms(studio.address), "kept": kept})
    broken = [f"{count} requests failed: {reason}" for reason, count in load.reasons.items()]
    broken += [f"{count} takes were {outcome}" for outcome, count in kept.items() if outcome != "kept" and count]
    return samples, broken


async def _first_audio_ms(address: str) -> float | None:
    """Median milliseconds to the first audio of one caller; the first take does not count. None when all failed."""
    server = Address.of(address)
    takes = [await server.listen({"input": sentence(number), "max_new_tokens": 20}) for number in range(ALONE + 1)]
    return percentile((take.first * 1e3 for take in takes[1:] if not take.error), 0.5)


def _kept(metrics: str) -> dict[str, int]:
    """Takes by what the library kept of them."""
    counts = re.findall(r'^studio_takes_kept_total\{outcome="(\w+)"\} (\S+)', metrics, re.MULTILINE)
    return {outcome: int(float(count)) for outcome, count in counts}


def _card_mib() -> int | None:
    """Memory in use on all GPUs, or on those that CUDA_VISIBLE_DEVICES names, in MiB."""
    command = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    if visible := os.environ.get("CUDA_VISIBLE_DEVICES"):
        command.append(f"--id={visible}")
    try:
        return sum(map(int, subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()))
    except (OSError, subprocess.CalledProcessError, ValueError):
        return None


def _sample(process: int, minute: float, counts: Counter[str]) -> ProcessSample:
    folder = Path(f"/proc/{process}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return ProcessSample(
        minute=round(minute, 1),
        memory_mib=round(int(status["VmRSS"].split()[0]) / 2**10, 1),
        files=len(list((folder / "fd").iterdir())),
        threads=int(status["Threads"]),
        takes=counts["takes"],
        hang_ups=counts["hang_ups"],
        failed=counts["failed"],
        card_mib=_card_mib(),
    )


def verdict(samples: list[ProcessSample], mix: LoadMix = ORDINARY) -> list[str]:
    """What grew; none means success."""
    settled = [
        sample for sample in samples if sample.minute >= mix.settled_minutes and sample.takes >= mix.settled_takes
    ]
    if len(settled) < 2:
        return [
            f"the run was too short: the first {mix.settled_takes} takes and {mix.settled_minutes} minutes do not count"
        ]
    third = -(-len(settled) // 3)
    broken = []
    for memory in ("memory", "card"):
        mib = [getattr(sample, f"{memory}_mib") or 0 for sample in settled]
        before, after = min(mib[:third]), min(mib[-third:])
        if after > before * (1 + mix.max_growth):
            name = "memory" if memory == "memory" else "the card's memory"
            broken.append(f"{name} grew by {after / before - 1:.1%}, from {before:.0f} to {after:.0f} MiB")
    until = samples[: samples.index(settled[0]) + 1]
    for name in ("files", "threads"):
        most = max(getattr(sample, name) for sample in until)
        least = min(getattr(sample, name) for sample in settled[-third:])
        if least > most:
            broken.append(f"{name} grew from {most} to {least}")
    return broken


def record_takes(rates: Sequence[float], minutes: float, home: Path | None, report: Report) -> int:
    """Whether the library keeps up: 0 when all takes of the first rate were stored."""
    outcomes: list[Recorded] = []
    for rate in rates:
        with tempfile.TemporaryDirectory(dir=home) as folder:
            outcomes.append(asyncio.run(record(Path(folder), rate, 60 * minutes, TAKE_SECONDS)))
        table(f"takes of {TAKE_SECONDS:g} seconds, {minutes:g} minutes", [asdict(outcome) for outcome in outcomes])
        report.add({"recorded": [asdict(outcome) for outcome in outcomes]})
    report.close()
    return 0 if outcomes[0].kept == outcomes[0].takes else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, help="default: 30, with --gpu 20")
    parser.add_argument("--gpu", action="store_true", help="the load of a busy card")
    parser.add_argument("--takes-a-second", type=float, nargs="+", help="use an engine that needs no time")
    parser.add_argument("--home", type=Path, help="folder for the takes, to choose the disk; default: temporary")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    mix = BUSY_CARD if options.gpu else ORDINARY
    minutes = mix.minutes if options.minutes is None else options.minutes
    if options.takes_a_second:
        return record_takes(options.takes_a_second, minutes, options.home, Report(options.out))
    if not Path("/proc/self/fd").is_dir():
        print(
            "The soak reads memory, files and threads of a process from /proc, which only Linux has.", file=sys.stderr
        )
        return 2
    report = Report(options.out)
    with tempfile.TemporaryDirectory() as home:
        settings = {name: os.environ.get(name, value) for name, value in mix.settings.items()}
        studio = StudioProcess(STUDIO_PAGE="0", STUDIO_HOME=home, **settings)
        try:
            studio.wait_until_ready()
            samples, broken = asyncio.run(soak(studio, mix, minutes, report))
        finally:
            studio.stop()
    broken += verdict(samples, mix)
    table(
        f"{mix.callers} callers, {len(FORMATS)} formats, {HANG_UPS:.0%} hang up", [asdict(sample) for sample in samples]
    )
    once = "first_ms_before", "first_ms_after", "kept"
    table("one caller before and after; the library", [{name: report.results[name] for name in once}])
    print("\n".join(f"  broken: {line}" for line in broken) or "  all conditions were met")
    report.add({"held": not broken, "broken": broken})
    report.close()
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

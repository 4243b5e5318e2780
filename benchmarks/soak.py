"""The studio under load for half an hour: memory, open files and threads must not grow, and no request may fail.

python -m benchmarks.soak [--minutes 30] [--out FILE] starts app.py, with the settings of the environment and its own
library. Callers use every format and voice, and one in four hangs up during its stream. After each minute they pause,
and the idle process is examined. Prints a table, one JSON object last; the exit code is 1 when a request failed, or
when, after the first five minutes and 200 takes, files or threads grew at all, or memory by more than 2 % from the
median of the first third to that of the last: single values vary by 4 %, up and down. Linux only.

python -m benchmarks.soak --takes-a-second 25 50 [--minutes 10] instead runs an engine that needs no time with takes of
ten seconds, for this many minutes at each rate; the exit code is 1 when the first rate lost a take or its audio.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

import httpx

from benchmarks.common.material import sentence
from benchmarks.common.report import Report, table
from benchmarks.serving.api_server import StudioProcess
from benchmarks.serving.recording import Recorded, record
from studio.audio.formats import FORMATS

CALLERS = 4
SETTLED_MINUTES, SETTLED_TAKES = 5, 200
"""By then every voice has been used in every format beside every other: everything this load can fill is full."""
MAX_GROWTH = 0.02
HANG_UPS = 0.25
CHARACTERS = (10, 120)
MAX_FRAMES = 300
"""More than the callers need."""
REST_SECONDS = 11.0
"""Idle seconds before the process is examined: anyio ends worker threads after ten."""
TIMEOUT = 120.0
TAKE_SECONDS = 10.0
"""Seconds of each take with --takes-a-second."""


@dataclass(frozen=True)
class Look:
    """Measurements of the idle process."""

    minute: float
    memory_mib: float
    """Resident."""
    files: int
    threads: int
    takes: int
    """Takes heard to their end so far."""
    hang_ups: int
    failed: int


@dataclass
class Load:
    """The callers' requests, and their results."""

    http: httpx.AsyncClient
    voices: list[str]
    choose: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    async def until(self, end: float) -> None:
        """Let all callers send requests, one after the other, until this value of `time.monotonic`."""

        async def caller() -> None:
            while time.monotonic() < end:
                await self._ask()

        await asyncio.gather(*(caller() for _ in range(CALLERS)))

    async def _ask(self) -> None:
        request = {
            "input": sentence(self.choose.getrandbits(32), self.choose.randint(*CHARACTERS)),
            "voice": self.choose.choice(self.voices),
            "response_format": self.choose.choice(FORMATS),
            "seed": self.choose.getrandbits(31),
            "max_new_tokens": MAX_FRAMES,
        }
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
            heard = 0
            async for piece in answer.aiter_raw():
                heard += bool(piece)
                if heard == pieces:
                    return "hang_ups"
        return "takes" if heard else "no audio arrived"


async def soak(studio: StudioProcess, minutes: float, report: Report) -> tuple[list[Look], Counter[str]]:
    """The measurements of the process, one a minute, and the reasons for failed requests."""
    limits = httpx.Limits(max_keepalive_connections=0)  # a connection per request, none when idle
    async with httpx.AsyncClient(base_url=studio.address, timeout=TIMEOUT, limits=limits) as http:
        voices = [voice["id"] for voice in (await http.get("/v1/voices")).json()["data"]]
        load = Load(http, voices, random.Random(0))
        started = time.monotonic()
        looks: list[Look] = []
        while not looks or looks[-1].minute < minutes:
            await load.until(min(time.monotonic() + 60, started + 60 * minutes))
            await asyncio.sleep(REST_SECONDS)
            await http.get("/v1/voices")  # its worker thread ends those that are idle
            looks.append(_look(studio.pid, (time.monotonic() - started) / 60, load.counts))
            report.add({"looks": [asdict(look) for look in looks], "reasons": dict(load.reasons)})
    return looks, load.reasons


def _look(process: int, minute: float, counts: Counter[str]) -> Look:
    folder = Path(f"/proc/{process}")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    return Look(
        minute=round(minute, 1),
        memory_mib=round(int(status["VmRSS"].split()[0]) / 2**10, 1),
        files=len(list((folder / "fd").iterdir())),
        threads=int(status["Threads"]),
        takes=counts["takes"],
        hang_ups=counts["hang_ups"],
        failed=counts["failed"],
    )


def verdict(looks: list[Look], reasons: Counter[str]) -> list[str]:
    """The conditions that failed; none means success."""
    broken = [f"{count} requests failed: {reason}" for reason, count in reasons.items()]
    settled = [look for look in looks if look.minute >= SETTLED_MINUTES and look.takes >= SETTLED_TAKES]
    if len(settled) < 2:
        return [
            *broken,
            f"the run was too short: the first {SETTLED_TAKES} takes and {SETTLED_MINUTES} minutes do not count",
        ]
    first, last = settled[0], settled[-1]
    third = -(-len(settled) // 3)
    before, after = (median(look.memory_mib for look in part) for part in (settled[:third], settled[-third:]))
    growth = after / before - 1
    if growth > MAX_GROWTH:
        broken.append(f"memory grew by {growth:.1%}, from {before:.0f} to {after:.0f} MiB")
    until = looks[: looks.index(first) + 1]
    for name in ("files", "threads"):
        most = max(getattr(look, name) for look in until)
        if getattr(last, name) > most:
            broken.append(f"{name} grew from {most} to {getattr(last, name)}")
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
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--takes-a-second", type=float, nargs="+", help="use an engine that needs no time")
    parser.add_argument("--home", type=Path, help="folder for the takes, to choose the disk; default: temporary")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.takes_a_second:
        return record_takes(options.takes_a_second, options.minutes, options.home, Report(options.out))
    if not Path("/proc/self/fd").is_dir():
        print(
            "The soak reads memory, files and threads of a process from /proc, which only Linux has.", file=sys.stderr
        )
        return 2
    report = Report(options.out)
    with tempfile.TemporaryDirectory() as home:
        studio = StudioProcess(STUDIO_PAGE="0", STUDIO_HOME=home)
        try:
            studio.wait_until_ready()
            looks, reasons = asyncio.run(soak(studio, options.minutes, report))
        finally:
            studio.stop()
    broken = verdict(looks, reasons)
    table(f"{CALLERS} callers, {len(FORMATS)} formats, {HANG_UPS:.0%} hang up", [asdict(look) for look in looks])
    print("\n".join(f"  broken: {line}" for line in broken) or "  all conditions were met")
    report.add({"held": not broken, "broken": broken})
    report.close()
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

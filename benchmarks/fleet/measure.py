"""A fleet on this machine's GPUs: its cost, the gain of several GPUs, and a lost replica's effect on listeners.

python -m benchmarks.fleet.measure [--out FILE] starts app.py without its page several times: with one engine in its
own process, with a fleet of one replica and with one of as many as there are GPUs (`--replicas`), over the same
library, and listens over real HTTP. The settings of the environment apply (STUDIO_MODEL …). Every figure is in FILE as
soon as it is measured, so that a later failure loses none; `--only` measures some stages. Each replica needs a GPU, or
they share a CPU.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import torch

from benchmarks.common.material import clip
from benchmarks.common.report import Report, percentile, table
from benchmarks.fleet.ingress import BUFFERED_SECONDS, FOUR, PACED, REPLICAS, most_streams
from benchmarks.serving.api_server import StudioProcess
from benchmarks.serving.crowd import Crowd, silence
from benchmarks.serving.listener import Address, Listener
from benchmarks.serving.loads import CLIP_WORDS, VOICE, Service, failures, summary

COUNTED_SECONDS = 2.0
"""Seconds after its start by which a studio has started its speech processes."""
STRIKE_SECONDS = 1.0
"""Seconds after the start of the takes at which a replica is lost."""
BACK_SECONDS = 240.0
"""Seconds within which a lost replica must be back."""
REPLICA = b"ray::ServeReplica"
NUMBERS = {2: "two", 3: "three", 4: "four", 8: "eight"}


@dataclass(frozen=True)
class Loads:
    """The amounts of load."""

    replicas: int
    """Of the fleet of several."""
    streams: int
    """Concurrent takes on one GPU."""
    seconds: float
    repeat: int
    voices: int
    requests: int

    @property
    def number(self) -> str:
        """The number of replicas in words, as in the names of figures."""
        return NUMBERS.get(self.replicas, str(self.replicas))

    @property
    def streams_without_one(self) -> int:
        """The number of streams that all replicas but one can carry."""
        return self.streams * (self.replicas - 1)


@dataclass
class Running:
    """A running studio."""

    studio: StudioProcess
    service: Service

    async def replicas(self) -> dict[str, dict[str, Any]]:
        """The replicas' own counters, by name."""
        return dict((await self.service.load())["replicas"])  # type: ignore[call-overload]

    async def wait_for_replacement(self, before: set[str], gone: int) -> None:
        """Wait until the number of replicas is as before, with a new one in place of the lost process."""
        until = time.monotonic() + BACK_SECONDS
        while time.monotonic() < until:
            with suppress(httpx.HTTPError, RuntimeError):
                now = set(await self.replicas())
                if now != before and len(now) == len(before) and gone not in replica_processes():
                    return
            await asyncio.sleep(0.2)
        raise RuntimeError(f"no replica came back within {BACK_SECONDS:g} s")


@asynccontextmanager
async def running(home: str, *program: str, **settings: str) -> AsyncIterator[Running]:
    """A studio over this library, until the context ends; all its speech processes accept connections."""
    studio = StudioProcess(*program, STUDIO_PAGE="0", STUDIO_HOME=home, **settings)
    try:
        ready, engine = await asyncio.to_thread(studio.wait_until_ready)
        print(f"ready after {ready:.1f} s with {settings}: {engine['device']}, {engine['max_rows']} rows", flush=True)
        async with httpx.AsyncClient(base_url=studio.address, timeout=120) as http:
            rate = engine["sample_rate"] / engine["frame_samples"]
            await asyncio.sleep(COUNTED_SECONDS)
            while (processes := (await http.get("/health")).json().get("speech_processes")) and (
                processes["ready"] < processes["wanted"]
            ):
                await asyncio.sleep(0.2)
            print(f"speech processes: {processes['ready'] if processes else 'none'}", flush=True)
            yield Running(studio, Service(Address("127.0.0.1", studio.port), http, rate))
    finally:
        await asyncio.to_thread(studio.stop)


def replica_processes() -> list[int]:
    """The process ids of every replica of this machine."""
    pids = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # the process has ended
            if entry.read_bytes().startswith(REPLICA):
                pids.append(int(entry.parent.name))
    return sorted(pids)


async def first_audio(service: Service, repeat: int) -> float:
    """Median milliseconds to first audio, for one caller at a time in a cached voice."""
    listeners = []
    for _ in range(repeat + 3):
        await service.idle()
        listeners.append(await service.address.listen(service.request(24, voice=VOICE)))
    return statistics.median(listener.first * 1e3 for listener in listeners[3:])


async def times_real_time(service: Service, loads: Loads, streams: int) -> dict[str, Any]:
    """The middle one of three loads by × real time, with all its figures."""
    rows = []
    with Crowd() as crowd:
        for _ in range(3):
            await service.idle()
            await service.address.listen(service.request(8, voice=VOICE))
            requests = [service.request(service.frames(loads.seconds), voice=VOICE) for _ in range(streams)]
            load = await crowd.listen(service.address, requests)
            if why := failures(load.listeners):
                raise RuntimeError(f"takes failed: {why}")
            rows.append({"streams": streams} | summary(load))
    return sorted(rows, key=lambda row: row["xrt"])[1]


async def hits(service: Service, loads: Loads) -> float:
    """The prefix caches' hit rate: many voices, used by Zipf's law, 16 at once."""
    chance = random.Random(0)
    weights = [1 / rank for rank in range(1, loads.voices + 1)]
    names = iter([f"{VOICE}-{n}" for n in chance.choices(range(loads.voices), weights, k=loads.requests)])
    before = await service.load()

    async def caller() -> None:
        for name in names:
            listener = await service.address.listen(service.request(4, voice=name))
            if listener.error:
                raise RuntimeError(listener.error)

    await asyncio.gather(*(caller() for _ in range(16)))
    await asyncio.sleep(2.5)  # a fleet's counters are a second old
    after = await service.load()
    met, missed = (after[key] - before[key] for key in ("prefix_hits", "prefix_misses"))
    return met / (met + missed)


async def measure_failure(
    service: Service, loads: Loads, blow: Callable[[], Awaitable[float]]
) -> tuple[list[Listener], float, list[float]]:
    """The listeners' measurements during a failure, its time, and the start of each listener, by one clock."""
    requests = [service.request(service.frames(loads.seconds), voice=VOICE) for _ in range(loads.streams_without_one)]
    began = [0.0] * len(requests)

    async def listen(number: int) -> Listener:
        began[number] = time.perf_counter()
        return await service.address.listen(requests[number])

    async def strike() -> float:
        await asyncio.sleep(STRIKE_SECONDS)
        return await blow()

    fallen, *listeners = await asyncio.gather(strike(), *(listen(number) for number in range(len(requests))))
    return list(listeners), fallen, began  # type: ignore[arg-type, return-value]


def gap_after(listener: Listener, moment: float) -> float:
    """Seconds from a moment of the take to its next piece; 0 if the take was already complete."""
    return next((came - moment for came, _ in listener.pieces if came > moment), 0.0)


def lost(listeners: list[Listener], seconds: float) -> int:
    """Takes that failed, or do not have the expected length."""
    return sum(bool(listener.error) or listener.seconds < seconds - 0.2 for listener in listeners)


class Stages:
    """The stages by name, in order."""

    def __init__(self, report: Report, loads: Loads, home: str) -> None:
        self.report, self.loads, self.home = report, loads, home

    async def one(self) -> None:
        """An engine in the studio's own process, and then a fleet of one replica on the same GPU."""
        figures: dict[str, dict[str, Any]] = {}
        for name, settings in (("in_process", {}), ("fleet_of_one", {"STUDIO_ENGINES": "1"})):
            async with running(self.home, **settings) as up:
                await self._make_voices(up.service)
                row = await times_real_time(up.service, self.loads, self.loads.streams)
                ttfa = await first_audio(up.service, self.loads.repeat)
                figures[name] = {"first_audio_ms": round(ttfa, 2), "hits": await hits(up.service, self.loads)} | row
                self.report.add({name: figures[name]})
        alone, fleet = figures.values()
        self.report.add(
            {
                "added_ms": round(fleet["first_audio_ms"] - alone["first_audio_ms"], 2),
                "overhead_share": round(1 - fleet["xrt"] / alone["xrt"], 4),
            }
        )

    async def several(self) -> None:
        """A replica on each GPU: throughput, voices, one killed, one frozen."""
        replicas, number = self.loads.replicas, self.loads.number
        async with running(self.home, STUDIO_ENGINES=str(replicas)) as up:
            await self._make_voices(up.service)
            row = await times_real_time(up.service, self.loads, replicas * self.loads.streams)
            fleet = {"hits": await hits(up.service, self.loads)} | row
            one = self.report.results.get("fleet_of_one")
            self.report.add({f"fleet_of_{number}": fleet})
            if one:
                share = round(fleet["hits"] / one["hits"], 3)
                over = round(fleet["xrt"] / one["xrt"], 3)
                self.report.add({f"{number}_over_one": over, "prefix_hit_share": share})
            await self._lose(up, "kill", signal.SIGKILL)
            await self._lose(up, "freeze", signal.SIGSTOP)

    async def update(self) -> None:
        """A second studio replaces the replicas of a cluster, one by one, while callers of the first continue."""
        with cluster() as address:
            settings = {"STUDIO_RAY_ADDRESS": address, "STUDIO_ENGINES": str(self.loads.replicas)}
            async with running(self.home, **settings) as up:
                await self._make_voices(up.service)
                before, ended, listeners = set(replica_processes()), asyncio.Event(), list[Listener]()

                async def caller(number: int) -> None:
                    await asyncio.sleep(number * self.loads.seconds / self.loads.streams_without_one)
                    while not ended.is_set():
                        frames = up.service.frames(self.loads.seconds)
                        listeners.append(await up.service.address.listen(up.service.request(frames, voice=VOICE)))

                callers = [asyncio.create_task(caller(number)) for number in range(self.loads.streams_without_one)]
                await asyncio.sleep(self.loads.seconds)
                began = time.perf_counter()
                with tempfile.TemporaryDirectory() as other:
                    async with running(other, STUDIO_MAX_WAITING="63", **settings):
                        while before & set(replica_processes()):
                            await asyncio.sleep(0.2)
                        took = time.perf_counter() - began
                        await asyncio.sleep(self.loads.seconds)
                        ended.set()
                        await asyncio.gather(*callers)
                self.report.add(
                    {
                        "update_takes": len(listeners),
                        "update_failed": lost(listeners, self.loads.seconds),
                        "update_why": failures(listeners),
                        "update_took_s": round(took, 1),
                        "update_silence_s": round(
                            max(silence(listener, BUFFERED_SECONDS) for listener in listeners), 2
                        ),
                    }
                )

    async def ingress(self) -> None:
        """Streams that one process can serve, and four, with replicas that only simulate timing."""
        most: dict[int, int] = {}
        for processes in (1, FOUR):
            settings = {"STUDIO_ENGINES": str(REPLICAS), "PACED_PROCESSES": str(processes), "STUDIO_DEVICE": "cpu"}
            async with running(self.home, *PACED, **settings) as up:
                most[processes], rows = await most_streams(up.service, processes, most.get(1))
                self.report.add({f"ingress_of_{processes}": {"most": most[processes], "tries": rows}})
        over = round(most[FOUR] / most[1], 2) if most[1] else None
        self.report.add({"ingress_streams": most[1], "ingress_four_over_one": over})

    async def _make_voices(self, service: Service) -> None:
        """Create the voices in the library that all stages share: the one for load tests, and many."""
        if (await service.http.get(f"/v1/voices/{VOICE}")).status_code == 200:
            return
        await service.upload_voice()
        for number in range(self.loads.voices):
            form = {
                "name": f"{VOICE}-{number}",
                "ref_text": CLIP_WORDS,
                "consent": "A synthetic sound: nobody's voice.",
            }
            sound = {"audio_sample": ("clip.wav", clip(number + 1))}
            (await service.http.post("/v1/audio/voices", data=form, files=sound)).raise_for_status()
        for number in range(self.loads.voices):  # encode now, so that no later measurement includes it
            await service.address.listen(service.request(2, voice=f"{VOICE}-{number}"))

    async def _lose(self, up: Running, name: str, blow: signal.Signals) -> None:
        """Make one replica fail under takes of both studios."""
        await up.service.idle()
        before, victim = set(await up.replicas()), replica_processes()[0]

        async def fall() -> float:
            os.kill(victim, blow)
            return time.perf_counter()

        listeners, fallen, began = await measure_failure(up.service, self.loads, fall)
        gaps = [gap_after(listener, fallen - start) for listener, start in zip(listeners, began, strict=True)]
        self.report.add(
            {
                f"{name}_takes": len(listeners),
                f"{name}_lost": lost(listeners, self.loads.seconds),
                f"{name}_why": failures(listeners),
                f"{name}_silence_s": round(max(silence(listener, BUFFERED_SECONDS) for listener in listeners), 2),
                f"{name}_noticed_s": percentile(gaps, 1, 2),
            }
        )
        struck_at = time.perf_counter()
        await up.wait_for_replacement(before, victim)
        self.report.add({f"{name}_back_s": round(time.perf_counter() - struck_at, 1)})


class cluster:
    """A Ray cluster on this machine, started as by `ray start`."""

    def __enter__(self) -> str:
        os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "benchmark" * 4, "RAY_worker_niceness": "0"}
        self._ray("start", "--head", "--port=6399", "--include-dashboard=false", "--disable-usage-stats")
        return "127.0.0.1:6399"

    def __exit__(self, *error: object) -> None:
        self._ray("stop", "--force")

    @staticmethod
    def _ray(*arguments: str) -> None:
        subprocess.run([sys.executable, "-m", "ray.scripts.scripts", *arguments], check=True, stdout=subprocess.DEVNULL)


async def measure(names: list[str], report: Report, loads: Loads) -> None:
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as voices:
        os.environ["STUDIO_VOICES"] = voices  # none, so that every engine has only the benchmark's voices
        stages = Stages(report, loads, home)
        for name in names:
            started = time.perf_counter()
            try:
                await getattr(stages, name)()
            except Exception as error:  # noqa: BLE001  (the other stages still count)
                report.add({f"{name}_failed": f"{type(error).__name__}: {error}"})
                print(f"{name} failed: {error!r}", flush=True)
            print(f"{name} took {time.perf_counter() - started:.0f} s", flush=True)


def gpus() -> list[str]:
    """The names of this machine's GPUs, without a context on any of them."""
    listed = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    with suppress(OSError, subprocess.CalledProcessError):
        return subprocess.run(listed, check=True, capture_output=True, text=True).stdout.splitlines()
    return []


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    stages = ["one", "several", "update", "ingress"]
    parser.add_argument("--only", nargs="+", choices=stages, default=stages)
    parser.add_argument("--replicas", type=int, help="default: as many as GPUs, at least two")
    parser.add_argument("--streams", type=int, default=64, help="at once on one GPU")
    parser.add_argument("--seconds", type=float, default=15, help="of sound in a stream")
    parser.add_argument("--repeat", type=int, default=40, help="requests of one caller")
    parser.add_argument("--voices", type=int, default=100)
    parser.add_argument("--requests", type=int, default=600, help="among the voices")
    options = parser.parse_args()
    report = Report(options.out)
    cards = gpus()
    report.add({"date": datetime.date.today().isoformat(), "torch": torch.__version__, "gpus": cards})
    replicas = max(2, options.replicas or len(cards))
    loads = Loads(replicas, options.streams, options.seconds, options.repeat, options.voices, options.requests)
    asyncio.run(measure(options.only, report, loads))
    figures = {key: value for key, value in report.results.items() if not isinstance(value, dict)}
    table("A fleet", [{"figure": key, "measured": str(value)} for key, value in figures.items()])
    report.close()


if __name__ == "__main__":
    main()

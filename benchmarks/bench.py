"""`make bench`: the real studio as a user starts it, on two cores: start, first audio, real-time factor, memory, page.

The settings of app.py apply, except for the port. This process takes the times over HTTP, so they include the network
stack, the server and the engine; the page's times, by Chromium's clock, also include the click, the browser and the
player.
"""

from __future__ import annotations

import http.client
import json
import os
import platform
import statistics
import sys
import time
from dataclasses import asdict, dataclass, replace

from benchmarks import page
from benchmarks.common.chromium import NoChromium
from benchmarks.serving.api_server import StudioProcess

CORES = 2
SHORT = "Hello, it is good to hear you."
LONG = (
    "The morning was quiet, and the harbour lay under a thin mist. One boat after the other came home, "
    "and the gulls followed them in. By noon the market was full of voices."
)
PAGE_TAKES = 10
PCM_BYTES_A_SECOND = 2 * 24_000


@dataclass(frozen=True)
class Exchange:
    """One speech request, as measured by its client."""

    first_audio: float
    """Seconds from sending the request to the first byte of audio."""
    total: float
    """Seconds to the last byte."""
    audio: float
    """Seconds of audio."""


@dataclass(frozen=True)
class Report:
    """The fields of the JSON line."""

    model: str
    device: str
    machine: str
    cores: int
    ready_s: float
    first_audio_ms: float
    first_audio_ms_worst: float
    rtf: float
    rtf_worst: float
    peak_rss_mib: float
    requests: int
    page: page.Report | None
    """The measurements of benchmarks.page in its own studio; None without Chromium."""


class Studio(StudioProcess):
    """The studio, and a client for it."""

    def speak(self, text: str, seed: int) -> Exchange:
        body = json.dumps({"input": text, "seed": seed, "response_format": "pcm"})
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        connection.connect()
        started = time.perf_counter()
        connection.request("POST", "/v1/audio/speech", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        if answer.status != 200:
            sys.exit(f"the studio answered {answer.status}: {answer.read().decode()}")
        size = len(answer.read(1))
        first = time.perf_counter() - started
        size += len(answer.read())
        return Exchange(first, time.perf_counter() - started, size / PCM_BYTES_A_SECOND)


def use_cores(count: int) -> int:
    """Limit this process and its children to this many cores; no limit where the system does not support it."""
    if not hasattr(os, "sched_setaffinity"):
        return os.cpu_count() or 1
    chosen = sorted(os.sched_getaffinity(0))[:count]
    os.sched_setaffinity(0, chosen)
    return len(chosen)


def main() -> None:
    cores = use_cores(CORES)
    studio = Studio()
    ready, engine = studio.wait_until_ready()
    studio.speak(SHORT, seed=0)
    first = [studio.speak(SHORT, seed).first_audio * 1000 for seed in range(1, 11)]
    rtf = [take.total / take.audio for take in (studio.speak(LONG, seed) for seed in range(1, 6))]
    report = Report(
        model=str(engine["model"]),
        device=f"{engine['device']} {engine['dtype']}",
        machine=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        cores=cores,
        ready_s=round(ready, 2),
        first_audio_ms=round(statistics.median(first), 1),
        first_audio_ms_worst=round(max(first), 1),
        rtf=round(statistics.median(rtf), 3),
        rtf_worst=round(max(rtf), 3),
        peak_rss_mib=round(studio.stop(), 0),
        requests=1 + len(first) + len(rtf),
        page=None,
    )
    why_not = ""
    try:
        report = replace(report, page=page.measure_in_chromium(PAGE_TAKES))
    except NoChromium as missing:
        why_not = str(missing)
    print(table(report, why_not))
    print(json.dumps(asdict(report)))


def table(report: Report, why_not: str = "") -> str:
    """The report as text; ``why_not``: why the page was not measured."""
    rows = [
        ("ready after start", f"{report.ready_s:.2f} s", ""),
        ("first audio over HTTP", f"{report.first_audio_ms:.0f} ms", f"worst {report.first_audio_ms_worst:.0f}"),
        ("real-time factor", f"{report.rtf:.3f}", f"worst {report.rtf_worst:.3f}; below 1 is faster than speech"),
        ("peak resident memory", f"{report.peak_rss_mib:.0f} MiB", ""),
        *(page.rows(report.page) if report.page else [("the page in a browser", "-", why_not)]),
    ]
    head = f"{report.model} on {report.device}, {report.cores} cores, {report.machine}"
    return "\n".join([head, *(f"  {name:26} {value:>10}  {note}".rstrip() for name, value, note in rows)])


if __name__ == "__main__":
    main()

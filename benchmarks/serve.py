"""The service under load: a real server in its own process, real HTTP on localhost, listeners at playback speed.

python -m benchmarks.serve [--out FILE] starts app.py without its page, with the settings of the environment
(STUDIO_MODEL …), measures it stage by stage once all of its graphs are captured, and prints a table per stage and one
JSON object last. Every stage is written to FILE as soon as it is complete. First audio counts from before the
connection is opened to the first audio.

--shape NAME serves random weights of this size instead, on 64 rows as `make bench-gpu` does.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx

from benchmarks.bench_gpu import SERVICE_SETTINGS, room_for_weights
from benchmarks.common.report import Report, table
from benchmarks.full_size import SHAPES
from benchmarks.serving.api_server import StudioProcess
from benchmarks.serving.crowd import Crowd
from benchmarks.serving.listener import Address
from benchmarks.serving.loads import Service, bare_client, cancel, one_caller, poisson, together


async def measure(port: int, frame_rate: float, options: argparse.Namespace, report: Report) -> None:
    """All stages, one after the other."""
    base = f"http://127.0.0.1:{port}"
    with Crowd() as crowd:
        async with httpx.AsyncClient(base_url=base, timeout=120) as http:
            service = Service(Address("127.0.0.1", port), http, frame_rate)
            report.add({"all_graphs_s": round(await service.all_graphs(), 2)})
            await alone(service, crowd, options, report)
            await arrivals(service, crowd, options, report)
            await crowds(service, crowd, options, report)
            cancels = await cancel(service, options.cancels)
            report.add(cancels)
            table("Hanging up in the middle of a stream, until the row is free", [cancels])


async def alone(service: Service, crowd: Crowd, options: argparse.Namespace, report: Report) -> None:
    """The client's own cost, and one caller at a time."""
    report.add(await bare_client(crowd))
    report.add({"upload_ms": round(await service.upload_voice() * 1e3, 1)})
    rows = await one_caller(service, options.repeat, options.frames)
    saved, known, new, plain = (row["first_ms_p50"] for row in rows)
    report.add(
        {
            "one_caller": rows,
            "ttfa_ms_p50_cached": saved,
            "ttfa_ms_p50_inline_known": known,
            "cold_clone_ms_p50": new,
            "ttfa_ms_p50_plain": plain,
            "rtf_1": rows[0]["rtf"],
        }
    )
    table(f"One caller, takes of {options.frames} frames, clips of 10 s; the client takes {_own(report)}", rows)


async def arrivals(service: Service, crowd: Crowd, options: argparse.Namespace, report: Report) -> None:
    """Poisson arrivals in a saved voice."""
    rows = []
    for rate in options.rates:
        await service.idle()
        row, why = await poisson(service, crowd, rate, options.seconds)
        rows.append({"rate": rate} | row)
        report.add({f"ttfa_ms_{share}_{rate:g}rps": row[f"first_ms_{share}"] for share in ("p50", "p95", "p99")})
        report.add(
            {f"underruns_{rate:g}rps": row["underruns"], "arrivals": [*rows[:-1], rows[-1] | {"why_failed": why}]}
        )
        _tell(why)
    table(f"Requests a second at random for {options.seconds:g} s, takes of 2 to 6 s", rows)


async def crowds(service: Service, crowd: Crowd, options: argparse.Namespace, report: Report) -> None:
    """Concurrent streams: all started at once, and the largest number of them within a second, too."""
    rows, reasons = [], []
    for streams, spread in (*((streams, 0.0) for streams in options.streams), (max(options.streams), 1.0)):
        row, why = await together(service, crowd, streams, options.stream_seconds, spread)
        rows.append(row)
        reasons += why
        name = f"{streams}" if not spread else f"{streams}_staggered"
        report.add({f"ttfa_ms_{share}_{name}": row[f"first_ms_{share}"] for share in ("p50", "p95")})
        report.add({f"underruns_{name}": row["underruns"], f"xrt_http_{name}": row["xrt"], "streams": rows})
    table(f"Streams of {options.stream_seconds:g} s at once", rows)
    _tell(reasons)


def _own(report: Report) -> str:
    return f"{report.results['client_ms']} ms of it at most, with 64 at once {report.results['client_ms_64_at_once']}"


def _tell(reasons: list[str]) -> None:
    for reason in sorted(set(reasons)):
        print(f"  failed: {reason}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--shape", choices=SHAPES, help="default: the model that the environment's settings name")
    parser.add_argument("--repeat", type=int, default=8, help="requests of one caller for each kind of voice")
    parser.add_argument("--frames", type=int, default=120, help="frames of one caller's takes")
    parser.add_argument("--rates", type=float, nargs="*", default=[10, 20], help="arrivals a second, one after another")
    parser.add_argument("--seconds", type=float, default=20, help="of arrivals")
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument("--stream-seconds", type=float, default=15)
    parser.add_argument("--cancels", type=int, default=10)
    options = parser.parse_args()
    report = Report(options.out)
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory(dir=room_for_weights()) as model:
        settings = {}
        if options.shape:  # in a process that then frees its memory
            subprocess.run([sys.executable, "-m", "benchmarks.full_size", model, "--shape", options.shape], check=True)
            settings = {name: os.environ.get(name, value) for name, value in SERVICE_SETTINGS.items()}
            settings["STUDIO_MODEL"] = model
        studio = StudioProcess(STUDIO_PAGE="0", STUDIO_HOME=home, **settings)
        try:
            ready, engine = studio.wait_until_ready()
            report.add({"ready_s": round(ready, 2), "engine": engine})
            print(f"ready after {ready:.1f} s: {engine['model']} on {engine['device']}, {engine['max_rows']} rows")
            frame_rate = engine["sample_rate"] / engine["frame_samples"]
            asyncio.run(measure(studio.port, frame_rate, options, report))
        finally:
            report.add({"server_peak_rss_mib": round(studio.stop())})
    report.close()


if __name__ == "__main__":
    main()

"""Times the CPU's native code against torch, in pairs in one process: python -m benchmarks.cpu [--threads 1,2,4]

Random weights in the shape of Audio8 (``--shape audio8``) or of the bundled model (``--shape fry``), one row at
position 250. Every pair runs torch's work and the native one after each other, so that what disturbs the machine
disturbs both; ratios of the medians and of the least times are printed. ``--isa avx2`` limits the native code and, by
torch's own variables, torch too.

``--takes 2,4,8`` times whole takes in a new voice on that many cores instead, of a checkpoint of Audio8's size with
random weights or of ``--model``; ``--http`` also those of a whole studio.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

POSITION, CONTEXT = 250, 512
TORCH_LIMITS = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", nargs="+", choices=("audio8", "fry"), default=["audio8", "fry"])
    parser.add_argument("--threads", default="1,2,4", help="numbers of threads, for torch and for the native code")
    parser.add_argument("--isa", help="an instruction set of the native code, such as avx2")
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--takes", metavar="CORES", help="numbers of cores for whole takes")
    parser.add_argument("--model", type=Path, help="a checkpoint's folder for the takes")
    parser.add_argument("--http", action="store_true", help="takes over HTTP besides")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.isa == "avx2" and any(os.environ.get(name) != value for name, value in TORCH_LIMITS.items()):
        # Read when torch is loaded, so by a new process.
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks.cpu", *sys.argv[1:]], os.environ | TORCH_LIMITS)  # noqa: S606
    if options.takes:
        with tempfile.TemporaryDirectory() as folder:
            time_takes(options.model or written(Path(folder)), options)
        return
    measure(options.shape, [int(count) for count in options.threads.split(",")], options)


def written(folder: Path) -> Path:
    import torch

    from benchmarks.full_size import AUDIO8, write_checkpoint

    with torch.inference_mode():
        return write_checkpoint(folder, torch.device("cpu"), AUDIO8)


def time_takes(model: Path, options: argparse.Namespace) -> None:
    from benchmarks.common.report import Report, table

    report, rows = Report(options.out), list[dict[str, object]]()
    for by_http in (False, True) if options.http else (False,):
        for cores in options.takes.split(","):
            command = [sys.executable, "-m", "benchmarks.engine.cpu_takes", str(model), cores]
            command += [*(("--isa", options.isa) if options.isa else ()), *(("--http",) if by_http else ())]
            rows.append(json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.splitlines()[-1]))
            report.add({"takes": rows})
            print(rows[-1], flush=True)
    for by_http in (False, True):
        table("Takes over HTTP" if by_http else "Takes by the engine", [row for row in rows if row["http"] == by_http])
    report.close()


def measure(shapes: list[str], thread_counts: list[int], options: argparse.Namespace) -> None:
    from benchmarks.common.report import Report, table
    from benchmarks.engine import cpu_parts

    report = Report(options.out)
    report.add({"isa": cpu_parts.use_isa(options.isa), "threads": thread_counts})
    for shape in shapes:
        rows = []
        for name, torchs, natives in cpu_parts.pairs(shape, POSITION, CONTEXT):
            for threads in thread_counts:
                cpu_parts.set_threads(threads)
                rows.append(
                    {"what": name, "threads": threads}
                    | compared(torchs, natives, min(options.pairs, 4 if "encode" in name else options.pairs))
                )
        table(f"{shape}, {report.results['isa']}", rows)
        report.add({shape: rows})
    report.close()


def compared(one: Callable[[], object], other: Callable[[], object], pairs: int) -> dict[str, float]:
    """Milliseconds of torch's work and of the native one, medians and least, and their ratios."""
    times: tuple[list[float], list[float]] = [], []
    for _ in range(pairs + 2):
        for work, measured in zip((one, other), times, strict=True):
            start = time.perf_counter()
            work()
            measured.append((time.perf_counter() - start) * 1000)
    medians = [statistics.median(measured[2:]) for measured in times]
    least = [min(measured[2:]) for measured in times]
    return {
        "torch_ms": round(medians[0], 3),
        "native_ms": round(medians[1], 3),
        "ratio": round(medians[0] / medians[1], 2),
        "least_torch_ms": round(least[0], 3),
        "least_native_ms": round(least[1], 3),
        "least_ratio": round(least[0] / least[1], 2),
    }


if __name__ == "__main__":
    main()

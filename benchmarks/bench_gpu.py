"""`make bench-gpu`: engine, service and upstream on one GPU with full-size random weights, in one table and one JSON.

Each stage is a process with its own time limit; its measurements count even if it fails later, and the others still
run. The settings of app.py apply to the service (STUDIO_MAX_ROWS …; 64 rows by default), and unknown options are passed
to `benchmarks.serve`. `--only` repeats some stages and keeps the others of the file.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.common.report import Report, table

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
"""One file per kind of GPU: h200.json, h100.json."""
FULL_SIZE_BYTES = 12 * 2**30
STAGES = ("engine", "memory", "service", "upstream")
CARDS = "5.5", "7.4", "11.2", "15.1", "22.9"
"""GiB assumed to be free on cards of 6, 8, 12, 16 and 24 GB: docs/hosting.md."""
SERVICE_SETTINGS = {"STUDIO_MAX_ROWS": "64", "STUDIO_MAX_CONTEXT": "1024"}

FIGURES: dict[str, tuple[str, str]] = {
    "read_gb_s": ("engine", "read_gb_s"),
    "floor_ms": ("engine", "floor_ms"),
    "frame_ms_b1": ("engine", "frame_ms_b1"),
    "frame_ms_b1_sixteen_bits": ("engine", "frame_ms_b1_sixteen_bits"),
    "frame_ms_b1_int8": ("engine", "frame_ms_b1_int8"),
    "frame_ms_b1_int6": ("engine", "frame_ms_b1_int6"),
    "frame_ms_b8": ("engine", "frame_ms_b8"),
    "frame_ms_b32": ("engine", "frame_ms_b32"),
    "frame_ms_b64": ("engine", "frame_ms_b64"),
    "codec_xrt_32": ("engine", "codec_xrt_32|codec_xrt_32_tf32"),
    "xrt_b64_with_codec": ("engine", "xrt_b64_with_codec|stream_64_tf32/xrt_with_codec"),
    "xrt_b64_two_gpus": ("engine", "stream_64_tf32_two_gpus/xrt_with_codec"),
    "encode_10s_ms": ("engine", "encoding/alone/median_ms"),
    "turn_ms_worst_while_encoding": ("engine", "turns while clips are encoded/worst_ms"),
    "gib_4x4k": ("memory", "gib_4x4k"),
    "ready_s": ("service", "ready_s"),
    "ttfa_ms_p50_cached": ("service", "ttfa_ms_p50_cached"),
    "ttfa_ms_p50_10rps": ("service", "ttfa_ms_p50_10rps"),
    "ttfa_ms_p95_10rps": ("service", "ttfa_ms_p95_10rps"),
    "ttfa_ms_p95_20rps": ("service", "ttfa_ms_p95_20rps"),
    "ttfa_ms_p50_64": ("service", "ttfa_ms_p50_64"),
    "ttfa_ms_p95_64": ("service", "ttfa_ms_p95_64"),
    "cold_clone_ms_p50": ("service", "cold_clone_ms_p50"),
    "underruns_64": ("service", "underruns_64"),
    "underruns_64_staggered": ("service", "underruns_64_staggered"),
    "xrt_http_64": ("service", "xrt_http_64"),
    "cancel_ms_p50": ("service", "cancel_ms_p50"),
    "upstream_ms": ("upstream", "upstream_ms"),
}
"""Each figure with its stage and its name there; of several names, the first that exists."""


@dataclass(frozen=True)
class Stage:
    """One process of the benchmark; ``module`` writes its results to the file after --out."""

    name: str
    module: str
    arguments: tuple[str, ...]
    limit_s: int
    settings: Mapping[str, str] = field(default_factory=dict)

    def run(self, out: Path) -> str:
        """Run to the end or to the limit; returns how it ended, in words. Its output passes through."""
        process = subprocess.Popen(
            [sys.executable, "-m", self.module, *self.arguments, "--out", str(out)],
            cwd=ROOT,
            env={
                **os.environ,
                **self.settings,
                "TRITON_CACHE_DIR": str(out.parent / "kernels"),
            },
            start_new_session=True,
        )
        try:
            code = process.wait(self.limit_s)
            return "done" if code == 0 else f"failed with code {code}"
        except subprocess.TimeoutExpired:
            return f"cut off after {self.limit_s} s"
        finally:
            _end_session(process.pid)
            process.wait()


def _end_session(leader: int) -> None:
    """End everything that a stage left running, such as a server."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except ProcessLookupError:
        return


def stages(options: argparse.Namespace, checkpoint: Path, serve: list[str]) -> list[Stage]:
    """All stages in order."""
    settings = {name: os.environ.get(name, value) for name, value in SERVICE_SETTINGS.items()}
    everything = [
        Stage("engine", "benchmarks.gpu", (str(options.small),), 600),
        Stage("weights", "benchmarks.full_size", (str(checkpoint),), 90),
        Stage("memory", "benchmarks.memory", (str(checkpoint), "--cards", *CARDS), 240),
        Stage("service", "benchmarks.serve", tuple(serve), 300, settings | {"STUDIO_MODEL": str(checkpoint)}),
        Stage("upstream", "benchmarks.upstream", (str(checkpoint),), 90, {"TQDM_DISABLE": "1"}),
    ]
    wanted = set(options.only or STAGES)
    if wanted - {"engine"} and not options.checkpoint:
        wanted.add("weights")
    return [stage for stage in everything if stage.name in wanted]


def figures(results: Mapping[str, Any]) -> dict[str, Any]:
    """The most important figures of all stages' results; None for missing ones."""
    return {name: _find(results.get(stage), names.split("|")) for name, (stage, names) in FIGURES.items()}


def _find(tree: Any, names: list[str]) -> Any:
    flat = dict(_leaves(tree)) if isinstance(tree, dict) else {}
    return next((flat[path] for name in names for path in flat if f"/{path}".endswith(f"/{name}")), None)


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    leaves: list[tuple[str, Any]] = []
    for key, value in tree.items():
        leaves += _leaves(value, f"{prefix}{key}/") if isinstance(value, dict) else [(f"{prefix}{key}", value)]
    return leaves


def measure(chosen: list[Stage], report: Report) -> None:
    """Run the stages one after the other; the file is complete after each."""
    for stage in chosen:
        print(f"\n==> {stage.name}: {stage.module}, at most {stage.limit_s} s", flush=True)
        started = time.perf_counter()
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / "out.json"
            outcome = stage.run(out)
            measured = json.loads(out.read_text()) if out.exists() else {}
        row = {"outcome": outcome, "seconds": round(time.perf_counter() - started, 1)}
        row["date"] = datetime.date.today().isoformat()
        report.add({"stages": report.results.get("stages", {}) | {stage.name: row}})
        report.add({stage.name: measured})
        report.add(figures(report.results))


def gpu_name() -> str:
    """'h100' for "NVIDIA H100 80GB HBM3", 'rtx-4090' for "NVIDIA GeForce RTX 4090": the first GPU."""
    program = "import torch; print(torch.cuda.get_device_name())"  # in a process that then frees its GPU memory
    named = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if named.returncode:
        raise SystemExit(f"no GPU to measure: {named.stderr.strip().splitlines()[-1]}")
    return "-".join(re.sub(r"nvidia|geforce|\b\d+gb\b|\bhbm\w+|\bpcie\b|\bsxm\w+", " ", named.stdout.lower()).split())


def room_for_weights() -> Path:
    """A folder for twelve gigabytes for some minutes: in memory if they fit."""
    memory = Path("/dev/shm")  # noqa: S108  (one machine, one user)
    in_memory = memory.is_dir() and shutil.disk_usage(memory).free > FULL_SIZE_BYTES
    return memory if in_memory else Path(tempfile.gettempdir())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="default: results/NAME_OF_THE_GPU.json")
    parser.add_argument("--only", nargs="+", choices=STAGES)
    parser.add_argument("--small", type=Path, default=ROOT / "assets" / "fry", help="checkpoint for exact comparisons")
    parser.add_argument("--checkpoint", type=Path, help="use this one and write none")
    options, serve = parser.parse_known_args()
    options.out = options.out or RESULTS / f"{gpu_name()}.json"
    report = Report(options.out)
    if options.only and options.out.exists():
        report.results = json.loads(options.out.read_text())
    with tempfile.TemporaryDirectory(prefix="s2-", dir=room_for_weights()) as scratch:
        measure(stages(options, options.checkpoint or Path(scratch), serve), report)
    table("Figures", [{"figure": name, "measured": report.results[name]} for name in FIGURES])
    ended = report.results["stages"]
    table("Stages", [{"stage": name, **row} for name, row in ended.items()])
    report.close()
    return 0 if all(row["outcome"] == "done" for row in ended.values()) else 1


if __name__ == "__main__":
    sys.exit(main())

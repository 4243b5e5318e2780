"""The soak test distinguishes a steady studio from a growing one, and runs against a real studio."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.serving.recording import record
from benchmarks.soak import BUSY_CARD, ProcessSample, verdict
from studio import ROOT

STEADY = [ProcessSample(minute, 800 + min(minute, 5), 16, 8, 60 * minute, 20 * minute, 0) for minute in range(1, 31)]
LEAKING = [replace(look, memory_mib=look.memory_mib + 2 * look.minute) for look in STEADY]
UNEVEN = [
    replace(look, memory_mib=look.memory_mib + 30 * (look.minute % 3), threads=8 + 15 * int(look.minute % 2))
    for look in STEADY
]
WRONG = (
    (LEAKING, "memory grew by 4.2%, from 815 to 849 MiB"),
    ([replace(look, files=17 if look.minute > 20 else 16) for look in STEADY], "files grew from 16 to 17"),
    ([replace(look, threads=9 if look.minute > 20 else 8) for look in STEADY], "threads grew from 8 to 9"),
)


def test_steady_figures_pass_and_growing_ones_are_named() -> None:
    assert verdict(STEADY) == verdict(UNEVEN) == []
    for looks, message in WRONG:
        assert verdict(looks) == [message]


def test_growing_gpu_memory_fails_the_busy_gpu_load() -> None:
    full = [replace(look, card_mib=30_000) for look in STEADY]
    assert verdict(full, BUSY_CARD) == []
    growing = [replace(look, card_mib=30_000 + round(30 * look.minute)) for look in STEADY]
    assert verdict(growing, BUSY_CARD) == ["the card's memory grew by 1.8%, from 30120 to 30660 MiB"]


def test_short_run_fails() -> None:
    assert "too short" in verdict(STEADY[:5])[0]


QUICK_SOAK = """
from benchmarks import soak
soak.ALONE, soak.REST_SECONDS = 1, 4.0  # measurements of one take, and fewer seconds until threads have ended
raise SystemExit(soak.main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="it reads /proc")
def test_soak_runs_on_a_real_studio_and_ends_with_json(quick_checkpoint: Path, voices_folder: Path) -> None:
    environment = os.environ | {"MODEL": str(quick_checkpoint), "STUDIO_VOICES": str(voices_folder)}
    environment["STUDIO_MAX_CONTEXT"] = "300"  # positions; takes from random weights never end early and fill them all
    command = [sys.executable, "-c", QUICK_SOAK, "--minutes", "0.02"]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    results = json.loads(done.stdout.splitlines()[-1])
    (look,) = results["samples"]
    assert results["reasons"] == {} and look["takes"] + look["hang_ups"] > 0
    assert set(results["kept"]) == {"kept"} and results["first_ms_before"] > 0 and results["first_ms_after"] > 0
    assert len(results["broken"]) == 1 and "too short" in results["broken"][0]


async def test_takes_at_a_given_rate_are_generated_and_counted(tmp_path: Path) -> None:
    outcome = await record(tmp_path, takes_a_second=40, seconds=0.5, take_seconds=1.0)
    assert outcome.takes == outcome.kept > 0 == outcome.lost == outcome.soundless

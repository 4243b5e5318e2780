"""An engine's temporary memory returns to the system, and lasting objects are exempt from garbage collection."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest
import torch

from engine import release_memory
from engine.runtime.memory import drop_file_pages, free_memory

ROOT = Path(__file__).parents[3]
ENCODE = """
from launch import import_torch
import_torch()
import asyncio
import gc
import sys
import weakref
from pathlib import Path
import numpy as np
from engine import Engine, EngineConfig, freeze_heap, release_memory

def resident() -> int:  # MiB
    return int(Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]) // 1024

async def encode() -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, 6 * 44_100).astype(np.float32)
    for seconds in (3, 5.5, 4.2, 6, 3.6):
        await engine.encode_reference(noise[: round(seconds * 44_100)], 44_100, "Words.")

engine = Engine.start(EngineConfig("assets/fry", device="cpu", threads=1))
before = resident()
asyncio.run(encode())
engine.stop()
class Cycle: pass
frozen = Cycle()
frozen.itself = frozen
looked_at = len(gc.get_objects())
freeze_heap()
print(before, resident(), looked_at, len(gc.get_objects()), int("torch._decomp" in sys.modules))
held = weakref.ref(frozen)
del frozen
release_memory()
print(int(held() is None))
import torch._dynamo
"""


@pytest.mark.linux
def test_clips_memory_is_released_and_a_frozen_heap_is_little_to_scan_until_it_is_released() -> None:
    done = subprocess.run([sys.executable, "-c", ENCODE], cwd=ROOT, check=True, capture_output=True, text=True)
    before, after, scanned, still_scanned, compiler, is_released = map(int, done.stdout.split())
    assert after < before + 150
    assert still_scanned < scanned / 100
    assert is_released, "a stopped engine is freed although its objects were frozen"
    assert not compiler, "what torch's compiler needs was imported: seconds of an engine's start"


def resident() -> int:
    """MiB."""
    return int(Path("/proc/self/status").read_text("utf-8").partition("VmRSS:")[2].split()[0]) // 1024


@pytest.mark.linux
def test_pages_of_a_file_leave_the_process_and_return_when_read(tmp_path: Path) -> None:
    torch.save({"weight": torch.full((2**25,), 3.0)}, tmp_path / "weights.pth")
    state = torch.load(tmp_path / "weights.pth", mmap=True)
    own = torch.full((2**20,), 5.0)
    assert state["weight"].sum() == 3 * 2**25
    before = resident()
    drop_file_pages([own, state["weight"][2**24 :]])
    assert resident() < before - 100
    assert state["weight"].sum() == 3 * 2**25 and own.sum() == 5 * 2**20


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_engine_memory_is_released_while_another_thread_collects_garbage() -> None:
    is_collecting, may_end = threading.Event(), threading.Event()

    class Slow(Cycle):
        def __del__(self) -> None:
            is_collecting.set()
            may_end.wait(60)

    Slow()
    others = threading.Thread(target=gc.collect)
    others.start()
    assert is_collecting.wait(60)
    held = weakref.ref(Cycle())
    release = threading.Thread(target=release_memory)
    release.start()
    release.join(0.1)  # it would have ended by then if it did not wait
    may_end.set()
    others.join()
    release.join()
    assert held() is None


def test_page_cache_does_not_count_as_memory_used_by_a_container(tmp_path: Path) -> None:
    mib = 2**20
    for name, text in {
        "max": 64 * mib,
        "current": 60 * mib,
        "stat": f"anon {10 * mib}\ninactive_file {50 * mib}",
    }.items():
        (tmp_path / f"memory.{name}").write_text(f"{text}\n")
    assert free_memory(torch.device("cpu"), group=tmp_path) == 54 * mib
    (tmp_path / "memory.max").write_text("max\n")
    assert (free_memory(torch.device("cpu"), group=tmp_path) or 0) > 64 * mib

"""Functions in child processes: their limits, and how they end."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from manuscript.passages import InvalidDocument
from studio.errors import InvalidRequest, TooCostly
from studio.work import Job, in_child
from tests.studio.work.hanging import children, hang, hang_in_another

MEMORY = 2**30
SECONDS = 60.0


def job(seconds: float = SECONDS) -> Job:
    return Job(seconds, "it takes too long", "it takes too much memory")


async def soon(is_so: Callable[[], bool]) -> None:
    with anyio.fail_after(60):
        while not is_so():
            await asyncio.sleep(0.01)


def refuse(words: str) -> None:
    raise InvalidDocument(words, "file", "odd")


def environment_of(_: None) -> dict[str, str]:
    return dict(os.environ)


async def test_result_and_refusal_are_returned_with_all_fields(caplog: pytest.LogCaptureFixture) -> None:
    assert await in_child(job(), MEMORY, (), sorted, [3, 1, 2]) == [1, 2, 3]
    with pytest.raises(InvalidDocument, match="line 3: no") as refusal:
        await in_child(job(), MEMORY, (), refuse, "line 3: no")
    assert (refusal.value.param, refusal.value.code) == ("file", "odd")
    with pytest.raises(InvalidRequest, match=r"it is damaged \(ZeroDivisionError\)"):
        await in_child(job(), MEMORY, (), divmod, 1, 0)
    assert "in main" in caplog.text and "ZeroDivisionError" in caplog.text


async def test_compromised_process_cannot_run_code_in_its_parent() -> None:
    with pytest.raises(pickle.UnpicklingError, match="not allowed"):
        await in_child(job(), MEMORY, (), Path, "/")


async def test_process_inherits_neither_keys_nor_settings_nor_other_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("STUDIO_API_KEYS", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "HTTPS_PROXY", "STUDIO_CHAT"):
        monkeypatch.setenv(name, f"hidden {name}")
    monkeypatch.setenv("LC_TIME", "C")
    environment = await in_child(job(), MEMORY, (), environment_of, None)
    assert not [value for value in environment.values() if value.startswith("hidden")]
    assert environment["LC_TIME"] == "C" and environment["PATH"] == os.environ["PATH"]
    assert environment["OMP_NUM_THREADS"] == "1"


@pytest.mark.linux
async def test_too_much_memory_is_refused() -> None:
    with pytest.raises(TooCostly, match="too much memory"):
        await in_child(job(), MEMORY, (), bytes, 2 * MEMORY)
    assert not children()


async def test_too_much_time_is_refused_and_ends_the_process() -> None:
    with pytest.raises(TooCostly, match="takes too long"):  # once the process has ended
        await in_child(job(0.5), MEMORY, (), hang)


@pytest.mark.linux
@pytest.mark.parametrize("work", [hang, hang_in_another])
async def test_child_and_its_own_children_end_with_the_caller(work: Callable[..., None]) -> None:
    calling = asyncio.create_task(in_child(job(), MEMORY, (), work))
    wanted = 2 if work is hang_in_another else 1
    await soon(lambda: len(children()) == wanted)
    begun = children()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    await soon(lambda: not any(_lives(pid) for pid in begun))


STUDIO = """
import asyncio
from studio.work import in_child
from studio.work import Job
from tests.studio.work.hanging import hang_in_another
asyncio.run(in_child(Job(60.0, "", ""), 2**30, (), hang_in_another))
"""


@pytest.mark.linux
async def test_child_ends_with_a_killed_studio() -> None:
    studio = subprocess.Popen([sys.executable, "-c", STUDIO])
    try:
        await soon(lambda: len(children(studio.pid)) == 2)
        begun = children(studio.pid)
    finally:
        studio.send_signal(signal.SIGKILL)
        studio.wait()
    await soon(lambda: not any(_lives(pid) for pid in begun))


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False

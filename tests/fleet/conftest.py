"""One Ray instance for all tests that need it: a studio with two replicas behind two speech processes."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import pytest

from fleet import start
from fleet.start import fleet_joiner
from launch.startup import _start_engine
from studio.settings import Settings
from tests.fleet.frontends.several import Several, several

# Ray reads its environment when it is first imported, in whichever test.
os.environ.update(start.ENVIRONMENT | {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)})


@pytest.fixture(scope="session")
def fleet_settings(quick_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return Settings(
        model=str(quick_checkpoint),
        home=str(tmp_path_factory.mktemp("home")),
        voices=str(tmp_path_factory.mktemp("voices")),
        device="cpu",
        engines=2,
        max_rows=2,
        max_waiting=4,
        threads=1,
    )


@pytest.fixture(scope="session")
def studio(fleet_settings: Settings) -> Iterator[Several]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start, "DRAIN_SECONDS", 0.5)  # less than a long take needs: it has to move
        with several(fleet_settings, fleet_joiner, _start_engine(fleet_settings)) as studio:
            yield studio
    assert not processes_of("ray"), "all ends with the fleet"


def processes_of(word: str) -> list[int]:
    """Children of this process, and theirs, with a word in their command."""
    pids, parents = [], {os.getpid()}
    for entry in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            parent = int(entry.joinpath("stat").read_bytes().rpartition(b")")[2].split()[1])
            command = entry.joinpath("cmdline").read_bytes()
        except OSError:
            continue
        if parent in parents:
            parents.add(int(entry.name))
            if word.encode() in command:
                pids.append(int(entry.name))
    return pids

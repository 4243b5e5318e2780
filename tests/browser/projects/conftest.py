"""The studio for the tests of the Projects area."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from studio.settings import Settings
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve


@pytest.fixture(scope="module")
def studio(voices_folder: Path, ports: tuple[int, int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = str(tmp_path_factory.mktemp("home"))
    settings = Settings(model="test/model", voices=str(voices_folder), home=home, share_days=30)
    with serve(settings, FakeEngine.start, page=True, port=ports[0]) as served:
        yield served

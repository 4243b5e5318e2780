"""The output of `make bench` without a browser."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from benchmarks import bench, page
from benchmarks.common import chromium
from benchmarks.common.chromium import NoChromium


def test_missing_browser_is_explained_in_the_table_and_null_in_json(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(os, "defpath", "")
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path))
    with pytest.raises(NoChromium, match="scripts/programs") as missing:
        page.measure_in_chromium(1)
    report = bench.Report("fry", "cpu", "Linux", 2, 3.5, 41.0, 50.0, 0.18, 0.2, 815.0, 16, None)
    table = bench.table(report, str(missing.value))
    assert "first audio over HTTP" in table and "no Chromium" in table.splitlines()[-1]
    assert json.loads(json.dumps(asdict(report)))["page"] is None


def test_chromium_that_does_not_start_is_skipped_for_one_in_the_system_path(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stub, real = tmp_path / "stub", tmp_path / "real"
    for folder, name, status in ((stub, "chromium", 1), (real, "google-chrome", 0)):
        folder.mkdir()
        (folder / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(stub))
    monkeypatch.setattr(os, "defpath", str(real))
    assert chromium.find() == shutil.which("google-chrome", path=str(real))

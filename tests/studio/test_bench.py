"""What `make bench` tells where there is no browser."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from benchmarks import bench, page


def test_without_a_browser_the_table_says_why_and_the_json_has_null(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(page.NoBrowser, match="install one of chromium") as missing:
        page.measure_in_chromium(1)
    report = bench.Report("fry", "cpu", "Linux", 2, 3.5, 41.0, 50.0, 0.18, 0.2, 815.0, 16, None)
    table = bench.table(report, str(missing.value))
    assert "first audio over HTTP" in table and "no Chromium" in table.splitlines()[-1]
    assert json.loads(json.dumps(asdict(report)))["page"] is None

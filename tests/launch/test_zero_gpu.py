"""The start on ZeroGPU refuses settings that cannot be served there; tests/browser/hosting runs all of it."""

from __future__ import annotations

import pytest

from launch import startup


@pytest.mark.posix  # as ZeroGPU is
@pytest.mark.parametrize(
    ("name", "value"), [("STUDIO_PAGE", "0"), ("STUDIO_ENGINES", "2"), ("STUDIO_RAY_ADDRESS", "auto")]
)
def test_it_serves_the_page_with_one_engine(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, value: str
) -> None:
    monkeypatch.setenv("SPACES_ZERO_GPU", "stand-in")
    monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.argv", ["app.py"])
    assert startup.main() == 1
    error = capsys.readouterr().err
    assert name in error and "cannot be used on ZeroGPU" in error

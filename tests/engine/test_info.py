"""An engine's information about its machine: its GPU, even if the engine runs on the CPU, or none."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from engine import Engine, EngineConfig, Gpu
from engine.runtime import setup


@pytest.mark.parametrize("has_gpu", [True, False])
def test_an_engine_on_a_cpu_reports_the_machines_gpu(
    tiny_checkpoint: Path, monkeypatch: pytest.MonkeyPatch, has_gpu: bool
) -> None:
    card = SimpleNamespace(name="A card", total_memory=24 * 2**30)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: card)
    engine = Engine.start(EngineConfig(model=str(tiny_checkpoint), device="cpu", max_rows=1, threads=1))
    try:
        assert engine.info.gpu == (Gpu("A card", 24 * 2**30) if has_gpu else None)
    finally:
        engine.stop()


@pytest.mark.parametrize(
    ("warned", "programs", "device", "reason"),
    [
        (
            "The NVIDIA driver on your system is too old\n(found version 11040).",
            (),
            "",
            "too old (found version 11040)",
        ),
        ("", ("nvidia-smi",), "", "PyTorch is installed without CUDA, which the NVIDIA GPU here needs: install it"),
        ("", (), "0000:01:00.0 0x030200 0x10de", "PyTorch is installed without CUDA"),
        ("", (), "0000:c5:00.0 0x030000 0x1002", "PyTorch is installed without ROCm, which the AMD GPU here needs"),
        ("", (), "0000:03:00.0 0x030000 0x8086", "PyTorch is installed without XPU, which the Intel GPU here needs"),
        ("", (), "0000:00:02.0 0x030000 0x8086", ""),
        ("", (), "0000:00:1f.3 0x040300 0x10de", ""),
    ],
)
@pytest.mark.parametrize("build", [None, "13.0"])
def test_a_gpu_that_cannot_be_used_is_explained(
    warned: str,
    programs: tuple[str, ...],
    device: str,
    reason: str,
    build: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def is_available() -> bool:
        if warned:
            warnings.warn(warned, stacklevel=1)
        return False

    if device:
        address, kind, vendor = device.split()
        (tmp_path / address).mkdir()
        (tmp_path / address / "class").write_text(f"{kind}\n")
        (tmp_path / address / "vendor").write_text(f"{vendor}\n")
    setup._warn_once.cache_clear()
    monkeypatch.setattr(setup, "PCI_DEVICES", tmp_path)
    monkeypatch.setattr(torch.cuda, "is_available", is_available)
    monkeypatch.setattr(torch.version, "cuda", build)
    monkeypatch.setattr("shutil.which", lambda program: program if program in programs else None)
    assert setup.place_of(EngineConfig(model="any")).device.type == "cpu"
    if build and "without CUDA" in reason:
        reason = "PyTorch finds no driver for the NVIDIA GPU here: install the driver, or start the container with it"
    assert (reason in caplog.text) if reason else not caplog.text

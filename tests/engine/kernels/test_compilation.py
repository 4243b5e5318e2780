"""Every kernel compiles for the supported GPUs: the interpreter accepts code that the compiler rejects."""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

triton = pytest.importorskip("triton")

ROOT = Path(__file__).parents[3]
MARKERS = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fish-voice-studio" / "compiled"
"""Markers of sources that have compiled: compiling takes minutes, and the result does not change."""
MAX_MARKERS = 100


@functools.cache
def sources() -> str:
    """Return a digest of the compiling program's imports and of the compiler's versions."""
    digest = hashlib.sha256(f"{triton.__version__} {torch.__version__} {sys.version}".encode())
    for path in sorted(imported_files(ROOT / "tests/engine/kernels/compiling.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:32]


def imported_files(program: Path) -> set[Path]:
    """Return the program and all project files it imports, directly or indirectly, except engine/__init__.py."""
    files, pending = set[Path](), [program]
    while pending:
        path = pending.pop()
        if path in files or path == ROOT / "engine/__init__.py" or not path.is_file():
            continue
        files.add(path)
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.ImportFrom) and node.module:
                modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                folders = [ROOT / module.replace(".", "/") for module in modules]
                pending += [path for folder in folders for path in (folder.with_suffix(".py"), folder / "__init__.py")]
    return files


def compile_kernels(tmp_path: Path, how: str, capability: int) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(tmp_path)
    command = [sys.executable, "-m", "tests.engine.kernels.compiling", how, str(capability)]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize("capability", [80, 90, 120])  # 80 includes 86 and 89, whose PTX is the same
def test_every_kernel_compiles_for_a_gpu(tmp_path: Path, capability: int) -> None:
    marker = MARKERS / f"sm_{capability}-{sources()}"
    if marker.exists():
        return
    assert int(compile_kernels(tmp_path, "here", capability)) > 80
    MARKERS.mkdir(parents=True, exist_ok=True)
    marker.touch()
    for old in sorted(MARKERS.iterdir(), key=lambda path: path.stat().st_mtime)[:-MAX_MARKERS]:
        old.unlink(missing_ok=True)


def test_kernels_compiled_by_other_processes_are_found(tmp_path: Path) -> None:
    compile_kernels(tmp_path, "elsewhere", 90)

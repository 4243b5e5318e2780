"""Every kernel compiles for the supported GPUs: the interpreter accepts code that the compiler rejects."""

from __future__ import annotations

import ast
import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.records import Record, digest

triton = pytest.importorskip("triton")

ROOT = Path(__file__).parents[3]
RECORD = Record(Path(__file__).parent / "compiled.json")
"""The sources that have compiled, by capability, and in other processes. Compiling takes minutes and its result does
not change, so it is repeated only for other sources, and written here, to be committed with them."""


class WithoutDocstrings(ast.NodeTransformer):
    """Drops strings that stand alone, which like comments change nothing."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node


@functools.cache
def sources() -> str:
    """Return a digest of the compiling program's imports and of the compiler's version."""
    files = sorted(imported_files(ROOT / "tests/engine/kernels/compiling.py"))
    trees = (ast.dump(WithoutDocstrings().visit(ast.parse(path.read_bytes()))) for path in files)
    return digest(f"{triton.__version__} {sys.version_info[:2]}", *trees)


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
    if RECORD.has(str(capability), sources()):
        return
    assert int(compile_kernels(tmp_path, "here", capability)) > 80
    RECORD.add(**{str(capability): sources()})


def test_kernels_compiled_by_other_processes_are_found(tmp_path: Path) -> None:
    if RECORD.has("elsewhere", sources()):
        return
    compile_kernels(tmp_path, "elsewhere", 90)
    RECORD.add(elsewhere=sources())

"""The house rules that a program can check: who may import whom, sizes, first lines, and no swallowed errors."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import distributions
from pathlib import Path

import pytest

import engine

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("engine", "studio", "training", "benchmarks", "tests")
MAX_FILE_LINES = 400
MAX_PAGE_FILE_LINES = 300
MAX_FUNCTION_LINES = 60

ENGINE_MAY_NOT = {"gradio", "fastapi", "starlette", "uvicorn", "pydantic", "sqlite3", "sqlite_utils", "studio"}
BROAD_EXCEPT_ALLOWED = {
    "studio/background.py": "work that nobody waits for must not end unheard",
    "engine/runtime/loop.py": "whatever kills the engine's thread is told to every caller",
    "engine/runtime/clip_encoder.py": "whatever goes wrong with a clip is told to those who brought it",
    "engine/runtime/codec_thread.py": "whatever kills the codec's thread is told to every caller",
    "engine/model/tokenizer.py": "the tokenizer library raises bare Exception for every malformed file",
}


def sources(*packages: str) -> list[Path]:
    found = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    return [*found, ROOT / "app.py"] if "app" in packages and (ROOT / "app.py").exists() else found


ALL = sources(*PACKAGES, "app")
PRODUCT = sources("engine", "studio", "app")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, top_level_only: bool = False) -> Iterator[tuple[str, str | None]]:
    """(module, name) for every import: name is None for `import module`; type-checking blocks count too."""
    nodes = tree_of(path).body if top_level_only else ast.walk(tree_of(path))
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}: imports are written in full, not relative"
            yield from ((node.module or "", alias.name) for alias in node.names)


def imported_modules(path: Path) -> set[str]:
    """Our own modules that a file imports at its top, submodules in the place of names where they are modules."""
    known = {module_of(other) for other in PRODUCT}
    found = set()
    for module, name in imports(path, top_level_only=True):
        full = f"{module}.{name}" if name else module
        found |= {full if full in known else module} & known
    return found


@pytest.mark.parametrize("path", sources("engine"), ids=name_of)
def test_the_engine_knows_no_web_no_page_and_no_database(path: Path) -> None:
    assert not {module.partition(".")[0] for module, _ in imports(path)} & ENGINE_MAY_NOT


@pytest.mark.parametrize("path", sources("studio", "app"), ids=name_of)
def test_the_studio_uses_only_the_engines_public_names(path: Path) -> None:
    for module, name in imports(path):
        assert not module.startswith("engine."), f"{module}: import from engine itself"
        if module == "engine":
            assert name in engine.__all__


@pytest.mark.parametrize("path", sources("studio"), ids=name_of)
def test_page_and_api_do_not_know_each_other(path: Path) -> None:
    folder = path.relative_to(ROOT).parts[1]
    other = {"ui": "studio.api", "api": "studio.ui"}.get(folder)
    for module, _ in imports(path):
        assert other is None or not f"{module}.".startswith(f"{other}.")
        if folder not in ("ui", "api"):
            assert not module.startswith(("studio.ui", "studio.api"))


@pytest.mark.parametrize("path", sources("engine", "studio", "training"), ids=name_of)
def test_nothing_imports_app_or_tests(path: Path) -> None:
    assert not {module.partition(".")[0] for module, _ in imports(path)} & {"app", "tests", "benchmarks"}


def required(*files: str) -> set[str]:
    """Names of the packages that requirement files name, in lower case with hyphens."""
    lines = [line for file in files for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
    names = [re.match(r"[A-Za-z0-9_.-]+", line) for line in lines]
    return {canonical(name.group()) for name in names if name}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def distributions_by_package() -> dict[str, set[str]]:
    """By the files that they say they have: Python 3.10's own list knows fewer."""
    found: dict[str, set[str]] = {}
    for distribution in distributions():
        for file in distribution.files or ():
            found.setdefault(file.parts[0].removesuffix(".py"), set()).add(distribution.metadata["Name"])
    return found


@pytest.mark.parametrize(
    ("paths", "files"),
    [
        (PRODUCT, ("requirements.txt",)),
        (sources("tests"), ("requirements.txt", "requirements-test.txt", "requirements-reference.txt")),
    ],
    ids=["product", "tests"],
)
def test_every_package_that_is_imported_is_required_by_name(paths: list[Path], files: tuple[str, ...]) -> None:
    """What merely comes along with another package may go again with its next version."""
    known = required(*files)
    owners = distributions_by_package()
    own = {*PACKAGES, "app"}
    for path in paths:
        for module in {module.partition(".")[0] for module, _ in imports(path)} - own - sys.stdlib_module_names:
            names = {canonical(name) for name in owners.get(module, {module})}
            # They come with torch where there is a GPU, and with ZeroGPU, and are only imported there.
            by_hand = module in ("triton", "spaces")
            assert names & known or by_hand, f"{name_of(path)} imports {module}"


def test_imports_have_no_cycles() -> None:
    graph = {module_of(path): imported_modules(path) for path in PRODUCT}
    packages = {module_of(path) for path in PRODUCT if path.name == "__init__.py"}
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " -> ".join([*way[way.index(module) :], module])
        if module in done:
            return
        for other in sorted(graph[module]):
            if not (other in packages and module.startswith(f"{other}.")):
                visit(other, (*way, module))
        done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("path", ALL, ids=name_of)
def test_a_file_says_its_duty_in_its_first_line(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    if path.name == "__init__.py" and not lines:
        return
    assert ast.get_docstring(tree_of(path)), "no module docstring"
    assert lines[0].startswith('"""'), "the docstring starts on the first line"
    assert len(lines[0]) > 20


@pytest.mark.parametrize("path", ALL, ids=name_of)
def test_files_and_functions_stay_small(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= MAX_FILE_LINES
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= MAX_FUNCTION_LINES, f"{node.name} has {length} lines"


@pytest.mark.parametrize(
    "path", sorted(each for each in (ROOT / "assets/page").rglob("*.*") if each.is_file()), ids=name_of
)
def test_the_pages_files_stay_small_and_say_their_duty(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= MAX_PAGE_FILE_LINES
    comment = {".js": "// ", ".css": "/* "}.get(path.suffix, "")
    assert lines[0].startswith(comment)
    assert len(lines[0]) > 20 or not comment


@pytest.mark.parametrize("path", PRODUCT, ids=name_of)
def test_no_error_is_swallowed_blindly(path: Path) -> None:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ExceptHandler) and name_of(path) not in BROAD_EXCEPT_ALLOWED:
            assert not _is_broad(node.type) or _raises_again(node), f"line {node.lineno} catches everything"


def _is_broad(caught: ast.expr | None) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(_is_broad(part) for part in caught.elts)
    return caught is None or (isinstance(caught, ast.Name) and caught.id in ("Exception", "BaseException"))


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _blocking_names() -> set[str]:
    """Functions that say in their docstring that they block, and those that call them; only names with one meaning.

    Generators do so only once they are iterated, and are left out.
    """
    named: dict[str, list[ast.FunctionDef | ast.AsyncFunctionDef]] = {}
    for path in PRODUCT:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                named.setdefault(node.name, []).append(node)
    single = {
        name: nodes[0]
        for name, nodes in named.items()
        if len(nodes) == 1 and isinstance(nodes[0], ast.FunctionDef)
        if not any(isinstance(each, ast.Yield | ast.YieldFrom) for each in ast.walk(nodes[0]))
    }
    blocking = {name for name, node in single.items() if re.search(r"\b[Bb]locking\b", ast.get_docstring(node) or "")}
    while (
        more := {
            name for name, node in single.items() if {_name_of_call(call) for call in _called_at_once(node)} & blocking
        }
        - blocking
    ):
        blocking |= more
    return blocking


def _name_of_call(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _called_at_once(node: ast.AST) -> Iterator[ast.Call]:
    """Calls that a coroutine makes itself: not what it awaits, nor what functions inside it do."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        awaited = isinstance(node, ast.Await) and child is node.value
        if isinstance(child, ast.Call) and not awaited:
            yield child
        yield from _called_at_once(child)


def test_a_coroutine_calls_nothing_that_blocks() -> None:
    """What says "Blocking" in its docstring is handed to a thread, so that no stream stands still meanwhile."""
    blocking = _blocking_names()
    assert {"knows", "take_in", "export_voice"} < blocking
    found = [
        f"{name_of(path)}:{call.lineno} {name}"
        for path in PRODUCT
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.AsyncFunctionDef)
        for call in _called_at_once(node)
        if (name := _name_of_call(call)) in blocking
    ]
    assert not found


def test_the_list_of_broad_excepts_is_not_longer_than_needed() -> None:
    for name in BROAD_EXCEPT_ALLOWED:
        handlers = [node for node in ast.walk(tree_of(ROOT / name)) if isinstance(node, ast.ExceptHandler)]
        assert sum(_is_broad(node.type) for node in handlers) == 1, name


def test_the_public_names_are_listed_once_in_order_and_exist() -> None:
    assert list(engine.__all__) == sorted(set(engine.__all__))
    for name in engine.__all__:
        assert hasattr(engine, name)

"""The project's rules that a program can check: permitted imports, sizes, first lines, and no swallowed errors."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.metadata import distributions
from pathlib import Path

import engine

ROOT = Path(__file__).resolve().parent.parent
PRODUCT_PACKAGES = ("audio", "engine", "fleet", "launch", "longform", "manuscript", "protocols", "speechtext", "studio")
PACKAGES = (*PRODUCT_PACKAGES, "training", "benchmarks", "tests")
MAX_FILE_LINES = 600
MAX_PAGE_FILE_LINES = 300
MAX_FUNCTION_LINES = 60
LIBRARIES = {"audio": {"speechtext"}, "manuscript": {"speechtext"}, "speechtext": set[str]()}
"""Packages that know no studio, no web and no database, with those of ours that they may import."""

ENGINE_MAY_NOT = {"gradio", "fastapi", "starlette", "uvicorn", "pydantic", "sqlite3", "sqlite_utils", "studio"}
RAY = {"ray", "grpc"}
DISTRIBUTIONS = {"grpc": "grpcio"}
"""Differing names of packages that need not be installed here."""
BROAD_EXCEPT_ALLOWED = {
    "studio/supervisor.py": "a background failure must not go unnoticed",
    "studio/api/routes/batch.py": "a defect that one item meets is told in its result, and the others keep theirs",
    "studio/engine_host.py": "whatever keeps a model from loading, the previous one is loaded again",
    "speechtext/reading.py": "whatever the library of readings fails at, the text is spoken as written",
    "studio/ui/blocks.py": "whatever goes wrong in an endpoint is logged, and told to its caller without paths",
    "fleet/fleet_engine.py": "every error that ends a take goes to its listener",
    "fleet/start.py": "Ray raises bare Exception when its own start took too long",
    "engine/runtime/loop.py": "every error that kills the engine's thread goes to all callers",
    "engine/runtime/clip_encoder.py": "every error with a clip goes to its caller",
    "engine/runtime/codec_threads.py": "every error that kills a codec thread goes to all callers",
    "engine/checkpoint/tokenizer_files.py": "the tokenizer library raises bare Exception for every malformed file",
}


def sources(*packages: str) -> list[Path]:
    paths = [path for package in packages for path in sorted((ROOT / package).rglob("*.py"))]
    return [*paths, ROOT / "app.py"] if "app" in packages and (ROOT / "app.py").exists() else paths


ALL = sources(*PACKAGES, "app")
PRODUCT = sources(*PRODUCT_PACKAGES, "app")
PAGE_ROOT = ROOT / "assets/page"
PAGE = sorted(path for path in PAGE_ROOT.rglob("*") if path.is_file() and path.suffix not in (".png", ".json"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def imports(path: Path) -> list[tuple[str, str | None]]:
    """(module, name) for every import: name is None for `import module`; type-checking blocks count too."""
    imports: list[tuple[str, str | None]] = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            imports += [(alias.name, None) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}: imports are written in full, not relative"
            imports += [(node.module or "", alias.name) for alias in node.names]
    return imports


def test_engine_imports_no_web_page_or_database_packages() -> None:
    assert not [
        f"{name_of(path)} imports {module}"
        for path in sources("engine")
        for module, _ in imports(path)
        if module.partition(".")[0] in ENGINE_MAY_NOT
    ]


def test_libraries_import_no_studio_engine_web_or_database() -> None:
    ours = {*PACKAGES, "app"}
    assert not [
        f"{name_of(path)} imports {module}"
        for library, allowed in LIBRARIES.items()
        for path in sources(library)
        for module, _ in imports(path)
        if module.partition(".")[0] in (ours | ENGINE_MAY_NOT) - {library, *allowed}
    ]


def test_other_packages_use_only_the_engines_public_names() -> None:
    others = [path for path in PRODUCT if not name_of(path).startswith("engine/")]
    used = [(path, module, name) for path in others for module, name in imports(path)]
    assert not [
        f"{name_of(path)}: {module}.{name}"
        for path, module, name in used
        if module.startswith("engine.") or (module == "engine" and name not in engine.__all__)
    ]


def test_nothing_imports_the_launch_and_only_it_imports_additions_to_the_studio() -> None:
    """Whatever adds itself to the studio by `register` can leave it without a change elsewhere."""
    additions = {
        "protocols": ("launch", "protocols", "fleet/frontends"),
        "longform": ("launch", "longform"),
        "launch": ("launch", "app.py"),
    }
    assert not [
        f"{name_of(path)} imports {module}"
        for path in PRODUCT
        for module, _ in imports(path)
        for addition, importers in additions.items()
        if f"{module}.".startswith(f"{addition}.") and not name_of(path).startswith(importers)
    ]


def test_nothing_in_the_studio_names_the_long_form() -> None:
    assert not [name_of(path) for path in sources("studio") if re.search("longform", path.read_text("utf-8"))]


def test_one_adapter_names_zerogpu() -> None:
    named = [name_of(path) for path in (*PRODUCT, *PAGE) if re.search("zero.?gpu", path.read_text("utf-8"), re.I)]
    assert sorted(named) == ["assets/page/client/gradio-speech.js", "launch/startup.py", "launch/zero_gpu.py"]


def test_only_the_fleet_imports_ray_and_only_the_launch_imports_the_fleet() -> None:
    """It depends only on the engine; its front ends import the studio's API and protocols. Benchmarks may import it."""
    offenders = []
    for path in [*PRODUCT, *sources("benchmarks")]:
        package = "/".join(path.relative_to(ROOT).parent.parts)
        special = {"fleet": {"studio", "protocols", "app", *ENGINE_MAY_NOT}, "fleet/frontends": {"app", *RAY}}
        may_import_fleet = ROOT / "benchmarks" / "fleet" in path.parents or ROOT / "launch" in path.parents
        forbidden = RAY if may_import_fleet else special.get(package, {*RAY, "fleet"})
        tops = {module.partition(".")[0] for module, _ in imports(path)}
        offenders += [f"{name_of(path)} imports {name}" for name in sorted(tops & forbidden)]
    assert not offenders


def test_page_and_api_do_not_import_each_other_and_only_the_launch_imports_both() -> None:
    """The front ends of a fleet may import the API too."""
    allowed = {"frontends": {"api"}}
    assert not [
        f"{name_of(path)} imports {module}"
        for path in sources("studio", "fleet")
        for module, _ in imports(path)
        for other in {"api", "ui"} - allowed.get(path.parent.name, {path.relative_to(ROOT).parts[1]})
        if f"{module}.".startswith(f"studio.{other}.")
    ]


def test_the_engines_folders_import_in_one_direction() -> None:
    """As pictured in docs/structure.md: each folder imports only those listed before it here."""
    order = ["model", "codec", "kernels", "fused", "checkpoint", "runtime", "direct_engine"]
    order += ["expected_speed", "forced_logits", "upstream_parity", "model_survey", "model_check"]
    folders = [f"engine.{name}." for name in order]

    def rank(module: str) -> int:
        within = [folder for folder in folders if f"{module}.".startswith(folder)]
        return folders.index(max(within, key=len)) if within else -1

    assert not [
        f"{name_of(path)} imports {module}"
        for path in sources("engine")
        if rank(module_of(path)) >= 0
        for module, name in imports(path)
        if rank(f"{module}.{name}") > rank(module_of(path))
    ]


def test_app_and_tests_are_not_imported() -> None:
    assert not [
        f"{name_of(path)} imports {module}"
        for path in sources(*PRODUCT_PACKAGES, "training")
        for module, _ in imports(path)
        if module.partition(".")[0] in ("app", "tests", "benchmarks")
    ]


def required(*files: str) -> set[str]:
    """Names of the packages that requirement files name, in lower case with hyphens."""
    lines = [line for file in files for line in (ROOT / file).read_text(encoding="utf-8").splitlines()]
    names = [re.match(r"[A-Za-z0-9_.-]+", line) for line in lines]
    return {canonical(name.group()) for name in names if name}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


@cache
def distributions_by_package() -> dict[str, set[str]]:
    """Distributions by package, according to their recorded files."""
    owners: dict[str, set[str]] = {}
    for distribution in distributions():
        name = distribution.metadata["Name"]
        lines = (
            distribution.read_text("RECORD") or ""
        ).splitlines()  # `files` would take seconds to make a path of each
        for top in {re.split("[/,]", line, maxsplit=1)[0].removesuffix(".py") for line in lines}:
            owners.setdefault(top, set()).add(name)
    return owners


def not_required(paths: list[Path], *files: str) -> list[str]:
    """Imports of packages that requirement files do not name, except those that come with torch or with ZeroGPU."""
    known, owners = required(*files), distributions_by_package()
    own = {*PACKAGES, "app", "triton", "spaces", *sys.stdlib_module_names}
    return [
        f"{name_of(path)} imports {module}"
        for path in paths
        for module in sorted({module.partition(".")[0] for module, _ in imports(path)} - own)
        if not {canonical(name) for name in owners.get(module, {DISTRIBUTIONS.get(module, module)})} & known
    ]


def test_imported_packages_are_required_by_name() -> None:
    """An indirect dependency may disappear with the next version of the package that requires it."""
    files = (
        "requirements.txt",
        "requirements-fleet.txt",
        "requirements-mcp.txt",
        "requirements-test.txt",
        "requirements-reference.txt",
    )
    extra = {"fleet/": files[1], "protocols/mcp/": files[2]}
    assert not not_required([path for path in PRODUCT if not name_of(path).startswith(tuple(extra))], files[0])
    for folder, file in extra.items():
        assert not not_required([path for path in PRODUCT if name_of(path).startswith(folder)], files[0], file)
    # The programs of fish_apps run in environments of their own.
    assert not not_required([path for path in sources("tests") if path.parent.name != "fish_apps"], *files)


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """One cycle, as a list of names; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_imports_have_no_cycles() -> None:
    """In every folder, and between the packages, each file and each subfolder with its contents counts as one.

    Imports of and by a package's own `__init__` are ignored within it. Imports within functions count too.
    """
    files = {module_of(path): path.relative_to(ROOT).parts for path in PRODUCT}
    graphs: dict[str, dict[str, set[str]]] = {}
    for path in PRODUCT:
        own = path.relative_to(ROOT).parts
        for module, name in imports(path):
            other = files.get(f"{module}.{name}") or files.get(module) or own
            depth = next((at for at, (here, there) in enumerate(zip(own, other, strict=False)) if here != there), 0)
            if own != other and "__init__.py" not in (own[depth], other[depth]):
                graphs.setdefault("/".join(own[:depth]), {}).setdefault(own[depth], set()).add(other[depth])
    assert {"", "engine", "fleet", "studio", "studio/api", "studio/speech"} < graphs.keys()
    cycles = {folder: path_back for folder, graph in graphs.items() if (path_back := cycle(graph))}
    assert not cycles


SCRIPT_IMPORT = re.compile(r"""(?:\bfrom|^import|\bimport\()\s*["']([./][^"']*\.js)["']""", re.MULTILINE)


def test_the_pages_imports_have_no_cycles() -> None:
    """Including dynamic imports."""
    graph = {}
    for path in PAGE:
        if path.suffix == ".js":
            named = SCRIPT_IMPORT.findall(path.read_text(encoding="utf-8"))
            at = [PAGE_ROOT / name[6:] if name.startswith("/page/") else path.parent / name for name in named]
            graph[name_of(path)] = {name_of(script.resolve()) for script in at}
    assert len(graph) > 50 and sum(map(len, graph.values())) > 100
    assert not cycle(graph)


def test_names_of_public_classes_are_unique() -> None:
    """Unique within its package, so that a name is unambiguous without its path."""
    where: dict[tuple[str, str], list[str]] = {}
    for path in PRODUCT:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where.setdefault((name_of(path).partition("/")[0], node.name), []).append(name_of(path))
    twice = {name: paths for (_, name), paths in where.items() if len(paths) > 1}
    assert not twice


def test_first_line_of_a_file_states_its_purpose() -> None:
    """This includes packages: their first line states their contents."""
    faults = []
    for path in ALL:
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        if not (ast.get_docstring(tree_of(path)) and first.startswith('"""') and len(first) > 20):
            faults.append(name_of(path))
    assert not faults


def test_files_and_functions_stay_small() -> None:
    faults = []
    for path in ALL:
        if (length := len(path.read_text(encoding="utf-8").splitlines())) > MAX_FILE_LINES:
            faults.append(f"{name_of(path)} has {length} lines")
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = lines_of(node) - (lines_of(node.body[0]) if ast.get_docstring(node) else 0)
                if length > MAX_FUNCTION_LINES:
                    faults.append(f"{name_of(path)}: {node.name} has {length} lines besides its docstring")
    assert not faults


def lines_of(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def test_page_files_stay_small_and_state_their_purpose() -> None:
    faults = []
    for path in PAGE:
        lines = path.read_text(encoding="utf-8").splitlines()
        comment = {".js": "// ", ".css": "/* "}.get(path.suffix, "")
        if len(lines) > MAX_PAGE_FILE_LINES:
            faults.append(f"{name_of(path)} has {len(lines)} lines")
        if comment and not (lines[0].startswith(comment) and len(lines[0]) > 20):
            faults.append(f"{name_of(path)} does not say its duty in its first line")
    assert not faults


def test_errors_are_not_caught_broadly() -> None:
    assert not [
        f"{name_of(path)}:{node.lineno} catches everything"
        for path in PRODUCT
        if name_of(path) not in BROAD_EXCEPT_ALLOWED
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type) and not _raises_again(node)
    ]


def _is_broad(caught: ast.expr | None) -> bool:
    if isinstance(caught, ast.Tuple):
        return any(_is_broad(part) for part in caught.elts)
    return caught is None or (isinstance(caught, ast.Name) and caught.id in ("Exception", "BaseException"))


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _blocking_names() -> set[str]:
    """Functions whose docstring says that they block, and their callers; only names that are defined once.

    Generators block only when iterated, and are left out.
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
        if not any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(nodes[0]))
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
    """Calls that a coroutine makes itself, except awaited ones and those of nested functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Lambda | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        awaited = isinstance(node, ast.Await) and child is node.value
        if isinstance(child, ast.Call) and not awaited:
            yield child
        yield from _called_at_once(child)


def test_coroutines_do_not_call_blocking_functions() -> None:
    """Functions with "Blocking" in their docstring run in a thread, so that no stream stalls."""
    blocking = _blocking_names()
    assert {"knows", "take_in", "export_voice"} < blocking
    faults = {
        f"{name_of(path)} {name}"
        for path in PRODUCT
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.AsyncFunctionDef)
        for call in _called_at_once(node)
        if (name := _name_of_call(call)) in blocking
    }
    assert faults == {"studio/speech/plan.py plan_of"}  # only for short texts


def test_every_allowed_broad_except_is_used_once() -> None:
    for name in BROAD_EXCEPT_ALLOWED:
        nodes = ast.walk(tree_of(ROOT / name))
        assert sum(isinstance(node, ast.ExceptHandler) and _is_broad(node.type) for node in nodes) == 1, name


def test_the_public_names_are_listed_once_and_exist() -> None:
    assert len(set(engine.__all__)) == len(engine.__all__)
    for name in engine.__all__:
        assert hasattr(engine, name)

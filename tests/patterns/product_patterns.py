"""Finds every regular expression of the product, and the methods that apply it."""

from __future__ import annotations

import ast
import importlib
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from longform.library.replacements import TextReplacement
from manuscript import attribution, headings
from manuscript import documents as file_signatures
from manuscript.characters import PersonPatterns
from manuscript.han import HanNames

ROOT = Path(__file__).parents[2]
PACKAGES = ("audio", "engine", "fleet", "longform", "manuscript", "protocols", "speechtext", "studio")
TRUSTED = {"studio.ui.gradio_bundle"}
"""Modules whose patterns only meet files of an installed package."""
FLAGS_AT = {
    "compile": 1,
    "sub": 4,
    "subn": 4,
    "split": 3,
    "match": 2,
    "fullmatch": 2,
    "search": 2,
    "findall": 2,
    "finditer": 2,
}
"""The functions of ``re`` that take a pattern, with the index of their argument for flags."""
METHODS = frozenset(FLAGS_AT) - {"compile"}
BUILT: dict[str, Callable[[], object]] = {
    "TextReplacement.pattern": lambda: TextReplacement("A B", whole_words=True).pattern(),
    "PersonPatterns.__init__": lambda: PersonPatterns({"tall man"}),
    "HanNames.__init__": lambda: HanNames([("宝钗因笑道：", "花白鬍子的人說。")], ["宝钗因笑道："]),
    "_numbered": headings._numbered,
    "_places": lambda: attribution._places(["Anna", "Mrs. Reed"]),
    "check_signature": lambda: [re.compile(pattern, re.DOTALL) for pattern, _ in file_signatures._OTHERS],
    "rule": lambda: None,  # its results are in tables of modules, which are searched
    "_matches.check": lambda: None,  # patterns of settings, which their owner writes
}
"""Functions that build patterns from their arguments, and examples of what they build."""


@dataclass
class Use:
    """A pattern, where it is used, and the methods that apply it."""

    pattern: re.Pattern[Any]
    place: str
    methods: set[str] = field(default_factory=set)


class Product:
    """The modules of the product with their syntax trees."""

    def __init__(self) -> None:
        self.trees: dict[ModuleType, ast.Module] = {}
        for path in sorted(file for package in PACKAGES for file in (ROOT / package).rglob("*.py")):
            if path.stem != "__main__":
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
                if name in TRUSTED:
                    continue
                with warnings.catch_warnings(action="ignore"):  # of other packages
                    module = importlib.import_module(name)
                self.trees[module] = ast.parse(path.read_text(encoding="utf-8"))
        self.calls = {module: list(_calls(tree)) for module, tree in self.trees.items()}
        self._methods, self._other = _uses(self.trees)

    def patterns(self) -> list[Use]:
        """Each pattern once. Raises AssertionError for a pattern that cannot be found."""
        uses = dict[tuple[Any, int], Use]()
        for pattern, place, methods in (*self._in_tables(), *self._in_calls()):
            uses.setdefault((pattern.pattern, pattern.flags), Use(pattern, place)).methods |= methods
        return list(uses.values())

    def _in_tables(self) -> Iterator[tuple[re.Pattern[Any], str, set[str]]]:
        tables: list[tuple[object, ModuleType | None, str]] = [
            *((value, module, name) for module in self.trees for name, value in vars(module).items()),
            *((build(), None, name) for name, build in BUILT.items()),
        ]
        for table, module, name in tables:
            for pattern, attribute in _patterns_in(table, name, set()):
                yield (
                    pattern,
                    f"{module.__name__}.{name}" if module else name,
                    self._methods_of(module, attribute, pattern),
                )

    def _in_calls(self) -> Iterator[tuple[re.Pattern[Any], str, set[str]]]:
        for module, calls in self.calls.items():
            for function, call in calls:
                place = f"{module.__name__}.{function}"
                try:
                    pattern = _evaluated(call, module)
                except NameError:
                    assert not function or function in BUILT, f"add {place} to BUILT: it compiles {ast.unparse(call)}"
                    continue
                assert isinstance(call.func, ast.Attribute)
                if call.func.attr != "compile":
                    yield pattern, place, {call.func.attr}
                elif function:
                    yield pattern, place, set(METHODS)

    def _methods_of(self, module: ModuleType | None, name: str, pattern: re.Pattern[Any]) -> set[str]:
        """All methods if the pattern is passed on or in a table."""
        if module and getattr(module, name, None) is not pattern:
            return set(METHODS)
        owners = [owner for owner in self.trees if not module or getattr(owner, name, None) is pattern]
        exact = owners if module else [owner for owner in owners if name in BUILT and hasattr(owner, name)]
        if any(name in self._other[owner] for owner in exact):
            return set(METHODS)
        return {method for owner in owners for method in self._methods[owner].get(name, ())} or set(METHODS)


def _calls(tree: ast.AST, inside: str = "") -> Iterator[tuple[str, ast.Call]]:
    """Calls of functions of ``re`` with the name of the function around them."""
    for node in ast.iter_child_nodes(tree):
        is_scope = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        name = f"{inside}.{node.name}".strip(".") if is_scope else inside  # type: ignore[attr-defined]
        assert not (isinstance(node, ast.ImportFrom) and node.module == "re"), "import re, so that its calls are found"
        function = node.func if isinstance(node, ast.Call) else None
        if isinstance(function, ast.Attribute) and _name(function.value) == "re" and function.attr in FLAGS_AT:
            assert isinstance(node, ast.Call)
            yield name, node
        yield from _calls(node, name)


def _evaluated(call: ast.Call, module: ModuleType) -> re.Pattern[Any]:
    """Raises NameError for a pattern that depends on local names."""
    assert isinstance(call.func, ast.Attribute)
    at = FLAGS_AT[call.func.attr]
    flags = [*call.args[at : at + 1], *(keyword.value for keyword in call.keywords if keyword.arg == "flags")]
    names = dict(vars(module))
    values = [eval(compile(ast.Expression(part), "", "eval"), names) for part in (call.args[0], *flags)]  # noqa: S307
    return values[0] if isinstance(values[0], re.Pattern) else re.compile(*values)


def _uses(
    trees: dict[ModuleType, ast.Module],
) -> tuple[dict[ModuleType, dict[str, set[str]]], dict[ModuleType, set[str]]]:
    """The methods called on each name, and the names used in any other way, by module."""
    methods, other = dict[ModuleType, dict[str, set[str]]](), dict[ModuleType, set[str]]()
    for module, tree in trees.items():
        methods[module], called = dict[str, set[str]](), set[int]()
        for node in ast.walk(tree):
            if not isinstance(node, ast.Attribute) or node.attr not in {*METHODS, "pattern"}:
                continue
            owner = node.value.func if isinstance(node.value, ast.Call) else node.value  # what a function has built
            if name := _name(owner):
                called.add(id(owner))
                methods[module].setdefault(name, set()).update({node.attr} & METHODS)
        other[module] = {
            name
            for node in ast.walk(tree)
            if (name := _name(node)) and id(node) not in called and isinstance(getattr(node, "ctx", None), ast.Load)
        }
    return methods, other


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _patterns_in(value: object, name: str, seen: set[int]) -> Iterator[tuple[re.Pattern[Any], str]]:
    """Patterns in tables and in objects of the product's classes, with the name that holds each; blank in tables."""
    if isinstance(value, re.Pattern):
        yield value, name
    elif id(value) in seen:
        return
    elif isinstance(value, (list, tuple, set, frozenset, dict)):
        seen.add(id(value))
        for item in list(value.values() if isinstance(value, dict) else value):
            yield from _patterns_in(item, "", seen)
    elif _is_ours(value) or _is_ours(type(value)):
        seen.add(id(value))
        held = {slot: getattr(value, slot, None) for slot in getattr(type(value), "__slots__", ())}
        for attribute, item in (dict(getattr(value, "__dict__", {})) | held).items():
            yield from _patterns_in(item, attribute, seen)


def _is_ours(value: object) -> bool:
    return isinstance(value, type) and value.__module__.partition(".")[0] in PACKAGES

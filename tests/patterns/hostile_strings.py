"""Derives hostile strings from a regular expression: runs that two of its parts accept, then a mismatch."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, product
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any

MANY = 16
"""Repetitions from which a bounded repeat counts as a run."""
GENERIC = "a1 \nA_-.,b\t\u00e9\u597d!([<\"'x\u00a0"
"""Characters that most classes accept or refuse, besides those named in the pattern."""
KINDS = 8
"""Distinct characters of a pattern that are tried in pairs: those that its parts tell apart."""
MISMATCHES = "\0", "\n"
Make = Callable[[int], str]
Node = tuple[Any, Any]
REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
LOOKS = (_constants.ASSERT, _constants.ASSERT_NOT)


class Hostile:
    """The hostile strings of one pattern."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self._bytes = isinstance(pattern.pattern, bytes)
        self._tree = _parser.parse(pattern.pattern, pattern.flags & ~(0 if self._bytes else re.UNICODE))
        self._accepted: dict[int, str] = {}
        self._alike: dict[str, str] = {}
        self._with_runs: dict[int, bool] = {}

    def runs(self, count: int) -> Iterator[Make]:
        """The first of them, which follow the pattern from its start."""
        for head, pump, tail in islice((run for run in self._runs() if run[1]), count):
            yield _maker(head, pump, tail)

    def __iter__(self) -> Iterator[Make]:
        """Functions that make a string of about the given length."""
        seen = set[tuple[str, str, str]]()
        for head, pump, tail in (*self._runs(), *self._pairs()):
            if pump and (head, pump, tail) not in seen:
                seen.add((head, pump, tail))
                yield _maker(head, pump, tail)

    @cached_property
    def _characters(self) -> str:
        named = dict.fromkeys(chr(code) for node in _nodes(self._tree) for code in _codes(node))
        first = list(islice(named, 40))
        return "".join(
            dict.fromkeys([*GENERIC, *first, *(letter.swapcase() for letter in first if len(letter.swapcase()) == 1)])
        )

    @cached_property
    def _kinds(self) -> str:
        """One character for each set of atoms that accept it; those that runs accept come first."""
        runs = {id(node) for repeat in _nodes(self._tree) if _is_run(repeat) for node in _nodes(repeat[1][2])}
        accepted = Counter[str]()  # by the characters: many atoms accept the same ones
        for node in _nodes(self._tree):
            if _is_atom(node):
                accepted[self._of(node)] += 100 if id(node) in runs else 1
        by_atoms = dict[tuple[str, ...], tuple[int, str]]()
        for letter in self._characters:
            accepting = tuple(letters for letters in accepted if letter in letters)
            by_atoms.setdefault(accepting, (-sum(accepted[letters] for letters in accepting), letter))
        return "".join(letter for _, letter in sorted(by_atoms.values(), key=lambda pair: pair[0])[:KINDS])

    def _pairs(self) -> Iterator[tuple[str, str, str]]:
        for letter in self._kinds:
            yield "", letter, "\0"
        for one, other in product(self._kinds, repeat=2):
            if one != other:
                yield one, other, "\0"
                yield "\n" + one, other, "\0"
                yield "", one + other, "\0"

    def _runs(self) -> Iterator[tuple[str, str, str]]:
        for head, run, following in self._walk(list(self._tree), [""], []):
            body = [self._of(node) for node in _nodes(run[1][2]) if _is_atom(node)]
            after = [self._of(node) for node in following]
            shared = (letter for inside in body for accepted in after for letter in inside if letter in accepted)
            pumps = dict.fromkeys([*islice(shared, 4), *(inside[:1] for inside in body[:3])])
            pumps |= dict.fromkeys(islice(self._examples(list(run[1][2])), 3))
            for pump in pumps:
                for tail in MISMATCHES:
                    yield head, pump, tail
                if head:
                    yield "", head + pump, "\0"
                    yield "", pump + head, "\0"
            if head:
                yield "", head, "\0"

    def _walk(
        self, nodes: Sequence[Node], heads: list[str], following: list[Node]
    ) -> Iterator[tuple[str, Node, list[Node]]]:
        """Each run with a string that leads to it, and the atoms that can come after it."""
        with_runs = [at for at, node in enumerate(nodes) if self._has_run(node)]
        for at, node in enumerate(nodes[: with_runs[-1] + 1] if with_runs else ()):
            after = [*_first_atoms(nodes[at + 1 :]), *following] if at in with_runs else []
            if _is_run(node):
                for head in heads:
                    yield head, node, [*after, *_first_atoms(list(node[1][2]))]
            for part in _parts(node) if at in with_runs else ():
                inner = [*after, *(_first_atoms(part) if node[0] in REPEATS else [])]
                yield from self._walk(part, heads, inner)
            examples = list(dict.fromkeys(islice(self._examples([node]), 3))) or [""]
            heads = list(dict.fromkeys(head + example for head, example in product(heads, examples)))[:3]

    def _has_run(self, node: Node) -> bool:
        if id(node) not in self._with_runs:
            self._with_runs[id(node)] = _is_run(node) or any(self._has_run(n) for part in _parts(node) for n in part)
        return self._with_runs[id(node)]

    def _examples(self, nodes: Sequence[Node]) -> Iterator[str]:
        """Strings that these nodes match, roughly: the shortest one, and one with each optional part."""
        choices = [list(dict.fromkeys(islice(self._example(node), 3))) or [""] for node in nodes]
        yield "".join(choice[0] for choice in choices)
        yield "".join(choice[-1] for choice in choices)
        yield "".join(choice[min(1, len(choice) - 1)] for choice in choices)

    def _example(self, node: Node) -> Iterator[str]:
        kind, value = node
        if _is_atom(node):
            yield from self._of(node)[:2]
        elif kind in REPEATS:
            least, most, body = value
            for text in islice(self._examples(list(body)), 2):
                yield text * least
                yield text * min(most, least + 1)
        elif kind not in LOOKS or (kind is _constants.ASSERT and value[0] < 0):
            for part in _parts(node):
                yield from islice(self._examples(part), 2)

    def _of(self, node: Node) -> str:
        """The characters that this atom accepts."""
        if id(node) not in self._accepted and (key := repr(node)) in self._alike:
            self._accepted[id(node)] = self._alike[key]
        elif id(node) not in self._accepted:
            atom = _compiler.compile(_parser.SubPattern(self._tree.state, [node]), self._tree.state.flags)
            letters = self._characters
            self._accepted[id(node)] = self._alike[key] = "".join(
                letter
                for letter in letters
                if (not self._bytes or ord(letter) < 256)
                and atom.fullmatch(letter.encode("latin-1") if self._bytes else letter)
            )
        return self._accepted[id(node)]


def _maker(head: str, pump: str, tail: str) -> Make:
    return lambda size: head + pump * (size // len(pump)) + tail


def _is_atom(node: Node) -> bool:
    return node[0] in (_constants.LITERAL, _constants.NOT_LITERAL, _constants.ANY, _constants.IN)


def _is_run(node: Node) -> bool:
    return node[0] in REPEATS and node[1][1] >= MANY


def _codes(node: Node) -> Iterator[int]:
    kind, value = node
    if kind in (_constants.LITERAL, _constants.NOT_LITERAL):
        yield value
    elif kind is _constants.RANGE:
        yield value[0]
    elif kind is _constants.IN:
        for item in value:
            yield from _codes(item)


def _parts(node: Node) -> list[list[Node]]:
    """The sequences inside a node."""
    kind, value = node
    if kind in REPEATS:
        return [list(value[2])]
    if kind is _constants.BRANCH:
        return [list(part) for part in value[1]]
    if kind is _constants.SUBPATTERN:
        return [list(value[3])]
    if kind is _constants.ATOMIC_GROUP:
        return [list(value)]
    if kind in LOOKS:
        return [list(value[1])]
    if kind is _constants.GROUPREF_EXISTS:
        return [list(part) for part in value[1:] if part]
    return []


def _nodes(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        for part in _parts(node):
            yield from _nodes(part)


def _first_atoms(nodes: Sequence[Node]) -> list[Node]:
    """The atoms with which the sequence can begin; those after parts that may be empty too."""
    found = list[Node]()
    for node in nodes:
        if _is_atom(node):
            return [*found, node]
        for part in _parts(node):
            found += _first_atoms(part)
        if _parts(node) and node[0] not in LOOKS and not (node[0] in REPEATS and node[1][0] == 0):
            return found
    return found

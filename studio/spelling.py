"""Names in the environment that are nearly a setting's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def near_misses(names: Iterable[str], known: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each of the names that is nearly a known one, and that one. Names carry no prefix, so only a near miss of a long
    one can be told from a foreign variable.
    """
    known = set(known)
    for name in names:
        for setting in sorted(known) if name not in known else ():
            if len(setting) >= 5 and _near(name.upper().replace("-", "_"), setting):
                yield name, setting
                break


def _near(a: str, b: str) -> bool:
    """Whether one edit at most (replace, insert, delete, swap of neighbours) or underscores tell a from b."""
    if a.replace("_", "") == b.replace("_", ""):
        return True
    if abs(len(a) - len(b)) > 1:
        return False
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    a, b = a[start:], b[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[:2][::-1] and a[2:] == b[2:])

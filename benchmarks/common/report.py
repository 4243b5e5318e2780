"""A benchmark's results: a file that is complete after every stage, tables for people, one JSON object last."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any


class Report:
    """Results by name, written to ``out`` after each addition."""

    def __init__(self, out: Path | None) -> None:
        self.results: dict[str, Any] = {}
        self._out = out

    def add(self, results: Mapping[str, Any]) -> None:
        """Add results under their names and rewrite the file, completely or not at all."""
        self.results |= results
        if self._out is not None:
            self._out.parent.mkdir(parents=True, exist_ok=True)
            draft = self._out.with_name(self._out.name + ".new")
            draft.write_text(json.dumps(self.results, indent=1) + "\n")
            os.replace(draft, self._out)

    def close(self) -> None:
        """Print all results as the last line."""
        print(json.dumps(self.results), flush=True)


def percentile(values: Iterable[float], share: float, digits: int = 1) -> float | None:
    """The smallest value that at least this share of the values does not exceed, rounded; None without values."""
    ordered = sorted(values)
    return round(ordered[max(0, math.ceil(share * len(ordered)) - 1)], digits) if ordered else None


def spread(ms: Sequence[float]) -> dict[str, float | None]:
    """The median of milliseconds, the 99th percentile, and the worst."""
    return {"median_ms": percentile(ms, 0.5, 2), "p99_ms": percentile(ms, 0.99, 2), "worst_ms": percentile(ms, 1, 2)}


def table(title: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Print rows with the same names, a column each; nothing without rows."""
    if not rows:
        return
    cells = [list(rows[0]), *([_shown(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    print(f"\n{title}")
    for line in cells:
        print("  " + "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True)), flush=True)


def _shown(value: Any) -> str:
    return "-" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)

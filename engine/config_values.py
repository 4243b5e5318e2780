"""Checks values of a checkpoint's configuration files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any


def positive_number(tree: Mapping[str, Any], key: str) -> float:
    """A finite number above 0. Raises KeyError, TypeError, ValueError, OverflowError."""
    value = float(tree[key])
    if not 0 < value < math.inf:
        raise ValueError(f"{key} is {tree[key]!r}, expected a finite number above 0")
    return value


def whole_number(tree: Mapping[str, Any], key: str, least: int, most: int) -> int:
    """A whole number from ``least`` to ``most``. Raises KeyError, TypeError, ValueError, OverflowError."""
    value = int(tree[key])
    if value != tree[key] or not least <= value <= most:
        raise ValueError(f"{key} is {tree[key]!r}, expected a whole number from {least} to {most}")
    return value

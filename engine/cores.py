"""The number of cores this process may use."""

from __future__ import annotations

import os


def available_cores() -> int:
    """The number of usable cores: fewer than the machine has if a container or `taskset` restricts the process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def default_threads() -> int:
    """Threads per torch operation on a CPU: the engine and the codec work side by side, each on half of the cores."""
    return max(1, available_cores() // 2)

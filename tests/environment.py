"""Removes what a developer's environment says about a studio, so that the tests behave alike everywhere."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path

UNPREFIXED = frozenset({"MODEL", "PORT", "FISH_KVCACHE_ATTN", "API_KEYS", "LANG", "LANGUAGE", "TZ"})
PREFIXES = (
    "STUDIO_",
    "SPACE",
    "GRADIO_",
    "HF_TOKEN",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
    "HF_ENDPOINT",
    "OPENAI_",
    "FISH_",
    "LC_",
    "FORWARDED_ALLOW_IPS",
    "RAY_",
)
_BROWSERS = os.environ.get("PLAYWRIGHT_BROWSERS_PATH") or str(Path.home() / "Library/Caches/ms-playwright")
PROXIES: dict[str, str] = {}
"""The removed proxies, for the few tests that install a package."""


def clean(environment: MutableMapping[str, str] = os.environ) -> None:
    """Remove settings of studios, Spaces, Gradio, the hub and clients, proxies, and the locale; make forks safe."""
    for name in list(environment):
        if name.upper().endswith("_PROXY"):
            PROXIES[name] = environment.pop(name)
        elif name.upper() in UNPREFIXED or name.upper().startswith(PREFIXES):
            del environment[name]
    environment["LC_ALL"] = "C.UTF-8"
    environment["MKL_DISABLE_FAST_MM"] = "1"  # MKL's buffers can hang in a fork, which a test of ZeroGPU makes


def data_variables(folder: Path) -> dict[str, str]:
    """Variables with which the default STUDIO_HOME is below this folder, on every system."""
    variables = {"XDG_DATA_HOME": str(folder), "LOCALAPPDATA": str(folder)}
    if sys.platform == "darwin":
        variables |= {"HOME": str(folder), "PLAYWRIGHT_BROWSERS_PATH": _BROWSERS}
    return variables


@contextmanager
def unprivileged() -> Iterator[None]:
    """As another user of a POSIX system, since root may read and write everything."""
    is_root = os.getuid() == 0
    if is_root:
        os.setresuid(65534, 65534, 0)  # the real one too, for which access() answers
    try:
        yield
    finally:
        if is_root:
            os.setresuid(0, 0, 0)

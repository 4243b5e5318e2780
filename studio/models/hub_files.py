"""The required files of a repository on the Hugging Face Hub, and their place on this machine."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from studio.errors import SettingsError


@dataclass(frozen=True, slots=True)
class HubFiles:
    """The files of a repository to download."""

    repo: str
    names: re.Pattern[str]
    """Names of the files, without folders."""
    needed: frozenset[str]
    """Files that the repository must have."""
    last: str
    """The file that is written after all others: where it exists, everything does."""
    max_bytes: int
    """Maximum bytes of all files, regardless of the hub's figures."""
    without: str
    """A sentence for machines that cannot reach the hub."""
    resumes: bool = True
    """Whether the next attempt continues the files of a failed one; otherwise they are removed."""


def hub_endpoint() -> str:
    """The hub, or the mirror that the hub's own tools use. Raises SettingsError."""
    import httpx  # not needed to find the model of a start

    endpoint = os.environ.get("HF_ENDPOINT", "").rstrip("/") or "https://huggingface.co"
    try:
        url = httpx.URL(endpoint)
        is_address = url.scheme in ("http", "https") and bool(url.host) and (url.port or 0) < 2**16
    except httpx.InvalidURL:
        is_address = False
    if not is_address:
        raise SettingsError(f"HF_ENDPOINT={endpoint!r} is not an address such as https://huggingface.co")
    return endpoint


def check_endpoint() -> None:
    """Raise SettingsError for an address with which the hub's library cannot be imported."""
    if os.environ.get("HF_ENDPOINT"):
        hub_endpoint()


def hub_cache(repo: str) -> Path:
    """The folder of a repository in the hub's cache, which the hub's own tools use too. Raises SettingsError."""
    check_endpoint()
    from huggingface_hub.constants import HF_HUB_CACHE  # a quarter of a second to import

    return Path(HF_HUB_CACHE) / f"models--{repo.replace('/', '--')}"

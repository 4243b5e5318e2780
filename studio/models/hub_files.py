"""The required files of a repository on the Hugging Face Hub, and their place on this machine."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class HubFiles:
    """The files of a repository to download."""

    repo: str
    wanted: re.Pattern[str]
    """Names, without folders."""
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


def hub_cache(repo: str) -> Path:
    """The folder of a repository in the hub's cache, which the hub's own tools use too."""
    from huggingface_hub.constants import HF_HUB_CACHE  # a quarter of a second to import

    return Path(HF_HUB_CACHE) / f"models--{repo.replace('/', '--')}"

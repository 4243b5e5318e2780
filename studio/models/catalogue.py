"""The models that the studio offers, as data, and where a repository's files come from and are kept on this machine."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from studio import ASSETS
from studio.errors import SettingsError

_WANTED = re.compile(
    r"(speech_tokenizer/)?[A-Za-z0-9_-][A-Za-z0-9._-]*\.(safetensors|json)|(model|codec)\.pth|codec\.yaml"
    r"|tokenizer\.tiktoken|merges\.txt|README\.md"
)


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """A model that can be downloaded, or is bundled."""

    name: str
    """The name in commands and addresses."""
    title: str
    licence: str
    licence_url: str
    languages: tuple[str, ...]
    """ISO 639 codes, the best first."""
    clones: bool
    designs: bool = False
    """Whether it makes up voices from descriptions."""
    repo: str | None = None
    """The repository on the hub; None: the model is bundled."""
    former_repo: str | None = None
    """The repository that it was published in before: a download from there counts, and the name still works."""
    download_bytes: int = 0
    """Approximate."""
    needed: frozenset[str] = frozenset()
    """Required files besides the weights."""
    tree: dict[str, Any] = field(default_factory=dict)
    """Its config.json, as far as an engine reads it; blank for the bundled model."""
    more_languages: bool = False
    """Whether it speaks many more languages than those named."""

    @property
    def repos(self) -> tuple[str, ...]:
        return tuple(repo for repo in (self.repo, self.former_repo) if repo)

    @property
    def files(self) -> HubFiles:
        """The files to download."""
        assert self.repo is not None, "the bundled model is not downloaded"
        return HubFiles(
            self.repo,
            _WANTED,
            self.needed | {"config.json"},
            last="config.json",
            max_bytes=2 * self.download_bytes,
            without="Without the internet, copy the model into a folder on this machine and choose that folder.",
        )


BUNDLED_FOLDER = str(ASSETS / "fry")
_FILE = Path(__file__).with_name("catalogue.json")
CATALOGUE = TypeAdapter(tuple[CatalogueModel, ...]).validate_json(_FILE.read_bytes())
TREES = {model.name: model.tree for model in CATALOGUE}


def in_catalogue(name: str) -> CatalogueModel | None:
    """The model with this name or repository; None if it is not in the catalogue."""
    folded_name = name.strip().casefold()
    return next((model for model in CATALOGUE if folded_name in (model.name, *map(str.casefold, model.repos))), None)


@dataclass(frozen=True, slots=True)
class HubFiles:
    """The files of a repository to download."""

    repo: str
    names: re.Pattern[str]
    """Names of the files, with their folders in the repository."""
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
    import httpx  # imported late: choosing the model at start-up does not need it

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

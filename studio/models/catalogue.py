"""The models that the studio offers, as data, and where a repository's files come from and are kept on this machine."""

from __future__ import annotations

import io
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from engine import open_regular
from studio import ASSETS
from studio.errors import SettingsError

_WANTED = re.compile(
    r"(speech_tokenizer/)?[A-Za-z0-9_-][A-Za-z0-9._-]*\.(safetensors|json)|(model|codec)\.pth|codec\.yaml"
    r"|tokenizer\.tiktoken|merges\.txt|README\.md"
)
INDEX = "model.safetensors.index.json"
_INDEX_BYTES, _COMMIT_BYTES = 32 * 2**20, 64


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


def hub_cache(repo: str) -> Path:
    """The folder of a repository in the hub's cache, which the hub's own tools use too. Raises SettingsError."""
    hub_endpoint()  # the import fails for another address
    from huggingface_hub.constants import HF_HUB_CACHE  # a quarter of a second to import

    return Path(HF_HUB_CACHE) / f"models--{repo.replace('/', '--')}"


def installed_folder(model: CatalogueModel) -> Path | None:
    """The folder of a complete download by any program; None if there is none. Blocking."""
    if model.repo is None:
        return Path(BUNDLED_FOLDER)
    for cache in map(hub_cache, model.repos):
        folders = sorted((cache / "snapshots").glob("*"), key=lambda folder: folder.name != _newest(cache))
        if complete := next((folder for folder in folders if _is_complete(folder, model)), None):
            return complete
    return None


def snapshot(model: CatalogueModel, commit: str) -> Path:
    """The folder in which the files of a commit are kept, as by the hub's own tools."""
    assert model.repo is not None
    return hub_cache(model.repo) / "snapshots" / commit


def set_newest(model: CatalogueModel, commit: str) -> None:
    """Make a complete commit visible to the hub's tools. Blocking. Raises OSError."""
    assert model.repo is not None
    from studio.library.private_files import write_whole  # not needed to find a model

    ref = hub_cache(model.repo) / "refs" / "main"
    ref.parent.mkdir(parents=True, exist_ok=True)
    write_whole(ref, io.BytesIO(commit.encode()), is_private=False)  # replaces a link instead of following it


def _newest(cache: Path) -> str:
    try:
        with open_regular(cache / "refs" / "main") as file:
            return file.read(_COMMIT_BYTES).decode().strip()
    except (OSError, ValueError):
        return ""


def _is_complete(folder: Path, model: CatalogueModel) -> bool:
    """Whether a folder has all files; a killed program leaves only some of them, each complete."""
    if not all((folder / name).is_file() for name in model.files.needed):
        return False
    try:
        with open_regular(folder / INDEX) as file:
            index = json.loads(file.read(_INDEX_BYTES))
        return all((folder / name).is_file() for name in set(index["weight_map"].values()))
    except FileNotFoundError:
        return any((folder / name).is_file() for name in ("model.safetensors", "model.pth"))
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return False

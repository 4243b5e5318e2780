"""The models that the studio offers: where they are published, under which licence, and their sizes as data."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from studio.models.hub_files import HubFiles
from studio.paths import ASSETS

_WANTED = re.compile(
    r"[A-Za-z0-9_-][A-Za-z0-9._-]*\.(safetensors|json)|(model|codec)\.pth|codec\.yaml|tokenizer\.tiktoken|README\.md"
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
    repo: str | None = None
    """The repository on the hub; None: the model is bundled."""
    download_bytes: int = 0
    """Approximate."""
    needed: frozenset[str] = frozenset()
    """Required files besides the weights."""
    tree: dict[str, Any] = field(default_factory=dict)
    """Its config.json, as far as an engine reads it; blank for the bundled model."""
    more_languages: bool = False
    """Whether it speaks many more languages than those named."""

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
    return next(
        (model for model in CATALOGUE if folded_name in (model.name, (model.repo or model.name).casefold())), None
    )

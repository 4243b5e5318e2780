"""Finds the models of the catalogue that are complete on this machine."""

from __future__ import annotations

import json
from pathlib import Path

from studio.models.catalogue import BUNDLED_FOLDER, CatalogueModel
from studio.models.hub_files import hub_cache

INDEX = "model.safetensors.index.json"


def installed_folder(model: CatalogueModel) -> Path | None:
    """The folder of a complete download by any program; None if there is none. Blocking."""
    if model.repo is None:
        return Path(BUNDLED_FOLDER)
    cache = hub_cache(model.repo)
    folders = sorted((cache / "snapshots").glob("*"), key=lambda folder: folder.name != _newest(cache))
    return next((folder for folder in folders if _is_complete(folder, model)), None)


def snapshot(model: CatalogueModel, commit: str) -> Path:
    """The folder in which the files of a commit are kept, as by the hub's own tools."""
    assert model.repo is not None
    return hub_cache(model.repo) / "snapshots" / commit


def set_newest(model: CatalogueModel, commit: str) -> None:
    """Make a complete commit visible to the hub's tools. Blocking. Raises OSError."""
    assert model.repo is not None
    ref = hub_cache(model.repo) / "refs" / "main"
    ref.parent.mkdir(parents=True, exist_ok=True)
    ref.write_text(commit)


def _newest(cache: Path) -> str:
    try:
        return (cache / "refs" / "main").read_text(encoding="utf-8").strip()
    except (OSError, ValueError):
        return ""


def _is_complete(folder: Path, model: CatalogueModel) -> bool:
    """Whether a folder has all files; a killed program leaves only some of them, each complete."""
    if not all((folder / name).is_file() for name in model.files.needed):
        return False
    try:
        index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
        return all((folder / name).is_file() for name in set(index["weight_map"].values()))
    except FileNotFoundError:
        return any((folder / name).is_file() for name in ("model.safetensors", "model.pth"))
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return False

"""Finds the models of the catalogue that are complete on this machine."""

from __future__ import annotations

import io
import json
from pathlib import Path

from engine import open_regular
from studio.models.catalogue import BUNDLED_FOLDER, CatalogueModel, hub_cache

INDEX = "model.safetensors.index.json"
_INDEX_BYTES, _COMMIT_BYTES = 32 * 2**20, 64


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

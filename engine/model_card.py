"""What a checkpoint says of itself beside its sizes: card.json, which it may have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from engine.engine_errors import CheckpointError


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What whoever hands texts to the model has to know of it. The defaults hold for a checkpoint without a card."""

    normalize: bool = False
    """Whether numbers, dates and the like are to be written as words for it, since it does not read them well."""

    languages: tuple[str, ...] = ()
    """Those that it speaks, as ISO 639-1 codes; empty: it does not say."""
    tags: tuple[str, ...] | None = None
    """Those in [brackets] that it obeys, in lower case; all others do nothing. None: it does not say."""

    demo: bool = False
    """Whether it is there to try the studio with: small, its voices synthetic, and a clone only comes near."""

    @classmethod
    def read(cls, folder: Path) -> ModelCard:
        """Of folder/card.json; fields that are not known are left alone.

        Raises CheckpointError naming file and field.
        """
        path = folder / "card.json"
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return cls()
        except ValueError as error:
            raise CheckpointError(f"{path} is not valid JSON: {error}") from error
        if not isinstance(tree, dict):
            raise CheckpointError(f"{path} must be a JSON object")
        tags = _strings(path, tree, "tags") if tree.get("tags") is not None else None
        languages = _strings(path, tree, "languages")
        return cls(_flag(path, tree, "normalize"), languages, tags, _flag(path, tree, "demo"))


def _flag(path: Path, tree: dict[str, object], name: str) -> bool:
    found = tree.get(name, False)
    if not isinstance(found, bool):
        raise CheckpointError(f"{path}: {name} must be true or false, not {found!r}")
    return found


def _strings(path: Path, tree: dict[str, object], name: str) -> tuple[str, ...]:
    found = tree.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise CheckpointError(f"{path}: {name} must be a list of strings, not {found!r}")
    return tuple(found)

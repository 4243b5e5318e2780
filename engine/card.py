"""What a checkpoint says of itself beside its sizes: card.json, which it may have."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from engine.errors import CheckpointError


@dataclass(frozen=True, slots=True)
class ModelCard:
    """What whoever hands texts to the model has to know of it. The defaults hold for a checkpoint without a card."""

    normalize: bool = False
    """Whether numbers, dates and the like are to be written as words for it, since it does not read them well."""

    languages: tuple[str, ...] = ()
    """Those that it speaks, as ISO 639-1 codes; empty: it does not say."""
    tags: tuple[str, ...] | None = None
    """Those in [brackets] that it obeys, in lower case; all others do nothing. None: it does not say."""

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
        normalize = tree.get("normalize", False)
        if not isinstance(normalize, bool):
            raise CheckpointError(f"{path}: normalize must be true or false, not {normalize!r}")
        tags = _strings(path, tree, "tags") if tree.get("tags") is not None else None
        return cls(normalize, _strings(path, tree, "languages"), tags)


def _strings(path: Path, tree: dict[str, object], name: str) -> tuple[str, ...]:
    found = tree.get(name, [])
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise CheckpointError(f"{path}: {name} must be a list of strings, not {found!r}")
    return tuple(found)

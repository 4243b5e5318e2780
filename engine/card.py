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
        return cls(normalize)

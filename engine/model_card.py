"""What a checkpoint says of itself beside its sizes: card.json, which it may have."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from engine.engine_errors import CheckpointError

HEADER_CHARACTERS = 65_536


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

    licence: str = ""
    """Of the weights, as the checkpoint names it; empty: it does not say."""

    @classmethod
    def read(cls, folder: Path) -> ModelCard:
        """Of folder/card.json; fields that are not known are left alone.

        What it does not say of licence and languages is read from README.md's header.

        Raises CheckpointError naming file and field.
        """
        path, header = folder / "card.json", _header(folder / "README.md")
        from_readme = cls(languages=_languages(header), licence=_licence(header))
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return from_readme
        except ValueError as error:
            raise CheckpointError(f"{path} is not valid JSON: {error}") from error
        if not isinstance(tree, dict):
            raise CheckpointError(f"{path} must be a JSON object")
        tags = _strings(path, tree, "tags") if tree.get("tags") is not None else None
        languages = _strings(path, tree, "languages") or from_readme.languages
        return cls(_flag(path, tree, "normalize"), languages, tags, _flag(path, tree, "demo"), from_readme.licence)


def _header(readme: Path) -> str:
    """The fields in front of a README.md, which the hub reads; empty where there are none."""
    if not readme.is_file():
        return ""
    with readme.open(encoding="utf-8", errors="replace") as file:
        text = file.read(HEADER_CHARACTERS)
    return text.split("\n---", 1)[0] if text.startswith("---\n") else ""


def _licence(header: str) -> str:
    fields = dict(re.findall(r"^(license\w*):[ \t]*[\"']?(.*?)[\"']?[ \t]*$", header, re.MULTILINE))
    named = fields.get("license", "")
    return str(fields.get("license_name", named) if named == "other" else named)


def _languages(header: str) -> tuple[str, ...]:
    """Those with a code of two letters, of a list in either of YAML's forms."""
    listed = re.search(r"^language:(.*(?:\n[ \t]*-.*)*)", header, re.MULTILINE)
    return tuple(dict.fromkeys(re.findall(r"\b[a-z]{2}\b", listed[1]))) if listed else ()


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

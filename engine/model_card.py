"""A checkpoint's optional card.json: languages, tags, licence and other facts beside its sizes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from engine.engine_errors import CheckpointError
from engine.files import parse_json, read_bounded, read_start

CARD = "card.json"
HEADER_BYTES = CARD_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Facts that a caller needs in order to prepare texts for the model. The defaults apply without a card."""

    normalize: bool = False
    """Whether numbers, dates and the like must be written out as words, since the model does not read them well."""

    languages: tuple[str, ...] = ()
    """Languages it speaks, as ISO 639-1 codes; empty: unknown."""
    tags: tuple[str, ...] | None = None
    """Tags in [brackets] that it follows, in lower case; all others have no effect. None: unknown."""

    demo: bool = False
    """Whether it is a small demo model with synthetic voices, which cannot copy a real one."""

    ignore_instructions: bool = False
    """Whether requests that say beside their text how to speak have no effect, although its tags are unknown."""

    licence: str = ""
    """Licence of the weights, as the checkpoint names it; empty: unknown."""

    @classmethod
    def read(cls, folder: Path) -> ModelCard:
        """Read folder/card.json; unknown fields are ignored.

        Licence and languages missing there are read from README.md's header.

        Raises CheckpointError naming file and field.
        """
        path, header = folder / CARD, _header(folder / "README.md")
        from_readme = cls(languages=_languages(header), licence=_licence(header))
        try:
            tree = parse_json(read_bounded(path, CARD_BYTES), path)
        except FileNotFoundError:
            return from_readme
        tags = _strings(path, tree, "tags") if tree.get("tags") is not None else None
        languages = _strings(path, tree, "languages") or from_readme.languages
        flags = {name: _flag(path, tree, name) for name in ("normalize", "demo", "ignore_instructions")}
        return cls(languages=languages, tags=tags, licence=from_readme.licence, **flags)


def _header(readme: Path) -> str:
    """The front matter of a README.md, as used by the hub; empty without any."""
    if not readme.is_file():
        return ""
    text = read_start(readme, HEADER_BYTES).decode(errors="replace").replace("\r\n", "\n")
    return text.split("\n---", 1)[0] if text.startswith("---\n") else ""


def _licence(header: str) -> str:
    fields = {name: value.strip(" \t\"'") for name, value in re.findall(r"^(license\w*):(.*)", header, re.MULTILINE)}
    name = fields.get("license", "")
    licence = fields.get("license_name", name) if name == "other" else name
    return "".join(letter for letter in licence if letter.isprintable())  # no commands to a terminal


def _languages(header: str) -> tuple[str, ...]:
    """Two-letter codes in a list in either of YAML's forms."""
    match = re.search(r"^language:(.*(?:\n[ \t]*-.*)*)", header, re.MULTILINE)
    return tuple(dict.fromkeys(re.findall(r"\b[a-z]{2}\b", match[1]))) if match else ()


def _flag(path: Path, tree: dict[str, object], name: str) -> bool:
    value = tree.get(name, False)
    if not isinstance(value, bool):
        raise CheckpointError(f"{path}: {name} must be true or false, not {value!r}")
    return value


def _strings(path: Path, tree: dict[str, object], name: str) -> tuple[str, ...]:
    value = tree.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise CheckpointError(f"{path}: {name} must be a list of strings, not {value!r}")
    return tuple(value)

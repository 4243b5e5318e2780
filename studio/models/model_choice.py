"""The owner's choice of a model, stored in the library's folder; STUDIO_MODEL takes precedence."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path

from engine import open_regular
from studio.models.catalogue import CATALOGUE, in_catalogue, installed_folder
from studio.settings import Settings
from studio.unicode_text import repair_surrogates

FILE = "model.json"
MAX_BYTES = 64 * 2**10  # of the file, which is some hundred bytes unless something else was stored under its name


@dataclass(frozen=True, slots=True)
class StartingModel:
    """The model that a start loads: a folder, a file or a hub id; ``problem``: why it is not the chosen one."""

    model: str
    is_chosen: bool = False
    problem: str | None = None


def starting_model(settings: Settings) -> StartingModel:
    """The model of STUDIO_MODEL, else the chosen one, else the bundled one. Blocking."""
    try:
        if is_set(settings) or (choice := read_choice(settings.home)) is None:
            return StartingModel(settings.model)
        return StartingModel(resolve(choice), is_chosen=True)
    except ValueError as error:
        return StartingModel(settings.model, problem=str(error))


def is_set(settings: Settings) -> bool:
    """Whether STUDIO_MODEL sets the model."""
    return "model" in settings.model_fields_set


def resolve(name: str) -> str:
    """The path of a model by its name in the catalogue, or by a path. Blocking. Raises ValueError."""
    if (model := in_catalogue(name)) is not None:
        if (folder := installed_folder(model)) is None:
            command = f"fish-voice-studio models download {model.name}"
            raise ValueError(f"{model.title} is not on this machine yet: {command}")
        return str(folder)
    try:
        path = Path(name).expanduser()
        exists = bool(name.strip()) and path.exists()  # a blank one would be the working directory
        if exists and not path.is_dir():
            open_regular(path).close()
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ValueError(f"{name[:80]!r} cannot be used: {reason}") from error
    if not exists:
        names = ", ".join(model.name for model in CATALOGUE)
        raise ValueError(f"not found: {name[:200]!r}; name one of {names}, or a folder or file on this machine")
    resolved = str(path.resolve())
    if repair_surrogates(resolved) != resolved:
        raise ValueError(f"{name[:80]!r} cannot be used: its path {resolved!r} is not Unicode text; rename the folder")
    return resolved


def read_choice(home: str) -> str | None:
    """The chosen name or path; None without one. Blocking. Raises ValueError for a damaged file."""
    try:
        with open_regular(Path(home) / FILE) as file:
            return str.strip(json.loads(file.read(MAX_BYTES))["model"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError, KeyError, TypeError) as error:
        raise ValueError(f"{FILE} in STUDIO_HOME names no model ({error}): choose one again") from error


def write_choice(home: str, name: str) -> None:
    """Store a choice for the next start. Blocking. Raises OSError."""
    from studio.library.private_files import write_whole  # not needed to read the choice

    write_whole(Path(home) / FILE, io.BytesIO(json.dumps({"model": name}).encode()))

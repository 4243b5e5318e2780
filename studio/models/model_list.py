"""The models of the catalogue and paths on this machine, each with its requirements here."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path

from engine import EngineError, ModelSurvey, check_files, is_hub_id, survey_model
from speechtext.errors import check_job
from studio.engine_host import engine_config
from studio.errors import InvalidRequest
from studio.models.catalogue import CATALOGUE, CatalogueModel, in_catalogue, installed_folder
from studio.models.model_choice import resolve
from studio.settings import Settings
from studio.unicode_text import repair_surrogates


@dataclass(frozen=True, slots=True)
class ListedModel:
    """A model of the catalogue or a path, with its requirements on this machine."""

    name: str
    """The name in the catalogue, or the path."""
    model: CatalogueModel | None
    path: str | None
    """None: it is not on this machine."""
    is_loaded: bool
    survey: ModelSurvey | None
    error: str | None = None
    """Why it cannot be loaded."""


def list_models(settings: Settings, loaded: str, path: str | None = None, held_bytes: int = 0) -> list[ListedModel]:
    """The catalogue, the loaded model, and a path if given. Blocking: seconds on the first call.

    ``held_bytes``: memory of this process's engine.
    """
    models = []
    for model in CATALOGUE:
        check_job()
        folder = installed_folder(model)
        models.append(_listed(settings, loaded, model.name, model, None if folder is None else str(folder), held_bytes))
    identities = {_identity(model.path or model.name) for model in models}
    identities |= {repo for model in CATALOGUE for repo in model.repos}
    for other in (loaded, path):
        if other and in_catalogue(other) is None and (identity := _identity(other)) not in identities:
            identities.add(identity)
            models.append(_other(settings, loaded, other, held_bytes))
    return models


def fitting_path(settings: Settings, name: str, held_bytes: int) -> str:
    """The path of a model that is on this machine, complete, and fits. Blocking: seconds. Raises InvalidRequest."""
    try:
        path = resolve(name)
        survey = survey_model(engine_config(settings, path), None, held_bytes)
        if survey.chosen is None:
            raise InvalidRequest(_too_large(name, survey), "model", "model_does_not_fit")
        check_files(path)
    except (ValueError, EngineError, OSError) as error:
        raise InvalidRequest(str(error), "model") from error
    return path


def model_json(listed: ListedModel) -> dict[str, object]:
    """The form shown by the API and the command line."""
    model, survey = listed.model, listed.survey
    card = survey.card if survey else None
    return {
        "name": listed.name,
        "title": model.title if model else Path(listed.name).name or listed.name,
        "repo": model.repo if model else None,
        "licence": model.licence if model else card.licence if card else "",
        "licence_url": model.licence_url if model else None,
        "languages": list(model.languages if model else card.languages if card else ()),
        "more_languages": bool(model and model.more_languages),
        "clones": model.clones if model else None,
        "designs": model.designs if model else None,
        "download_bytes": model.download_bytes if model and model.repo else None,
        "path": listed.path,
        "loaded": listed.is_loaded,
        "error": listed.error,
        "family": survey.family if survey else None,
        "device": survey.device if survey else None,
        "free_bytes": survey.free_bytes if survey else None,
        "fits": None if survey is None else survey.chosen is not None,
        "weights": survey.need.dtype if survey and survey.need else None,
        "needs": [asdict(need) for need in survey.needs] if survey else [],
    }


def _listed(
    settings: Settings, loaded: str, name: str, model: CatalogueModel | None, path: str | None, held_bytes: int
) -> ListedModel:
    repo = model.repo if model else None
    is_loaded = loaded in (model.repos if model else ()) or (path is not None and _identity(loaded) == _identity(path))
    try:
        tree = None if path or model is None else model.tree
        survey = survey_model(engine_config(settings, path or repo), tree, held_bytes)
    except (EngineError, OSError) as error:
        return ListedModel(name, model, path, is_loaded, None, repair_surrogates(str(error)))
    return ListedModel(name, model, path, is_loaded, survey)


def _identity(name: str) -> str:
    """Equal for all names of one model: its real path, or its name if it is not on this machine."""
    try:
        return os.path.realpath(resolve(name))
    except ValueError:
        return name


def _other(settings: Settings, loaded: str, name: str, held_bytes: int) -> ListedModel:
    """A folder or file, or the loaded repository of the hub, which is not looked up again."""
    try:
        return _listed(settings, loaded, name, None, resolve(name), held_bytes)
    except ValueError as error:
        is_on_hub = name == loaded and is_hub_id(name)
        return ListedModel(name, None, None, name == loaded, None, None if is_on_hub else str(error))


def _too_large(name: str, survey: ModelSurvey) -> str:
    least = min(survey.needs, key=lambda need: need.memory_bytes)
    free = "" if survey.free_bytes is None else f", but only {survey.free_bytes / 1e9:.1f} GB can be used"
    fitting = [need.weights for need in survey.needs if need.fits]
    remedy = f"; with STUDIO_WEIGHTS={fitting[0]} it would fit" if fitting else "; choose a smaller model"
    where = "the GPU" if survey.device.startswith("cuda") else "memory"
    return f"{name} does not fit: it needs at least {least.memory_bytes / 1e9:.1f} GB of {where}{free}{remedy}"

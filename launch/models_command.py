"""fish-voice-studio models: lists models with their requirements here, downloads them, chooses the next start's."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from engine import EngineError
from launch import failed
from studio.errors import REFUSALS, SettingsError
from studio.library.private_files import make_private_folder
from studio.models.catalogue import CATALOGUE, in_catalogue
from studio.models.model_choice import is_set, starting_model, write_choice
from studio.models.model_list import ListedModel, fitting_path, list_models, model_json
from studio.models.model_service import ModelDownload
from studio.settings import Settings

COLUMNS = "{:<2}{:<13}{:<21}{:>8}  {:<6}{:<37}{:<21}{}"
NAMES = [model.name for model in CATALOGUE if model.repo]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns 0 on success, 1 after an error (printed on standard error), 2 for wrong arguments."""
    options = _parser().parse_args(arguments)
    logging.getLogger("studio").addHandler(logging.NullHandler())  # the reason of a failure is printed once
    try:
        settings = Settings.load()
        if options.command == "download":
            return asyncio.run(_download(options.name))
        if options.command == "use":
            _use(settings, options.model)
        else:
            _list(settings, options.path, options.json)
    except (EngineError, *REFUSALS, SettingsError, OSError) as error:
        return failed(error)
    except KeyboardInterrupt:
        is_download = options.command == "download"
        remedy = "; the same command continues the download" if is_download else ""
        print(f"\nstudio: interrupted{remedy}", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    about = "Lists models with their requirements on this machine (the default), downloads them, and chooses one."
    parser = argparse.ArgumentParser(prog="fish-voice-studio models", description=about)
    parser.set_defaults(command="list", path=None, json=False)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    listed = commands.add_parser("list", help="list models: licence, size, memory, speed, whether they fit")
    listed.add_argument("path", nargs="?", help="also a folder or file on this machine")
    for command in (parser, listed):
        command.add_argument("--json", action="store_true", help="print JSON")
    download = commands.add_parser("download", help="download a model, or continue its download; Ctrl-C interrupts it")
    download.add_argument("name", choices=NAMES)
    use = commands.add_parser("use", help="load a model from the next start on")
    use.add_argument("model", help="a name from the list, or a folder or file on this machine")
    return parser


def _list(settings: Settings, path: str | None, as_json: bool) -> None:
    first = starting_model(settings)
    listed = list_models(settings, first.model, path)
    if as_json:
        print(json.dumps([model_json(model) for model in listed], indent=1))
        return
    print(COLUMNS.format("", "NAME", "LICENCE", "DOWNLOAD", "HERE", "GIB OF MEMORY", "FITS", "SPEED (ESTIMATE)"))
    for model in listed:
        print(_line(model))
    print("* is loaded at the next start")
    if first.problem:
        print(f"studio: {first.problem}", file=sys.stderr)


def _line(listed: ListedModel) -> str:
    model, survey = listed.model, listed.survey
    mark = "*" if listed.is_loaded else ""
    if model is None and listed.path is None and listed.error:
        return f"{mark:<2}{listed.error}"
    licence = model.licence if model else survey.card.licence if survey else ""
    size = f"{model.download_bytes / 1e9:.1f} GB" if model and model.repo else "–"
    here = "yes" if listed.path else "no"
    head = mark, listed.name, licence[:20], size, here
    if survey is None:
        return COLUMNS.format(*head, "", "", listed.error or "")
    memory = " · ".join(f"{need.dtype} {need.memory_bytes / 2**30:.1f}" for need in survey.needs)
    need = survey.need
    less = next((need.weights for need in survey.needs if need.fits), None)
    fits = f"in {need.dtype}" if need else f"STUDIO_WEIGHTS={less}" if less else "no"
    factor = (need or survey.needs[-1]).real_time_factor
    return COLUMNS.format(*head, memory, fits, "not known" if factor is None else _speed(factor))


def _speed(factor: float) -> str:
    return f"{1 / factor:.1f} × real time" if factor <= 1 else f"{factor:.1f} × slower than real time"


async def _download(name: str) -> int:
    model = in_catalogue(name)
    assert model is not None, "argparse has checked the name"
    download = ModelDownload(model)
    download.begin()
    waiting, progress = asyncio.ensure_future(download.wait()), ""
    while not waiting.done():
        await asyncio.wait({waiting}, timeout=1.0)
        status = download.status
        if status.total:
            progress = f"{status.done / 1e9:.2f} of {status.total / 1e9:.2f} GB ({status.done / status.total:.0%})"
            print(f"\r{model.title}: {progress}", end="", file=sys.stderr, flush=True)
    if progress:
        print(file=sys.stderr)
    if error := download.status.error:
        print(f"studio: {model.title} was not downloaded: {error}", file=sys.stderr)
        return 1
    print(f"{model.title} is on this machine; to use it: fish-voice-studio models use {name}")
    return 0


def _use(settings: Settings, name: str) -> None:
    path = fitting_path(settings, name, 0)
    make_private_folder(Path(settings.home))
    write_choice(settings.home, name if in_catalogue(name) else path)
    print(f"{name} is loaded at the next start. A running studio switches under Settings on its page.")
    if is_set(settings):
        print("studio: STUDIO_MODEL is set and takes precedence: remove it", file=sys.stderr)

"""The command line for voices and the trash. It opens the folder STUDIO_HOME itself, whether a studio runs or not."""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeAlias, get_args

from audio import Cut
from audio.read import MAX_BYTES
from engine import open_regular
from launch import failed
from longform.library.project_repository import ProjectLibrary
from studio.errors import REFUSALS, InvalidRequest, SettingsError
from studio.library import Library, Voice, VoiceFields
from studio.library.private_files import write_whole
from studio.library.store import DATABASE
from studio.library.trash import TrashItem, TrashKind
from studio.settings import MAX_TRASH_DAYS, Settings, expanded
from studio.unicode_text import check_strings, text_of
from studio.voices.intake import take_in, take_in_best
from studio.voices.pack import MAX_PACK, export_voice, import_pack, read_pack
from studio.voices.reference_folder import ImportedReferences, import_references
from studio.voices.resolver import voice_json

TEXTS = ("description", "language", "gender", "accent", "colour", "licence")
"""Voice fields that are options."""
Command = Callable[[Library, argparse.Namespace], None]
Verbs: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. Returns 0 on success, 1 after an error (printed on standard error), 2 for wrong arguments."""
    options = _parser().parse_args(arguments)
    try:
        check_strings(vars(options))
        command: Command = options.command
        home = options.home or Path(Settings.load().home)
        if command not in (_add, _import, _import_references) and not (home / DATABASE).is_file():
            raise SettingsError(f"{home} contains no library; a studio or “voices add” creates one")
        library = ProjectLibrary(home, MAX_TRASH_DAYS)  # only the studio, whose setting may differ, lets items expire
        library.voices = library.voices.for_all()
        command(library, options)
    except (*REFUSALS, SettingsError, OSError) as error:
        return failed(error)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fish-voice-studio", description="The studio's command line.")
    topics = parser.add_subparsers(required=True, metavar="TOPIC")
    voices = topics.add_parser("voices", help="the voice library")
    _add_voice_verbs(partial(_add_verb, voices.add_subparsers(required=True, metavar="COMMAND")))
    trash = topics.add_parser("trash", help="list (the default), restore or empty the trash")
    trash.set_defaults(command=_list_trash, home=None, json=False)
    verb = partial(_add_verb, trash.add_subparsers(metavar="COMMAND"))
    verb("list", _list_trash, "list deleted items, newest first")
    restore = verb("restore", _restore, "restore a deleted item")
    restore.add_argument("kind", choices=get_args(TrashKind))
    restore.add_argument("id", help="as “trash list” shows it")
    verb("empty", _empty, "delete everything in the trash permanently")
    return parser


def _add_verb(verbs: Verbs, name: str, command: Command, summary: str) -> argparse.ArgumentParser:
    verb = verbs.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    verb.add_argument("--home", type=_folder, help="the library's folder; default: STUDIO_HOME")
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(command=command)
    return verb


def _folder(text: str) -> Path:
    try:
        return Path(expanded(text))  # shells leave the ~ of --home=~/folder
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _add_voice_verbs(verb: Callable[[str, Command, str], argparse.ArgumentParser]) -> None:
    add = verb("add", _add, "create a voice from a clip and its transcript")
    add.add_argument("name")
    add.add_argument("clip", type=Path, help="a recording: WAV, FLAC, MP3, Ogg, M4A or WebM")
    transcript = add.add_mutually_exclusive_group(required=True)
    transcript.add_argument("--text", help="transcript of the clip")
    transcript.add_argument("--text-file", type=Path, help="a file with the transcript")
    for name in TEXTS:
        add.add_argument(f"--{name}", default="", help=VoiceFields.model_fields[name].description)
    add.add_argument("--tag", action="append", default=[], help="may be given several times")
    add.add_argument("--start", type=float, default=0.0, help="start of the used part, in seconds")
    add.add_argument("--end", type=float, help="its end; default: the end of the clip")
    add.add_argument("--gain-db", type=float, default=0.0)
    add.add_argument("--fix", action="store_true", help="apply all suggested fixes")
    list_verb = verb("list", _list, "list voices")
    list_verb.add_argument("query", nargs="?", default="", help="words to search for")
    show = verb("show", _show, "show a voice; NAME@2 is its second revision")
    show.add_argument("voice")
    export = verb("export", _export, "write a voice to a .fishvoice file")
    export.add_argument("voice")
    export.add_argument("file", type=Path)
    import_verb = verb("import", _import, "import a voice from a .fishvoice file")
    import_verb.add_argument("file", type=Path)
    import_verb.add_argument("--name", help="import it under this name")
    import_verb.add_argument("--inspect", action="store_true", help="only print its contents")
    folder = verb("import-references", _import_references, "create voices from a fish-speech references folder")
    folder.add_argument("folder", type=Path, help="has a folder per voice: recordings, and transcripts as .lab")
    delete = verb("delete", _delete, "move a voice to the trash")
    delete.add_argument("voice")
    verb("audit", _audit, "print the audit trail")


def _add(library: Library, options: argparse.Namespace) -> None:
    data = _read(options.clip, MAX_BYTES)
    text = options.text if options.text is not None else text_of(options.text_file)
    cut = Cut(options.start, options.end, options.gain_db)
    intake = (take_in_best if options.fix else take_in)(data, text, cut)
    if options.fix and intake.advice.fixed != intake.cut:
        intake = take_in(data, text, intake.advice.fixed)
    for finding in intake.advice.findings:
        print(f"{finding.severity}: {finding.message}", file=sys.stderr)
    fields = VoiceFields(tags=tuple(options.tag), **{name: getattr(options, name) for name in ("name", *TEXTS)})
    _print(library.voices.create(fields, [intake.sample(text)]), options)


def _read(path: Path, most: int) -> bytes:
    """The file, or one byte more than the most, for which it is refused. Raises OSError, also for a device."""
    with open_regular(path) as file:
        return file.read(most + 1)


def _list(library: Library, options: argparse.Namespace) -> None:
    voices: list[Voice] = []
    while page := library.voices.page(options.query, after=voices[-1].id if voices else None):
        voices += page
    if options.json:
        _print_json([voice_json(voice) for voice in voices])
        return
    for voice in voices:
        facts = (voice.gender, voice.accent, voice.language, ", ".join(voice.tags))
        print(" · ".join([f"{voice.address:<28} {voice.seconds:6.1f} s  {voice.name}", *filter(None, facts)]))


def _show(library: Library, options: argparse.Namespace) -> None:
    _print(library.voices.get(options.voice), options)


def _export(library: Library, options: argparse.Namespace) -> None:
    if options.file.exists() and not options.file.is_file():
        raise InvalidRequest(f"{options.file} is a folder or a device; name a file", "file")
    write_whole(options.file, io.BytesIO(export_voice(library, options.voice)), is_private=False)
    _print(library.voices.get(options.voice), options)


def _import(library: Library, options: argparse.Namespace) -> None:
    data = _read(options.file, MAX_PACK)
    if options.inspect:
        _print_json(read_pack(data).as_json())
        return
    _print(import_pack(library, data, options.name), options)


def _import_references(library: Library, options: argparse.Namespace) -> None:
    imported = _import_folder(library, options.folder)
    for path, reason in imported.refused.items():
        print(f"studio: {path}: {reason}", file=sys.stderr)
    if options.json:
        _print_json([voice_json(voice) for voice in imported.voices])
        return
    for voice in imported.voices:
        _print(voice, options)


def _import_folder(library: Library, folder: Path) -> ImportedReferences:
    """Import the voices of a local folder, or the one voice of a folder that contains recordings itself.

    Raises the errors of `import_references`, and InvalidRequest for a path that is not a folder.
    """
    if not folder.is_dir():
        raise InvalidRequest(f"{folder} is not a folder", "folder")
    folder, files, errors = folder.resolve(), list[str](), list[OSError]()

    def read(path: str, limit: int) -> bytes:
        with open_regular(folder.parent / path) as file:
            return file.read(limit + 1)

    for parent, folders, names in os.walk(folder, onerror=errors.append, followlinks=True):
        files += [os.path.relpath(os.path.join(parent, name), folder.parent) for name in names]
        folders[:] = folders if Path(parent) == folder else []
    refused = {os.path.relpath(one.filename, folder.parent): f"it cannot be opened: {one.strerror}" for one in errors}
    return import_references(library, {path: partial(read, path) for path in files}, refused)


def _delete(library: Library, options: argparse.Namespace) -> None:
    _print(library.voices.delete(options.voice), options)


def _list_trash(library: Library, options: argparse.Namespace) -> None:
    items: list[TrashItem] = []
    while page := library.trash.page(None, after=items[-1].id if items else None):
        items += page
    if options.json:
        _print_json([asdict(item) for item in items])
        return
    for item in items:
        day = datetime.fromtimestamp(item.deleted).isoformat(" ", "minutes")
        count = "" if item.parts is None else f"  ({item.parts} parts)"
        print(f"{day}  {item.kind:<11} {item.id}  {' '.join(item.title.split())}{count}")


def _restore(library: Library, options: argparse.Namespace) -> None:
    library.trash.restore_one(options.kind, options.id, None, "id")
    print(json.dumps({"kind": options.kind, "id": options.id}) if options.json else f"restored: {options.id}")


def _empty(library: Library, options: argparse.Namespace) -> None:
    count = library.trash.empty(None)
    print(json.dumps({"count": count}) if options.json else f"permanently deleted: {count}")


def _audit(library: Library, options: argparse.Namespace) -> None:
    entries = library.audit.entries()
    if options.json:
        _print_json([{"n": e.n, "at": e.at, "event": e.event, "subject": e.subject} | e.details for e in entries])
        return
    for entry in entries:
        print(f"{entry.n:>6}  {entry.event:<15} {entry.subject}  {entry.details.get('name', '')}")


def _print(voice: Voice, options: argparse.Namespace) -> None:
    if options.json:
        _print_json(voice_json(voice))
        return
    print(f"{voice.address}  {voice.name}  {voice.id}")
    for sample in voice.samples:
        print(f"  {sample.seconds:.1f} s, score {sample.score}, speaker {sample.speaker}: {sample.text}")


def _print_json(value: object) -> None:
    print(json.dumps(value, indent=1))

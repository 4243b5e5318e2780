"""Processes that work on a library as fast as they can, for tests that kill them or run many of them.

All are forked from one process that has imported their modules, independent of the tests' own process.
"""

from __future__ import annotations

import dataclasses
import functools
import multiprocessing
import random
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from longform.library.project_repository import ProjectLibrary
from studio.errors import EditConflict, InvalidRequest, NotFound
from studio.library import Backup, Library, NewConsent, TakeFilter, Voice, VoiceFields
from studio.library.records import NewSample, Sample
from studio.library.take import Take
from studio.speech.active_take import ActiveTake
from studio.speech.metrics import Metrics
from studio.speech.recorder import Recorder, Retention
from studio.speech.register import Limits, Register
from studio.voices.pack import export_voice, import_pack
from tests.studio.clips import new_sample, spoken
from tests.studio.sounds import tone, wav

VERBS = ("add", "add", "import", "edit", "revise", "delete", "restore", "purge", "take", "record", "keep", "untake")


def begin(task: Callable[..., None], *arguments: Any) -> tuple[BaseProcess, Connection]:
    """Start a process for one of the tasks of this file; the process, and the connection for its progress."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=task, args=(*arguments, sender))
    process.start()
    sender.close()
    return process, receiver


def work(home: Path, seed: int, count: int, names: int, progress: Connection) -> None:
    """Do ``count`` mixed operations on voices shared with other processes; sends each before starting it."""
    library, chance = ProjectLibrary(home), random.Random(seed)
    for step in range(count):
        name = f"voice {chance.randrange(names)}"
        verb = chance.choice(VERBS)
        progress.send(verb)
        try:
            operate(library, verb, name, chance, f"{seed}-{step}")
        except (NotFound, InvalidRequest, EditConflict):
            continue  # another process was faster, as expected


def copy_voice_by_voice(home: Path, bucket: Path, progress: Connection) -> None:
    """Take a snapshot after each new voice, and then send the voice's number."""
    library, backup = ProjectLibrary(home), Backup(home, bucket)
    backup.restore()
    for number in range(1000):
        sound = wav(tone(0.3, hertz=200 + number))
        library.voices.create(VoiceFields(name=f"voice {number}"), [new_sample(sound, f"words of {number}")])
        backup.snapshot()
        progress.send(number)


def operate(library: Library, verb: str, name: str, chance: random.Random, unique: str) -> None:
    if verb == "add":
        clips = [new_sample(clip(chance, unique), f"words {unique}") for _ in range(chance.randint(1, 3))]
        library.voices.create(VoiceFields(name=name), clips)
    elif verb == "import":
        import_pack(library, some_pack(), name)
    elif verb == "edit":
        library.voices.edit(name, VoiceFields(description=unique), library.voices.get(name).version)
    elif verb == "revise":

        def change(now: tuple[Sample, ...]) -> list[Sample | NewSample]:
            return [dataclasses.replace(now[0], text=unique), new_sample(clip(chance, unique))]

        library.voices.revise(name, change)
    elif verb == "delete":
        library.voices.delete(name)
    elif verb == "restore":
        deleted: list[Voice] = library.voices.page(deleted=True)
        if deleted:
            library.voices.restore(chance.choice(deleted).id)
    elif verb == "purge":
        library.trash.empty(None)
    elif verb == "take":
        library.takes.add(stored_take(f"req_{unique}", unique, name), clip(chance, unique))
    elif verb == "record":
        take = stored_take(f"rec_{unique}", unique, name)
        active = active_take(take, recorder(library))
        active.write(np.full(chance.randint(1, 50_000), 0.1, np.float32))
        active.end()  # written during the next operations
    elif verb == "untake":
        ids = library.takes.delete(TakeFilter(query=unique[:2]))
        library.trash.restore([("take", take_id) for take_id in ids[1:]], None)
        library.trash.empty(None, "take")
    else:
        library.takes.keep_newest(5, 200_000)


def stored_take(take_id: str, text: str, voice: str) -> Take:
    return Take(take_id, 1.0, voice, 1, "finished", text=text, finish_reason="stop", frames=1, seconds=1.0)


def active_take(take: Take, recorder: Recorder) -> ActiveTake:
    """A take that is generated, as if by a request."""
    return ActiveTake(take, "a model", 44_100, quiet_register(), recorder)


def quiet_register() -> Register:
    """A register without limits, which counts nothing."""
    return Register(Limits(None, None), cast(Metrics, SimpleNamespace(count_take=lambda take: None)))


@functools.cache
def recorder(library: Library) -> Recorder:
    return Recorder(library, Retention(5, 200_000), lambda take_id, outcome: None)


@functools.cache
def some_pack() -> bytes:
    """A voice with a consent and codes, packed."""
    with tempfile.TemporaryDirectory() as folder:
        library = ProjectLibrary(Path(folder))
        consent = NewConsent("Somebody", "en", "Yes.", spoken(), "audio/wav")
        voice = library.voices.create(VoiceFields(name="packed"), [new_sample()], consent=consent)
        library.codes.put(voice.samples[0].cut_key, "codec", np.zeros((10, 90), np.int16))
        return export_voice(library, "packed")


def clip(chance: random.Random, unique: str) -> bytes:
    """Enough bytes that a kill may well interrupt writing them; sometimes the same as another clip's."""
    return chance.choice([f"{unique}".encode(), b"shared"]) * 20_000

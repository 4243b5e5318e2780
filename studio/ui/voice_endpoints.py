"""The endpoints for voices, over the same library as page and API; names and arguments are frozen."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import gradio as gr

from audio import Cut
from speechtext.transcript import MAX_TEXT, compare
from studio.errors import InvalidRequest, NotFound
from studio.library import Library, NewConsent, VoiceFields
from studio.library.checks import clean_language
from studio.library.client_files import ClientFile, Upload
from studio.services import Studio
from studio.voices.editing import sample_at
from studio.voices.intake import Intake
from studio.voices.pack import export_voice, import_pack
from studio.voices.resolver import voice_json
from studio.work import read, write

Json = dict[str, Any]


class VoiceEndpoints:
    """The endpoints' methods. Clients get every error as gradio_client's AppError with its message."""

    def __init__(self, studio: Studio) -> None:
        self._speech = studio.speech
        self._voices = studio.voices
        self._library = studio.library
        self._clips = studio.clips
        self._queues = studio.speech.queues
        self._files = studio.client_files

    def voice_get(self, caller: gr.Request, *, voice: str = "default") -> Json:
        """A voice by id, slug or name, optionally with "@" and a revision."""
        return voice_json(self._library_of(caller).voices.get(self._resolve(caller, voice)))

    async def voice_create(
        self,
        caller: gr.Request,
        *,
        name: str = "",
        audio: Upload | None = None,
        text: str = "",
        start: float = 0,
        end: float = 0,
        gain_db: float = 0,
        channel: float = -1,
        description: str = "",
        tags: str = "",
        language: str = "",
        licence: str = "",
        consent: str = "",
    ) -> Json:
        """Create a voice from a clip and its transcript; the text of a consent is recorded with it."""
        intake = await self._judge(caller, audio, text, _cut(start, end, gain_db, channel))
        fields = VoiceFields(
            name=name, description=description, tags=tuple(tags.split(",")), language=language, licence=licence
        )
        recorded = NewConsent(name, language, consent) if consent.strip() else None
        create = partial(self._library_of(caller).voices.create, fields, [intake.sample(text)], consent=recorded)
        return voice_json(await self._speech.save_voice(write(create)))

    async def voice_update(
        self,
        caller: gr.Request,
        *,
        voice: str = "",
        name: str | None = None,
        description: str | None = None,
        tags: str | None = None,
        language: str | None = None,
        licence: str | None = None,
        favourite: bool | list[Any] | None = None,
        defaults: Json | None = None,
    ) -> Json:
        """Edit a voice's details; None leaves a field unchanged. defaults: for example {"temperature": 0.7}."""
        if defaults is not None and not isinstance(defaults, dict):
            raise InvalidRequest('defaults must be an object, such as {"temperature": 0.7}', "defaults")
        changes: Json = {
            "name": name,
            "description": description,
            "tags": None if tags is None else tuple(tags.split(",")),
            "language": language,
            "licence": licence,
            "favourite": None if favourite == [] else favourite,  # an empty choice, as Gradio writes it
            "defaults": defaults,
        }
        fields = VoiceFields(**{field: value for field, value in changes.items() if value is not None})
        voices = self._library_of(caller).voices
        return voice_json(await write(lambda: voices.edit(voices.get(voice).id, fields)))

    async def voice_delete(self, caller: gr.Request, *, voice: str = "") -> Json:
        """Delete a voice; for undo_seconds it can be restored by its id over HTTP."""
        deleted = await write(self._library_of(caller).voices.delete, voice)
        return {"id": deleted.id, "deleted": True, "undo_seconds": self._library.trash.seconds}

    async def voice_export(self, caller: gr.Request, *, voice: str = "") -> ClientFile:
        """A voice as one .fishvoice file."""
        library = self._library_of(caller)
        library_voice = await read(library.voices.get, voice)
        pack = await self._queues.packs.run(caller.state.caller, export_voice, library, library_voice.address)
        name = f"{library_voice.slug}.fishvoice"
        return await self._files.add_result(name, [pack], caller.state.owner_filter, caller.state.caller)

    async def voice_import(self, caller: gr.Request, *, pack: Upload | None = None, name: str = "") -> Json:
        """Import a .fishvoice file, optionally under another name."""
        if pack is None:
            raise InvalidRequest("pack is missing: give a .fishvoice file", "pack")
        packs = self._queues.packs
        work = packs.run(caller.state.caller, import_pack, self._library_of(caller), pack.data, name.strip() or None)
        return voice_json(await self._speech.save_voice(work))

    async def voice_preview(self, caller: gr.Request, *, voice: str = "default", sample: float = 0) -> ClientFile:
        """A sample of a voice as the model gets it, with cut and gain applied: a WAV file."""
        voices = self._library_of(caller).voices
        library_voice = await read(lambda: voices.get(self._resolve(caller, voice)))
        chosen = sample_at(library_voice, int(sample))
        data = await read(self._library.voices.clip, chosen)
        wav = await self._clips.preview(caller.state.caller, data, chosen.cut)
        name = f"{library_voice.slug}.wav"
        return await self._files.add_result(name, [wav], caller.state.owner_filter, caller.state.caller)

    async def analyze_reference(
        self,
        caller: gr.Request,
        *,
        audio: Upload | None = None,
        text: str = "",
        start: float = 0,
        end: float = 0,
        gain_db: float = 0,
        channel: float = -1,
    ) -> Json:
        """Rate a clip before it is saved: score, findings with fixes, figures, and the cut that was rated."""
        return (await self._judge(caller, audio, text, _cut(start, end, gain_db, channel))).as_json()

    async def transcribe(
        self, caller: gr.Request, *, audio: Upload | None = None, language: str = "", text: str = ""
    ) -> Json:
        """Transcribe a clip, if a recogniser is installed; with a text, also return where the two differ."""
        intake, name = await self._judge(caller, audio, text, Cut()), caller.state.caller
        transcription = await self._clips.transcriber.transcribe(intake.clip, name, clean_language(language))
        words = transcription.text[:MAX_TEXT]
        marks = await self._queues.texts.run(name, compare, text, words) if text.strip() else ()
        return asdict(transcription) | {"marks": [asdict(mark) for mark in marks]}

    async def _judge(self, caller: gr.Request, audio: Upload | None, text: str, cut: Cut) -> Intake:
        """The clip with this cut, or, if there is none and the clip is too long, with a suggested one."""
        if audio is None:
            raise InvalidRequest("audio is missing: give a recording of 1 to 30 seconds", "audio")
        return await self._clips.suggest(caller.state.caller, audio.data, text, cut, "audio")

    def _library_of(self, caller: gr.Request) -> Library:
        return self._library.seen_by(caller.state.owner_filter)

    def _resolve(self, caller: gr.Request, voice: str) -> str:
        """The library's reference for a voice, which may be one of OpenAI's names or "default"."""
        library_voice = self._voices.seen_by(caller.state.owner_filter).find(voice)
        if library_voice is None:
            raise NotFound(f"{voice!r} is a different voice in every take; there is nothing to show", "voice")
        return f"{library_voice.id}@{library_voice.revision}"


def _cut(start: float, end: float, gain_db: float, channel: float) -> Cut:
    """An end of 0 is the clip's end; channel -1 mixes all channels."""
    return Cut(start, end or None, gain_db, None if channel < 0 else int(channel))

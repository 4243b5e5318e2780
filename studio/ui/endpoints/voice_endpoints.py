"""The named endpoints for gradio_client about voices, over the library of page and API; frozen as those of speech."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import gradio as gr
from anyio import to_thread
from gradio.components import Component

from studio.errors import InvalidRequest, NotFound
from studio.library import Cut, NewConsent, VoiceFields
from studio.library.checks import MAX_TEXT, clean_language
from studio.library.client_files import ClientFile, Upload
from studio.services import Studio
from studio.ui.endpoints.add_endpoints import add_endpoints
from studio.ui.file_fields import file_field
from studio.voices.editing import sample_number
from studio.voices.intake import Intake
from studio.voices.packs.pack import export_voice, import_pack
from studio.voices.transcript import compare
from studio.voices.voice_json import voice_json

WHOLE = 0.0
"""As the end of a cut: the clip's end."""
MIXED = -1
"""As its channel: all of them as one."""

Json = dict[str, Any]


class VoiceEndpoints:
    """What the endpoints do. Every refusal reaches the client as gradio_client's AppError with its message."""

    def __init__(self, studio: Studio) -> None:
        self._speech = studio.speech
        self._voices = studio.voices
        self._library = studio.library
        self._clips = studio.clips
        self._queues = studio.speech.queues
        self._files = studio.client_files

    def voice_get(self, *, voice: str) -> Json:
        """A voice in full, by id, slug or name, "@" and a revision after it if wanted."""
        return voice_json(self._library.voices.get(self._meant(voice)))

    async def voice_create(
        self,
        caller: gr.Request,
        *,
        name: str,
        audio: Upload | None = None,
        text: str,
        description: str,
        tags: str,
        language: str,
        licence: str,
        consent: str,
        **cut: float,
    ) -> Json:
        """Make a voice of a clip and the words in it; the words of a consent are recorded with it."""
        intake = await self._take_in(caller, audio, text, _cut(**cut))
        new = VoiceFields(
            name=name, description=description, tags=tuple(tags.split(",")), language=language, licence=licence
        )
        recorded = NewConsent(name, language, consent) if consent.strip() else None
        create = partial(self._library.voices.create, new, [intake.sample(text)], consent=recorded)
        return voice_json(await self._speech.save_voice(to_thread.run_sync(create)))

    def voice_update(
        self,
        *,
        voice: str,
        name: str | None = None,
        description: str | None = None,
        tags: str | None = None,
        language: str | None = None,
        licence: str | None = None,
        favourite: bool | None = None,
        defaults: Json | None = None,
    ) -> Json:
        """Change what is said of a voice; None leaves it as it is. defaults: such as {"temperature": 0.7}."""
        if defaults is not None and not isinstance(defaults, dict):
            raise InvalidRequest('defaults must be an object, such as {"temperature": 0.7}', "defaults")
        changes: Json = {
            "name": name,
            "description": description,
            "tags": None if tags is None else tuple(tags.split(",")),
            "language": language,
            "licence": licence,
            "favourite": favourite,
            "defaults": defaults,
        }
        given = VoiceFields(**{field: value for field, value in changes.items() if value is not None})
        return voice_json(self._library.voices.edit(self._library.voices.get(voice).id, given))

    def voice_delete(self, *, voice: str) -> Json:
        """Delete a voice; for undo_seconds it can be restored by its id over HTTP."""
        found = self._library.voices.delete(voice)
        return {"id": found.id, "deleted": True, "undo_seconds": self._library.trash.seconds}

    async def voice_export(self, caller: gr.Request, *, voice: str) -> ClientFile:
        """A voice as one .fishvoice file."""
        found = await to_thread.run_sync(self._library.voices.get, voice)
        pack = await self._queues.packs.run(caller.state.caller, export_voice, self._library, found.address)
        return await self._files.add_result(f"{found.slug}.fishvoice", [pack], caller.state.sees, caller.state.caller)

    async def voice_import(self, caller: gr.Request, *, pack: Upload | None = None, name: str) -> Json:
        """Put a .fishvoice file into the library, under another name if one is given."""
        if pack is None:
            raise InvalidRequest("pack is missing: give a .fishvoice file", "pack")
        packs = self._queues.packs
        saving = packs.run(caller.state.caller, import_pack, self._library, pack.data, name.strip() or None)
        return voice_json(await self._speech.save_voice(saving))

    async def voice_preview(self, caller: gr.Request, *, voice: str, sample: float) -> ClientFile:
        """A clip of a voice as the model hears it, cut and with its gain: a WAV file."""
        found = await to_thread.run_sync(lambda: self._library.voices.get(self._meant(voice)))
        chosen = sample_number(found, int(sample))
        data = await to_thread.run_sync(self._library.voices.clip, chosen)
        wav = await self._clips.preview(caller.state.caller, data, chosen.cut)
        return await self._files.add_result(f"{found.slug}.wav", [wav], caller.state.sees, caller.state.caller)

    async def analyze_reference(
        self, caller: gr.Request, *, audio: Upload | None = None, text: str, **cut: float
    ) -> Json:
        """Judge a clip before it is saved: score, findings with fixes, figures, and the cut that was judged."""
        return (await self._take_in(caller, audio, text, _cut(**cut))).as_json()

    async def transcribe(self, caller: gr.Request, *, audio: Upload | None = None, language: str, text: str) -> Json:
        """What is said in a clip, where a recogniser is installed; with a text, where the two differ."""
        intake, name = await self._take_in(caller, audio, text, Cut()), caller.state.caller
        heard = await self._clips.transcriber.transcribe(intake.clip, name, clean_language(language))
        words = heard.text[:MAX_TEXT]
        marks = await self._queues.texts.run(name, compare, text, words) if text.strip() else ()
        return asdict(heard) | {"marks": [asdict(mark) for mark in marks]}

    async def _take_in(self, caller: gr.Request, audio: Upload | None, text: str, cut: Cut) -> Intake:
        """A clip as it is cut, or as is suggested when nothing is said and it is too long."""
        if audio is None:
            raise InvalidRequest("audio is missing: give a recording of 1 to 30 seconds", "audio")
        return await self._clips.suggest(caller.state.caller, audio.data, text, cut, "audio")

    def _meant(self, voice: str) -> str:
        """OpenAI's names and "default" mean one of ours."""
        found = self._voices.find(voice)
        if found is None:
            raise NotFound(f"{voice!r} is another voice in every take: there is nothing to show", "voice")
        return f"{found.id}@{found.revision}"


def add_voice_endpoints(studio: Studio) -> None:
    """Add the endpoints to the Blocks being built."""
    endpoints = VoiceEndpoints(studio)
    with gr.Column(visible=False):
        answer, file = gr.JSON(), file_field()

        def text(label: str, value: str = "") -> gr.Textbox:
            return gr.Textbox(value, label=label)

        def number(label: str, value: float = 0) -> gr.Number:
            return gr.Number(value, label=label)

        cut: list[Component] = [number("start"), number("end"), number("gain_db"), number("channel", MIXED)]
        said: list[Component] = [text(name) for name in ("description", "tags", "language", "licence")]
        changes: list[Component] = [
            gr.Textbox(None, label=name) for name in ("name", "description", "tags", "language", "licence")
        ]
        changes += [gr.Dropdown([True, False], value=None, label="favourite"), gr.JSON(None, label="defaults")]
        clip = file_field("audio")
        add_endpoints(
            {
                endpoints.voice_get: ([text("voice", "default")], answer),
                endpoints.voice_create: ([text("name"), clip, text("text"), *cut, *said, text("consent")], answer),
                endpoints.voice_update: ([text("voice"), *changes], answer),
                endpoints.voice_delete: ([text("voice")], answer),
                endpoints.voice_export: ([text("voice")], file),
                endpoints.voice_import: ([file_field("pack"), text("name")], answer),
                endpoints.voice_preview: ([text("voice", "default"), number("sample")], file),
                endpoints.analyze_reference: ([clip, text("text"), *cut], answer),
                endpoints.transcribe: ([clip, text("language"), text("text")], answer),
            }
        )


def _cut(start: float, end: float, gain_db: float, channel: float) -> Cut:
    return Cut(start, end or None, gain_db, None if channel < 0 else int(channel))

"""The named endpoints for gradio_client about voices, over the library of page and API; frozen as those of speech."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import Any, TypeVar, cast

import gradio as gr
from anyio import to_thread
from gradio.components import Component

from engine import EngineError
from studio.audio.encode import pcm16, wav_header
from studio.errors import InvalidRequest, NotFound, StudioError
from studio.library import Cut, NewConsent, VoiceChanges, VoiceDraft
from studio.library.checks import MAX_TEXT, clean_language
from studio.library.client_files import ClientFile, Upload
from studio.services import Studio
from studio.ui.file_fields import file_field
from studio.voices.advisor import cut_json
from studio.voices.as_json import voice_json
from studio.voices.intake import Intake, sound_of
from studio.voices.packs.pack import export_voice, import_pack
from studio.voices.transcript import compare

WHOLE = 0.0
"""As the end of a cut: the clip's end."""
MIXED = -1
"""As its channel: all of them as one."""

Json = dict[str, Any]
Does = TypeVar("Does", bound=Callable[..., Any])


class VoiceEndpoints:
    """What the endpoints do. Every refusal reaches the client as gradio_client's AppError with its message."""

    def __init__(self, studio: Studio) -> None:
        self._speech = studio.speech
        self._voices = studio.voices
        self._library = studio.library
        self._clips = studio.clips
        self._queues = studio.speech.queues
        self._files = studio.client_files

    def voice_get(self, voice: str = "default") -> Json:
        """A voice in full, by id, slug or name, "@" and a revision after it if wanted."""
        return voice_json(self._library.voices.get(self._meant(voice)))

    async def voice_create(
        self,
        caller: gr.Request,
        name: str = "",
        audio: Upload | None = None,
        text: str = "",
        start: float = 0.0,
        end: float = WHOLE,
        gain_db: float = 0.0,
        channel: float = MIXED,
        description: str = "",
        tags: str = "",
        language: str = "",
        licence: str = "",
        consent: str = "",
    ) -> Json:
        """Make a voice of a clip and the words in it; the words of a consent are recorded with it."""
        intake = await self._take_in(caller, audio, text, _cut(start, end, gain_db, channel))
        draft = VoiceDraft(
            name=name,
            description=description,
            tags=tuple(tags.split(",")),
            language=language,
            licence=licence,
            consent=NewConsent(name, language, consent) if consent.strip() else None,
        )
        sample = intake.sample(text)
        return voice_json(
            await self._speech.save_voice(to_thread.run_sync(self._library.voices.create, draft, [sample]))
        )

    def voice_update(
        self,
        voice: str = "",
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
        found = self._library.voices.get(voice)
        changes = VoiceChanges(
            name=name,
            description=description,
            tags=None if tags is None else tuple(tags.split(",")),
            language=language,
            licence=licence,
            favourite=favourite,
            defaults=defaults,
        )
        return voice_json(self._library.voices.edit(found.id, changes))

    def voice_delete(self, voice: str = "") -> Json:
        """Delete a voice; for undo_seconds it can be restored by its id over HTTP."""
        found = self._library.voices.delete(voice)
        return {"id": found.id, "deleted": True, "undo_seconds": self._library.trash.seconds}

    async def voice_export(self, caller: gr.Request, voice: str = "") -> ClientFile:
        """A voice as one .fishvoice file."""
        found = await to_thread.run_sync(self._library.voices.get, voice)
        pack = await self._queues.packs.run(caller.state.caller, export_voice, self._library, found.address)
        return await self._files.add_result(f"{found.slug}.fishvoice", [pack], caller.state.sees, caller.state.caller)

    async def voice_import(self, caller: gr.Request, pack: Upload | None = None, name: str = "") -> Json:
        """Put a .fishvoice file into the library, under another name if one is given."""
        if pack is None:
            raise InvalidRequest("pack is missing: give a .fishvoice file", "pack")
        packs = self._queues.packs
        saving = packs.run(caller.state.caller, import_pack, self._library, pack.data, name.strip() or None)
        return voice_json(await self._speech.save_voice(saving))

    async def voice_preview(self, caller: gr.Request, voice: str = "default", sample: float = 0) -> ClientFile:
        """A clip of a voice as the model hears it, cut and with its gain: a WAV file."""
        slug, wav = await self._queues.clips.run(caller.state.caller, self._preview, voice, sample)
        return await self._files.add_result(f"{slug}.wav", [wav], caller.state.sees, caller.state.caller)

    def _preview(self, voice: str, sample: float) -> tuple[str, bytes]:
        """Blocking."""
        found = self._library.voices.get(self._meant(voice))
        if not 0 <= int(sample) < len(found.samples):
            raise NotFound(f"the voice {found.name!r} has no sample number {int(sample)}", "sample")
        chosen = found.samples[int(sample)]
        clip = sound_of(self._library.voices.clip(chosen), chosen.cut)
        return found.slug, wav_header(clip.sample_rate, len(clip.pcm)) + pcm16(clip.pcm)

    async def analyze_reference(
        self,
        caller: gr.Request,
        audio: Upload | None = None,
        text: str = "",
        start: float = 0.0,
        end: float = WHOLE,
        gain_db: float = 0.0,
        channel: float = MIXED,
    ) -> Json:
        """Judge a clip before it is saved: score, findings with fixes, figures, and the cut that was judged."""
        intake = await self._take_in(caller, audio, text, _cut(start, end, gain_db, channel))
        return {"seconds": intake.clip.seconds, "cut": cut_json(intake.cut)} | intake.advice.as_json()

    async def transcribe(
        self, caller: gr.Request, audio: Upload | None = None, language: str = "", text: str = ""
    ) -> Json:
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
    """Add the endpoints to the Blocks being built; their components are never shown."""
    endpoints = VoiceEndpoints(studio)
    with gr.Column(visible=False):
        told, file = gr.JSON(), file_field()
        trigger = gr.Button()

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
        inputs: dict[Callable[..., Any], tuple[list[Component], Component]] = {
            endpoints.voice_get: ([text("voice", "default")], told),
            endpoints.voice_create: (
                [text("name"), file_field("audio"), text("text"), *cut, *said, text("consent")],
                told,
            ),
            endpoints.voice_update: ([text("voice"), *changes], told),
            endpoints.voice_delete: ([text("voice")], told),
            endpoints.voice_export: ([text("voice")], file),
            endpoints.voice_import: ([file_field("pack"), text("name")], told),
            endpoints.voice_preview: ([text("voice", "default"), number("sample")], file),
            endpoints.analyze_reference: ([file_field("audio"), text("text"), *cut], told),
            endpoints.transcribe: ([file_field("audio"), text("language"), text("text")], told),
        }
    for does, (components, output) in inputs.items():
        trigger.click(
            _refusing(does),
            components,
            output,
            api_name=does.__name__,
            api_description=does.__doc__,
            concurrency_limit=None,  # the library and the engine keep their own order
        )


def _cut(start: float, end: float, gain_db: float, channel: float) -> Cut:
    return Cut(start, end or None, gain_db, None if channel < 0 else int(channel))


def _refusing(does: Does) -> Does:
    """The same, with refusals told in words."""

    def told(error: StudioError | EngineError) -> gr.Error:
        return gr.Error(str(error), title="The studio could not do this", print_exception=False)

    @wraps(does)
    async def later(*values: Any) -> Any:
        try:
            return await does(*values)
        except (StudioError, EngineError) as error:
            raise told(error) from error

    @wraps(does)
    def at_once(*values: Any) -> Any:
        try:
            return does(*values)
        except (StudioError, EngineError) as error:
            raise told(error) from error

    return cast(Does, later if inspect.iscoroutinefunction(does) else at_once)

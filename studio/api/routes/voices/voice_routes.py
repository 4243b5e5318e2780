"""The whole of the library over HTTP: /v1/voices, with samples, revisions, previews, packs and strong ETags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from io import BytesIO
from typing import Annotated, Any, TypeVar

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from studio.api.http.body import as_model, read_json
from studio.api.http.hangup import until_hangup
from studio.api.http.openapi import CUT, answers, reads, reads_form, sends
from studio.api.http.ranges import of_file, ranged
from studio.api.http.upload import Form, read_form
from studio.api.routes.voices.sample_forms import FORM_LIMIT, SAMPLE, cut_of, sample_of
from studio.api.schemas.list_page import list_page
from studio.api.schemas.voice_answers import version_wanted, voice_response
from studio.api.schemas.voice_bodies import ChosenSamples, NewName, SampleBody, VoiceBody
from studio.audio.read import MEDIA_TYPES
from studio.errors import InvalidRequest
from studio.library import Library, Voice
from studio.library.checks import MAX_TEXT, clean_language
from studio.library.client_files import Upload
from studio.library.voices.listing import Order
from studio.speech.speech_service import SpeechService
from studio.voices.clip_service import ClipService
from studio.voices.editing import (
    add_sample,
    choose_samples,
    duplicate,
    edit_sample,
    find_sample,
    go_back,
    remove_sample,
    sample_number,
)
from studio.voices.hearing.recogniser import Heard
from studio.voices.intake import Intake
from studio.voices.packs.pack import MAX_PACK, export_voice, import_pack, read_pack
from studio.voices.packs.pack import MEDIA_TYPE as PACK_TYPE
from studio.voices.packs.reference_folder import (
    MAX_FILES,
    ImportedReferences,
    import_archive,
    import_references,
    is_reference_archive,
)
from studio.voices.transcript import compare
from studio.voices.voice_json import sample_json, voice_json
from studio.work.work_queue import WorkQueue
from studio.work.work_queues import WorkQueues

Result = TypeVar("Result")

PACK_LIMIT = MAX_PACK + 64 * 1024

ADVISE = reads_form(*SAMPLE, "heard", required=("audio_sample",))
DENOISE = reads_form("audio_sample", *CUT, required=("audio_sample",)) | answers("audio/wav")
WRITE_DOWN = reads_form(*SAMPLE, "language", required=("audio_sample",))
ADD_SAMPLE = reads_form(*SAMPLE, "speaker", "language", required=("audio_sample",))

# What strangers have uploaded is never shown by a browser as anything but a file to save or to play.
_GUARDED = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'"}


class VoiceRoutes:
    """The routes, on these services."""

    def __init__(self, speech: SpeechService, library: Library, clips: ClipService, queues: WorkQueues) -> None:
        self._speech = speech
        self._library = library
        self._clips = clips
        self._queues = queues

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["library"])
        voice = "/v1/voices/{reference}"
        sample = voice + "/samples/{sample_id}"
        routes.post("/v1/voices/advise", openapi_extra=ADVISE)(self.advise)
        routes.post("/v1/voices/denoise", response_class=Response, openapi_extra=DENOISE)(self.denoise)
        routes.post("/v1/voices/transcribe", openapi_extra=WRITE_DOWN)(self.transcribe)
        routes.post("/v1/voices/inspect", openapi_extra=reads_form("file", required=("file",)))(self.inspect)
        pack = reads_form("file", "name", "replaces", required=("file",))
        routes.post("/v1/voices/import", openapi_extra=pack)(self.import_pack)
        routes.get(voice + "/export", **sends(PACK_TYPE))(self.export)
        routes.get("/v1/voices")(self.list_voices)
        routes.get(voice)(self.get_voice)
        routes.patch(voice, openapi_extra=reads(VoiceBody))(self.edit_voice)
        routes.delete(voice)(self.delete_voice)
        routes.post(voice + "/restore")(self.restore_voice)
        routes.get(voice + "/revisions")(self.list_revisions)
        routes.post(voice + "/revisions/{revision}/restore")(self.go_back)
        routes.post(voice + "/duplicate", openapi_extra=reads(NewName))(self.duplicate)
        routes.get(voice + "/preview", **sends("audio/wav"))(self.preview)
        routes.get(voice + "/samples")(self.list_samples)
        routes.post(voice + "/samples", openapi_extra=ADD_SAMPLE)(self.add_sample)
        routes.put(voice + "/samples", openapi_extra=reads(ChosenSamples))(self.choose_samples)
        routes.patch(sample, openapi_extra=reads(SampleBody))(self.edit_sample)
        routes.delete(sample)(self.remove_sample)
        routes.get(sample + "/audio", **sends(*MEDIA_TYPES.values()))(self.get_clip)
        return routes

    def list_voices(
        self,
        q: str = "",
        tag: Annotated[tuple[str, ...], Query()] = (),
        gender: str = "",
        accent: str = "",
        language: str = "",
        favourite: bool | None = None,
        order: Order = "name",
        limit: Annotated[int, Query(ge=1, le=100)] = 50,
        after: str | None = None,
        deleted: bool = False,
    ) -> JSONResponse:
        """Voices; ``q`` searches, every ``tag`` must be there, ``deleted=true`` lists those in the trash,
        the last deleted first.

        ``tags``, ``genders``, ``accents`` and ``languages`` of the answer are those of the whole library.
        """
        voices = self._library.voices
        wanted: dict[str, Any] = {"tags": tag, "gender": gender, "accent": accent, "language": language}
        wanted |= {"favourite": favourite, "deleted": deleted, "order": order, "limit": limit + 1, "after": after}
        return JSONResponse(list_page(voices.page(q, **wanted), limit, voice_json) | voices.offered())

    def get_voice(self, reference: str, request: Request) -> Response:
        """A voice by id, slug or name, in the revision after an "@" or the newest."""
        return voice_response(request, self._library.voices.get(reference))

    async def edit_voice(self, reference: str, request: Request) -> Response:
        """Change what is said of a voice: its name, facts, favourite, licence, consent and defaults."""
        changes = as_model(await read_json(request), VoiceBody)
        voice = await self._get(reference)
        edit = partial(self._library.voices.edit, voice.id, changes, version_wanted(request, voice.id))
        return voice_response(request, await to_thread.run_sync(edit))

    def delete_voice(self, reference: str, request: Request) -> JSONResponse:
        """Delete a voice; for ``undo_seconds`` POST …/restore with its id brings it back."""
        voice = self._library.voices.get(reference)
        self._library.voices.delete(voice.id, version_wanted(request, voice.id))
        undo = self._library.trash.seconds
        return JSONResponse({"id": voice.id, "object": "voice.deleted", "deleted": True, "undo_seconds": undo})

    def restore_voice(self, reference: str, request: Request) -> Response:
        """Restore a deleted voice, by its id."""
        return voice_response(request, self._library.voices.restore(reference))

    def list_revisions(self, reference: str) -> JSONResponse:
        """Every revision of a voice with its samples, newest first."""
        revisions = self._library.voices.revisions(reference)
        return JSONResponse({"object": "list", "data": [voice_json(voice) for voice in revisions]})

    def list_samples(self, reference: str) -> JSONResponse:
        """The samples of a voice, in the order of the prompt."""
        voice = self._library.voices.get(reference)
        return JSONResponse({"object": "list", "data": [sample_json(sample) for sample in voice.samples]})

    async def add_sample(self, reference: str, request: Request) -> Response:
        """Add a sample: multipart with audio_sample and ref_text; start, end, gain_db, channel, denoise,
        speaker if wanted.

        Without ref_text, the recogniser writes the words down, in ``language`` if that is given.
        """
        form = await read_form(request, FORM_LIMIT, "audio_sample")
        voice = await self._get(reference)
        version = version_wanted(request, voice.id)

        async def add() -> Voice:
            new = await sample_of(form, self._clips, request.state.caller)
            return await to_thread.run_sync(add_sample, self._library, voice.id, new, version)

        return voice_response(request, await until_hangup(request, self._speech.save_voice(add())))

    async def edit_sample(self, reference: str, sample_id: str, request: Request) -> Response:
        """Change a sample's text, speaker or cut, which makes a new revision."""
        body = as_model(await read_json(request), SampleBody)
        edit = partial(edit_sample, text=body.text, speaker=body.speaker, cut=body.cut.cut() if body.cut else None)
        return await self._revised(request, reference, edit, sample_id)

    async def choose_samples(self, reference: str, request: Request) -> Response:
        """Use these samples of any of the voice's revisions, in this order, which makes a new revision."""
        chosen = as_model(await read_json(request), ChosenSamples).samples
        return await self._revised(request, reference, choose_samples, chosen)

    async def go_back(self, reference: str, revision: int, request: Request) -> Response:
        """Speak with the samples of an old revision again, which makes a new one."""
        return await self._revised(request, reference, go_back, revision)

    async def duplicate(self, reference: str, request: Request) -> Response:
        """A copy of the voice under a name of its own, to change without changing this one."""
        name = as_model(await read_json(request), NewName).name
        return await self._saved(request, duplicate, reference, name)

    async def remove_sample(self, reference: str, sample_id: str, request: Request) -> Response:
        """Remove a sample, which makes a new revision."""
        return await self._revised(request, reference, remove_sample, sample_id)

    def get_clip(self, reference: str, sample_id: str, request: Request) -> Response:
        """The clip of a sample as it was uploaded, or a range of it."""
        sample = find_sample(self._library.voices.get(reference), sample_id)
        clip = BytesIO(self._library.voices.clip(sample))
        headers = _GUARDED | {"Content-Disposition": "attachment"}
        return ranged(request, sample.size, sample.clip, partial(of_file, clip), sample.media_type, headers)

    async def preview(self, reference: str, request: Request, sample: int = 0) -> Response:
        """A sample as it is heard by the model, cut and with its gain: a WAV file."""
        voice = await self._get(reference)
        chosen = sample_number(voice, sample)
        data = await to_thread.run_sync(self._library.voices.clip, chosen)
        wav = await until_hangup(request, self._clips.preview(request.state.caller, data, chosen.cut))
        return Response(wav, media_type="audio/wav", headers=_GUARDED)

    async def advise(self, request: Request) -> JSONResponse:
        """Judge a clip before it is saved: multipart with audio_sample, ref_text if known, and a cut if wanted.

        For a file that is too long and no cut, the cut that is suggested is judged; ``cut`` is the one that was.
        With ``heard``, the words that a recogniser heard, ``marks`` are the pieces of ref_text, and what was heard
        where they differ.
        """
        form = await read_form(request, FORM_LIMIT, "audio_sample")
        text, heard = form.text("ref_text", "transcript"), form.text("heard")
        intake = await until_hangup(request, self._taken_in(form, text, request.state.caller))
        advice = {"object": "voice.advice"} | intake.as_json()
        if heard:
            advice["marks"] = await self._marks(request, text, heard)
        return JSONResponse(advice)

    async def denoise(self, request: Request) -> Response:
        """A clip as it is kept with ``denoise``: multipart with audio_sample, and a cut if wanted; a WAV file.

        Answers 501 where no noise reduction is installed.
        """
        form = await read_form(request, FORM_LIMIT, "audio_sample")
        data, cut, caller = form.file("audio_sample", "file"), cut_of(form), request.state.caller

        async def clean() -> bytes:
            intake = await self._clips.suggest(caller, data, "", cut, "audio_sample")
            return await self._clips.clean(caller, intake.clip)

        return Response(await until_hangup(request, clean()), media_type="audio/wav", headers=_GUARDED)

    async def transcribe(self, request: Request) -> JSONResponse:
        """What is said in a clip: multipart with audio_sample, and a cut and the language if wanted.

        Answers 501 where no recogniser is installed. With ref_text, ``marks`` are as for advice.
        """
        form = await read_form(request, FORM_LIMIT, "audio_sample")
        text, caller = form.text("ref_text", "transcript"), request.state.caller

        async def hear() -> tuple[float, Heard]:
            clip = (await self._taken_in(form, text, caller)).clip
            heard = await self._clips.transcriber.transcribe(clip, caller, clean_language(form.text("language")))
            return clip.seconds, heard

        seconds, heard = await until_hangup(request, hear())
        transcript = {"object": "voice.transcript", "seconds": seconds} | asdict(heard)
        if text:
            transcript["marks"] = await self._marks(request, text, heard.text[:MAX_TEXT])
        return JSONResponse(transcript)

    async def export(self, reference: str, request: Request) -> Response:
        """The voice as a pack: one file with its clips, words, licence and consent."""
        slug = (await self._get(reference)).slug
        disposition = f'attachment; filename="{slug}.fishvoice"'
        headers = _GUARDED | {"Content-Disposition": disposition}
        pack = await self._in(self._queues.packs, request, export_voice, self._library, reference)
        return Response(pack, media_type=PACK_TYPE, headers=headers)

    async def inspect(self, request: Request) -> JSONResponse:
        """What is in a pack (multipart: file), checked as for an import; nothing is kept."""
        form = await read_form(request, PACK_LIMIT, "file")
        pack = await self._in(self._queues.packs, request, read_pack, form.file("file", "pack"))
        return JSONResponse({"object": "voice.pack"} | pack.as_json())

    async def import_pack(self, request: Request) -> Response:
        """Put a pack into the library. Multipart: file; name: another name for it; or replaces: the voice whose next
        revision its clips shall be. As file also a zip of a folder of fish-speech's references, or several files with
        their paths in such a folder: then the answer lists the voices."""
        form = await read_form(request, PACK_LIMIT, "file", MAX_FILES)
        name, replaces = form.text("name") or None, form.text("replaces") or None
        data, several = form.file("file", "pack"), form.uploads.get("file", [])
        if len(several) > 1 or await self._in(self._queues.packs, request, is_reference_archive, data):
            if name or replaces:
                what = "name" if name else "replaces"
                raise InvalidRequest(
                    f"{what} is for voice packs; a folder's voices have the names of its folders", what
                )
            work = partial(_import_references, self._library, several, data)
            return _imported(await self._in(self._queues.packs, request, work))
        save = self._queues.packs.run(request.state.caller, import_pack, self._library, data, name, replaces)
        return voice_response(request, await until_hangup(request, self._speech.save_voice(save)))

    async def _taken_in(self, form: Form, text: str, caller: str) -> Intake:
        """The clip of a form, judged as it will be kept: without its noise if that is wanted."""
        data = form.file("audio_sample", "file")
        return await self._clips.suggest(caller, data, text, cut_of(form), "audio_sample", form.flag("denoise"))

    async def _marks(self, request: Request, text: str, heard: str) -> list[dict[str, Any]]:
        return [asdict(mark) for mark in await self._in(self._queues.texts, request, compare, text, heard)]

    async def _revised(self, request: Request, reference: str, revise: Callable[..., Voice], change: Any) -> Response:
        """The answer once ``revise``, which may decode clips, has made the voice's new revision."""
        voice = await self._get(reference)
        return await self._saved(request, revise, voice.id, change, version_wanted(request, voice.id))

    async def _saved(self, request: Request, save: Callable[..., Voice], *values: Any) -> Response:
        saving = self._queues.clips.run(request.state.caller, save, self._library, *values)
        return voice_response(request, await until_hangup(request, self._speech.save_voice(saving)))

    async def _in(self, queue: WorkQueue, request: Request, work: Callable[..., Result], *values: Any) -> Result:
        return await until_hangup(request, queue.run(request.state.caller, work, *values))

    async def _get(self, reference: str) -> Voice:
        return await to_thread.run_sync(self._library.voices.get, reference)


def _import_references(library: Library, several: list[Upload], data: bytes) -> ImportedReferences:
    """Of files by their paths, or of an archive. Blocking."""
    if len(several) > 1:
        return import_references(library, {file.name: partial(_sent, file.data) for file in several})
    return import_archive(library, data)


def _sent(data: bytes, limit: int) -> bytes:
    return data[: limit + 1]


def _imported(imported: ImportedReferences) -> Response:
    voices = [voice_json(voice) for voice in imported.voices]
    refused = [{"name": path, "message": why} for path, why in imported.refused.items()]
    return JSONResponse({"object": "list", "data": voices, "refused": refused})

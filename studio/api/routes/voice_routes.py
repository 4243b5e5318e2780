"""The voice library over HTTP: /v1/voices, with samples, revisions, previews, packs and strong ETags."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from audio.read import MEDIA_TYPES
from speechtext.transcript import MAX_TEXT, compare
from studio.api.body import JsonBody
from studio.api.field_types import list_page
from studio.api.openapi import CUT, answers, reads_form, sends
from studio.api.queued import LibraryRoute
from studio.api.routes.voice_forms import (
    FORM_LIMIT,
    SAMPLE,
    ChosenSamples,
    NewName,
    SampleBody,
    VoiceBody,
    cut_of,
    expected_version,
    sample_of,
    voice_response,
)
from studio.api.sending import file_reader, range_response, until_hangup
from studio.api.upload import Form, read_form
from studio.errors import InvalidRequest
from studio.library import Library, Voice
from studio.library.checks import clean_language
from studio.library.client_files import Upload
from studio.library.listing import Order
from studio.speech.speech_service import SpeechService
from studio.voices.clip_service import ClipService
from studio.voices.editing import (
    add_sample,
    choose_samples,
    duplicate,
    edit_sample,
    find_sample,
    remove_sample,
    restore_revision,
    sample_at,
)
from studio.voices.intake import Intake
from studio.voices.pack import MAX_PACK, export_voice, import_pack, read_pack
from studio.voices.pack import MEDIA_TYPE as PACK_TYPE
from studio.voices.recogniser import Transcription
from studio.voices.reference_folder import (
    MAX_FILES,
    ImportedReferences,
    import_archive,
    import_references,
    is_reference_archive,
)
from studio.voices.resolver import sample_json, voice_json
from studio.work import WorkQueue, WorkQueues, read, write

Result = TypeVar("Result")

PACK_LIMIT = MAX_PACK + 64 * 1024

ADVISE = reads_form(*SAMPLE, "heard", required=("audio_sample",))
DENOISE = reads_form("audio_sample", *CUT, required=("audio_sample",)) | answers("audio/wav")
WRITE_DOWN = reads_form(*SAMPLE, "language", required=("audio_sample",))
ADD_SAMPLE = reads_form(*SAMPLE, "speaker", "language", required=("audio_sample",))

# Browsers must only save or play uploaded files, never display them.
_GUARDED = {"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "sandbox; default-src 'none'"}


class VoiceRoutes:
    def __init__(self, speech: SpeechService, library: Library, clips: ClipService, queues: WorkQueues) -> None:
        self._speech = speech
        self._library = library
        self._clips = clips
        self._queues = queues

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["library"], route_class=LibraryRoute)
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
        routes.patch(voice)(self.edit_voice)
        routes.delete(voice)(self.delete_voice)
        routes.post(voice + "/restore")(self.restore_voice)
        routes.get(voice + "/revisions")(self.list_revisions)
        routes.post(voice + "/revisions/{revision}/restore")(self.go_back)
        routes.post(voice + "/duplicate")(self.duplicate)
        routes.get(voice + "/preview", **sends("audio/wav"))(self.preview)
        routes.get(voice + "/samples")(self.list_samples)
        routes.post(voice + "/samples", openapi_extra=ADD_SAMPLE)(self.add_sample)
        routes.put(voice + "/samples")(self.choose_samples)
        routes.patch(sample)(self.edit_sample)
        routes.delete(sample)(self.remove_sample)
        routes.get(sample + "/audio", **sends(*MEDIA_TYPES.values()))(self.get_clip)
        return routes

    def list_voices(
        self,
        request: Request,
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
        """Voices; ``q`` searches, all ``tag`` values must match, ``deleted=true`` lists the trash, newest first.

        ``tags``, ``genders``, ``accents`` and ``languages`` in the answer are from all voices of the library that the
        caller may see.
        """
        voices = self._library_of(request).voices
        filters: dict[str, Any] = {"tags": tag, "gender": gender, "accent": accent, "language": language}
        filters |= {"favourite": favourite, "deleted": deleted, "order": order, "limit": limit + 1, "after": after}
        return JSONResponse(list_page(voices.page(q, **filters), limit, voice_json) | voices.offered())

    def get_voice(self, reference: str, request: Request) -> Response:
        """A voice by id, slug or name; the revision after an "@", or the newest."""
        return voice_response(request, self._library_of(request).voices.get(reference))

    async def edit_voice(self, reference: str, body: JsonBody[VoiceBody], request: Request) -> Response:
        """Edit a voice's details: name, facts, favourite, licence, consent, defaults; its owner also ``sharing``."""
        voice = await self._get(request, reference)
        edit = partial(self._library_of(request).voices.edit, voice.id, body, expected_version(request, voice.id))
        return voice_response(request, await write(edit))

    def delete_voice(self, reference: str, request: Request) -> JSONResponse:
        """Delete a voice; for ``undo_seconds`` POST …/restore with its id restores it."""
        voices = self._library_of(request).voices
        voice = voices.get(reference)
        voices.delete(voice.id, expected_version(request, voice.id))
        undo = self._library.trash.seconds
        return JSONResponse({"id": voice.id, "object": "voice.deleted", "deleted": True, "undo_seconds": undo})

    def restore_voice(self, reference: str, request: Request) -> Response:
        """Restore a deleted voice by its id."""
        return voice_response(request, self._library_of(request).voices.restore(reference))

    def list_revisions(
        self,
        reference: str,
        request: Request,
        limit: Annotated[int, Query(ge=1, le=100)] = 50,
        after: Annotated[int | None, Query(ge=1, lt=2**63)] = None,
    ) -> JSONResponse:
        """Revisions of a voice with their samples, newest first; ``after`` is ``last_id``, a revision's number."""
        revisions = self._library_of(request).voices.revisions(reference, limit + 1, after)
        last_id = revisions[:limit][-1].revision if revisions else None
        return JSONResponse(list_page(revisions, limit, voice_json) | {"last_id": last_id})

    def list_samples(self, reference: str, request: Request) -> JSONResponse:
        """The samples of a voice, in the order of the prompt."""
        voice = self._library_of(request).voices.get(reference)
        return JSONResponse({"object": "list", "data": [sample_json(sample) for sample in voice.samples]})

    async def add_sample(self, reference: str, request: Request) -> Response:
        """Add a sample: multipart with audio_sample and ref_text; optionally start, end, gain_db, channel, denoise,
        speaker. Without ref_text, the clip is transcribed, in ``language`` if that is given."""
        form = await read_form(request, FORM_LIMIT, "audio_sample")
        voice = await self._get(request, reference)
        library, version = self._library_of(request), expected_version(request, voice.id)

        async def add() -> Voice:
            sample = await sample_of(form, self._clips, request.state.caller)
            return await write(add_sample, library, voice.id, sample, version)

        return voice_response(request, await until_hangup(request, self._speech.save_voice(add())))

    async def edit_sample(
        self, reference: str, sample_id: str, body: JsonBody[SampleBody], request: Request
    ) -> Response:
        """Edit a sample's text, speaker or cut; this creates a new revision."""
        edit = partial(edit_sample, text=body.text, speaker=body.speaker, cut=body.cut.cut() if body.cut else None)
        return await self._revised(request, reference, edit, sample_id)

    async def choose_samples(self, reference: str, body: JsonBody[ChosenSamples], request: Request) -> Response:
        """Use these samples from any revisions of the voice, in this order; this creates a new revision."""
        return await self._revised(request, reference, choose_samples, body.samples)

    async def go_back(self, reference: str, revision: int, request: Request) -> Response:
        """Return to the samples of an old revision; this creates a new revision."""
        return await self._revised(request, reference, restore_revision, revision)

    async def duplicate(self, reference: str, body: JsonBody[NewName], request: Request) -> Response:
        """Copy the voice under a new name."""
        return await self._saved(request, duplicate, reference, body.name)

    async def remove_sample(self, reference: str, sample_id: str, request: Request) -> Response:
        """Remove a sample; this creates a new revision."""
        return await self._revised(request, reference, remove_sample, sample_id)

    def get_clip(self, reference: str, sample_id: str, request: Request) -> Response:
        """The clip of a sample as uploaded, or a range of it."""
        sample = find_sample(self._library_of(request).voices.get(reference), sample_id)
        self._library.voices.clip(sample)  # so that a damaged one is refused; it is sent from its file
        clip, headers = self._library.files.path(sample.clip), _GUARDED | {"Content-Disposition": "attachment"}
        return range_response(request, sample.size, sample.clip, file_reader(clip), sample.media_type, headers)

    async def preview(self, reference: str, request: Request, sample: int = 0) -> Response:
        """A sample as the model gets it, with cut and gain applied: a WAV file."""
        voice = await self._get(request, reference)
        chosen = sample_at(voice, sample)
        data = await read(self._library.voices.clip, chosen)
        wav = await until_hangup(request, self._clips.preview(request.state.caller, data, chosen.cut))
        return Response(wav, media_type="audio/wav", headers=_GUARDED)

    async def advise(self, request: Request) -> JSONResponse:
        """Rate a clip before it is saved: multipart with audio_sample, optionally ref_text and a cut.

        ``closest`` is the bundled voice that it sounds most like, in per cent from 0 (another person) to 100 (another
        recording of the same person); null with less than a second of speech, and without bundled voices.
        For a file that is too long without a cut, a suggested cut is rated; ``cut`` is the one that was used.
        With ``heard``, a recogniser's transcript, ``marks`` are the pieces of ref_text with the differences.
        """
        form = await read_form(request, FORM_LIMIT, "audio_sample")
        text, heard = form.text("ref_text", "transcript"), form.text("heard")
        intake = await until_hangup(request, self._judge(form, text, request.state.caller))
        closest = await until_hangup(request, self._clips.closest(request.state.caller, intake))
        advice = {"object": "voice.advice"} | intake.as_json() | {"closest": closest and asdict(closest)}
        if heard:
            advice["marks"] = await self._marks(request, text, heard)
        return JSONResponse(advice)

    async def denoise(self, request: Request) -> Response:
        """A clip as stored with ``denoise``, as a WAV file: multipart with audio_sample, optionally a cut.

        Answers 501 if noise reduction is not installed.
        """
        form = await read_form(request, FORM_LIMIT, "audio_sample")
        data, cut, caller = form.file("audio_sample", "file"), cut_of(form), request.state.caller

        async def clean() -> bytes:
            intake = await self._clips.suggest(caller, data, "", cut, "audio_sample")
            return await self._clips.clean(caller, intake.clip)

        return Response(await until_hangup(request, clean()), media_type="audio/wav", headers=_GUARDED)

    async def transcribe(self, request: Request) -> JSONResponse:
        """Transcribe a clip: multipart with audio_sample, optionally a cut and the language.

        Answers 501 if no recogniser is installed. With ref_text, ``marks`` are as for advice.
        """
        form = await read_form(request, FORM_LIMIT, "audio_sample")
        text, caller = form.text("ref_text", "transcript"), request.state.caller

        async def hear() -> tuple[float, Transcription]:
            clip, language = (await self._judge(form, text, caller)).clip, clean_language(form.text("language"))
            transcription = await self._clips.transcriber.transcribe(clip, caller, language)
            return clip.seconds, transcription

        seconds, transcription = await until_hangup(request, hear())
        transcript = {"object": "voice.transcript", "seconds": seconds} | asdict(transcription)
        if text:
            transcript["marks"] = await self._marks(request, text, transcription.text[:MAX_TEXT])
        return JSONResponse(transcript)

    async def export(self, reference: str, request: Request) -> Response:
        """The voice as a pack: one file with its clips, transcripts, licence and consent."""
        slug = (await self._get(request, reference)).slug
        headers = _GUARDED | {"Content-Disposition": f'attachment; filename="{slug}.fishvoice"'}
        pack = await self._run(self._queues.packs, request, export_voice, self._library_of(request), reference)
        return Response(pack, media_type=PACK_TYPE, headers=headers)

    async def inspect(self, request: Request) -> JSONResponse:
        """The contents of a pack (multipart: file), checked as for an import; nothing is stored."""
        form = await read_form(request, PACK_LIMIT, "file")
        pack = await self._run(self._queues.packs, request, read_pack, form.file("file", "pack"))
        return JSONResponse({"object": "voice.pack"} | pack.as_json())

    async def import_pack(self, request: Request) -> Response:
        """Import a pack. Multipart: file; optionally name: a new name, or replaces: a voice that gets the clips as its
        next revision. The file may also be a zip of fish-speech's references folder, or there may be several files with
        their paths in it: then the response lists the voices."""
        form = await read_form(request, PACK_LIMIT, "file", MAX_FILES)
        name, replaces = form.text("name") or None, form.text("replaces") or None
        data, uploads, library = form.file("file", "pack"), form.uploads.get("file", []), self._library_of(request)
        if len(uploads) > 1 or await self._run(self._queues.packs, request, is_reference_archive, data):
            if name or replaces:
                field = "name" if name else "replaces"
                why = "the voices of a folder have the names of its subfolders"
                raise InvalidRequest(f"{field} is for voice packs; {why}", field)
            work = partial(_import_references, library, uploads, data)
            return _imported(await self._run(self._queues.packs, request, work))
        save = self._queues.packs.run(request.state.caller, import_pack, library, data, name, replaces)
        return voice_response(request, await until_hangup(request, self._speech.save_voice(save)))

    async def _judge(self, form: Form, text: str, caller: str) -> Intake:
        """The clip of a form, rated as it will be stored: without noise if requested."""
        data, without_noise = form.file("audio_sample", "file"), form.value("denoise", bool) or False
        return await self._clips.suggest(caller, data, text, cut_of(form), "audio_sample", without_noise)

    async def _marks(self, request: Request, text: str, heard: str) -> list[dict[str, Any]]:
        return [asdict(mark) for mark in await self._run(self._queues.texts, request, compare, text, heard)]

    async def _revised(self, request: Request, reference: str, revise: Callable[..., Voice], change: Any) -> Response:
        """The response once ``revise``, which may decode clips, has created the voice's new revision."""
        voice = await self._get(request, reference)
        return await self._saved(request, revise, voice.id, change, expected_version(request, voice.id))

    async def _saved(self, request: Request, save: Callable[..., Voice], *values: Any) -> Response:
        work = self._queues.clips.run(request.state.caller, save, self._library_of(request), *values)
        return voice_response(request, await until_hangup(request, self._speech.save_voice(work)))

    async def _run(self, queue: WorkQueue, request: Request, work: Callable[..., Result], *values: Any) -> Result:
        return await until_hangup(request, queue.run(request.state.caller, work, *values))

    async def _get(self, request: Request, reference: str) -> Voice:
        return await read(self._library_of(request).voices.get, reference)

    def _library_of(self, request: Request) -> Library:
        return self._library.seen_by(request.state.owner_filter)


def _import_references(library: Library, uploads: list[Upload], data: bytes) -> ImportedReferences:
    """Import several files by their paths, or an archive. Blocking."""
    if len(uploads) > 1:
        return import_references(library, {file.name: partial(_truncated, file.data) for file in uploads})
    return import_archive(library, data)


def _truncated(data: bytes, limit: int) -> bytes:
    return data[: limit + 1]


def _imported(imported: ImportedReferences) -> Response:
    voices = [voice_json(voice) for voice in imported.voices]
    refused = [{"name": path, "message": reason} for path, reason in imported.refused.items()]
    return JSONResponse({"object": "list", "data": voices, "refused": refused})

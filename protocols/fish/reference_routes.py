"""/v1/references and /v1/health of fish-speech's server: voices by name, in JSON or MessagePack."""

from __future__ import annotations

import re
from collections.abc import Awaitable

from anyio import to_thread
from fastapi import APIRouter, Request
from fastapi.responses import Response

from audio.read import MAX_BYTES
from protocols.fish.fish_body import ALL_TYPES, MESSAGE_PACK, answer, read_files
from protocols.new_voices import NewVoices
from studio.api.error_responses import ApiError, describe
from studio.api.openapi import reads_form
from studio.api.sending import until_hangup
from studio.api.upload import Form
from studio.errors import REFUSALS, InvalidRequest
from studio.library import Library, VoiceFields
from studio.speech.speech_service import SpeechService
from studio.work import write

LIMIT = MAX_BYTES + 256 * 1024
NEW = reads_form("audio", "id", "text", required=("audio", "id", "text"), more_types=(MESSAGE_PACK,))
NAMED = reads_form(None, "reference_id", required=("reference_id",), more_types=ALL_TYPES)
_NAMES = ("old_reference_id", "new_reference_id")
RENAMED = reads_form(None, *_NAMES, required=_NAMES, more_types=ALL_TYPES)
_ID = re.compile(r"[a-zA-Z0-9\-_ ]{1,255}")


class ReferenceRoutes:
    """The routes of fish-speech's server besides /v1/tts. Errors have the form of answers, with success false."""

    def __init__(self, speech: SpeechService, voices: NewVoices) -> None:
        self._speech, self._voices, self._library = speech, voices, voices.library

    def router(self) -> APIRouter:
        routes = APIRouter(tags=["fish-speech"])
        routes.post("/v1/health", include_in_schema=False)(self.health)
        routes.get("/v1/health")(self.health)
        routes.post("/v1/references/add", openapi_extra=NEW)(self.add)
        routes.get("/v1/references/list")(self.list_references)
        routes.delete("/v1/references/delete", openapi_extra=NAMED)(self.delete)
        routes.post("/v1/references/update", openapi_extra=RENAMED)(self.update)
        return routes

    async def health(self, request: Request) -> Response:
        """Report that the server runs."""
        return answer(request, {"status": "ok"})

    async def list_references(self, request: Request) -> Response:
        """The names of all voices, sorted; as MessagePack unless JSON is asked for, as fish-speech's scripts expect."""
        voices = await to_thread.run_sync(self._library_of(request).voices.all)
        names = sorted(voice.name for voice in voices)
        listed = {"success": True, "reference_ids": names, "message": f"{len(names)} voices"}
        return answer(request, listed, default="msgpack")

    async def add(self, request: Request) -> Response:
        """Create a voice: its name as ``id``, a clip of 1 to 30 s as ``audio``, its transcript as ``text``."""
        form = await read_files(request, LIMIT, "audio", 1)
        name = form.text("id")
        work = until_hangup(request, self._add(name, form, request))
        return await _answer(request, "added", work, reference_id=name)

    async def _add(self, name: str, form: Form, request: Request) -> None:
        """Raises InvalidRequest, InvalidClip, NameTaken."""
        name, text = _check_id("id", name), form.text("text")
        if not text:
            raise InvalidRequest("text is missing or blank: send the words spoken in audio", "text")
        form.file("audio")
        samples = await self._voices.samples(form.uploads["audio"], [text], False, request.state.caller)
        create = self._library_of(request).voices.create
        await self._speech.save_voice(write(create, VoiceFields(name=name), samples))

    async def delete(self, request: Request) -> Response:
        """Delete the voice ``reference_id``; POST /v1/voices/{reference}/restore undoes it for a while."""
        name = (await read_files(request, LIMIT, "audio", 1)).text("reference_id")

        def delete() -> None:
            self._library_of(request).voices.delete(_check_id("reference_id", name))

        return await _answer(request, "deleted", write(delete), reference_id=name)

    async def update(self, request: Request) -> Response:
        """Rename the voice ``old_reference_id`` to ``new_reference_id``."""
        form = await read_files(request, LIMIT, "audio", 1)
        old_id, new_id = form.text("old_reference_id"), form.text("new_reference_id")

        def rename() -> None:
            if old_id == new_id:
                raise InvalidRequest("the new name is the same as the old one", "new_reference_id")
            changes = VoiceFields(name=_check_id("new_reference_id", new_id))
            self._library_of(request).voices.edit(_check_id("old_reference_id", old_id), changes)

        names = {"old_reference_id": old_id, "new_reference_id": new_id}
        return await _answer(request, "renamed", write(rename), **names)

    def _library_of(self, request: Request) -> Library:
        return self._library.seen_by(request.state.owner_filter)


def _check_id(field: str, name: str) -> str:
    """Raises InvalidRequest."""
    if not _ID.fullmatch(name):
        raise InvalidRequest(f"{field} must be 1 to 255 letters, digits, spaces, - or _", field)
    return name


async def _answer(request: Request, message: str, work: Awaitable[None], **names: str) -> Response:
    """The answer once the work is done or has failed."""
    try:
        await work
    except (*REFUSALS, ApiError) as error:
        refusal = describe(error)
        response = answer(request, {"success": False, "message": refusal.message} | names, refusal.status)
        response.headers.update(refusal.headers)
        return response
    return answer(request, {"success": True, "message": message} | names)

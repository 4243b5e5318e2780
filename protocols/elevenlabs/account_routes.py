"""Models, an account with fixed values, the history of takes, and transcripts, for ElevenLabs' clients."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from protocols.elevenlabs.eleven_names import PREFIX, eleven_id, reference_of
from protocols.elevenlabs.eleven_voices import text_of
from studio.api.access import account_of
from studio.api.openapi import reads_form, sends
from studio.api.routes.take_routes import stored_audio
from studio.api.sending import until_hangup
from studio.api.upload import Form, read_form
from studio.errors import InvalidRequest
from studio.library import TakeFilter
from studio.library.take import Take
from studio.services import Studio
from studio.speech.request import MAX_INPUT
from studio.voices.recogniser import Word
from studio.voices.recordings import FORM_LIMIT, transcribed

PLENTY = 1_000_000_000
"""Characters of the account, which are never used up."""
RECORDING = reads_form("file", "model_id", "language_code", "timestamps_granularity", required=("file",))
LATEST = 2.0**33
"""Seconds since 1970: the year 2242."""
_NONE = "next_character_count_reset_unix billing_period character_refresh_period next_invoice"
_ZERO = (
    "character_count max_character_limit_extension max_credit_limit_extension voice_slots_used voice_add_edit_counter "
    "professional_voice_limit professional_voice_slots_used professional_voice_slots_used_in_workspace"
)
_NO = (
    "can_extend_character_limit allowed_to_extend_character_limit can_extend_voice_limit has_open_invoices "
    "can_use_professional_voice_cloning"
)
SUBSCRIPTION: dict[str, Any] = {
    "tier": "free",
    "status": "free",
    "can_use_instant_voice_cloning": True,
    "currency": "usd",
    "current_overage": {"amount": "0", "currency": "usd"},
    "open_invoices": [],
    **dict.fromkeys(("character_limit", "voice_limit", "max_voice_add_edits"), PLENTY),
    **dict.fromkeys(_NONE.split()),
    **dict.fromkeys(_ZERO.split(), 0),
    **dict.fromkeys(_NO.split(), False),
}
"""All fields that the SDK for Node requires."""


class AccountRoutes:
    def __init__(self, studio: Studio) -> None:
        self._studio = studio

    def router(self) -> APIRouter:
        routes = APIRouter(prefix=PREFIX, tags=["elevenlabs"])
        item = "/v1/history/{history_item_id}"
        routes.get("/v1/models")(self.models)
        routes.get("/v1/user")(self.user)
        routes.get("/v1/user/subscription")(self.subscription)
        routes.get("/v1/history")(self.history)
        routes.get(item)(self.history_item)
        routes.delete(item)(self.delete_item)
        routes.get(f"{item}/audio", **sends("audio/wav"))(self.history_audio)
        routes.post("/v1/speech-to-text", openapi_extra=RECORDING)(self.transcribe)
        return routes

    async def models(self) -> JSONResponse:
        """The loaded model, which all values of model_id mean."""
        host = self._studio.speech.host
        card = host.engine().info.card if host.status.state == "ready" else None
        lacking = "can_be_finetuned can_do_voice_conversion can_use_style can_use_speaker_boost serves_pro_voices"
        limits = "max_characters_request_free_user max_characters_request_subscribed_user"
        model = {
            "model_id": host.model_id,
            "name": host.model_id,
            "description": "The model that this studio has loaded.",
            "can_do_text_to_speech": True,
            "requires_alpha_access": False,
            "maximum_text_length_per_request": MAX_INPUT,
            "token_cost_factor": 1.0,
            "languages": [{"language_id": code, "name": code} for code in (card.languages if card else ())],
            "model_rates": {"character_cost_multiplier": 1.0},
            **dict.fromkeys(lacking.split(), False),
            **dict.fromkeys(limits.split(), MAX_INPUT),
        }
        return JSONResponse([model])

    async def user(self, request: Request) -> JSONResponse:
        """The account of the key: fixed values."""
        account = account_of(request)
        flags = ("is_new_user", "can_use_delayed_payment_methods", "show_compliance_terms")
        done = ("is_onboarding_completed", "is_onboarding_checklist_completed", "is_api_key_hashed")
        fixed = {"subscription": SUBSCRIPTION, "created_at": 0, "seat_type": "workspace_admin", "first_name": None}
        user = {"user_id": account, "workspace_id": account} | dict.fromkeys(flags, False) | dict.fromkeys(done, True)
        return JSONResponse(user | fixed)

    async def subscription(self) -> JSONResponse:
        """The subscription: fixed values."""
        return JSONResponse(SUBSCRIPTION)

    async def history(
        self,
        request: Request,
        page_size: Annotated[int, Query(ge=1, le=1000)] = 100,
        start_after_history_item_id: str | None = None,
        voice_id: str | None = None,
        search: str = "",
        date_after_unix: Annotated[float | None, Query(ge=0, le=LATEST)] = None,
        date_before_unix: Annotated[float | None, Query(ge=0, le=LATEST)] = None,
    ) -> JSONResponse:
        """The stored takes of the caller, newest first."""
        owner, takes = request.state.owner_filter, self._studio.library.takes
        voice = reference_of(voice_id) if voice_id else None
        filters = TakeFilter(search, voice, since=date_after_unix, until=date_before_unix, caller=owner)
        filters = await self._studio.history.with_voice_id(filters)
        page = await self._studio.history.page(filters, page_size, start_after_history_item_id)
        ids = tuple(str(take["id"]) for take in page.data if take["stored"])
        stored = await to_thread.run_sync(takes.page, TakeFilter(ids=ids, caller=owner), page_size) if ids else []
        items = [_item(take) for take in stored]
        return JSONResponse({"history": items, "last_history_item_id": page.last_id, "has_more": page.has_more})

    async def history_item(self, history_item_id: str, request: Request) -> JSONResponse:
        """A stored take."""
        return JSONResponse(_item(await self._studio.history.stored_take(history_item_id, request.state.owner_filter)))

    async def history_audio(self, history_item_id: str, request: Request) -> Response:
        """The audio of a take: a WAV file, or a range of it."""
        take, path = await self._studio.history.sound(history_item_id, request.state.owner_filter)
        return stored_audio(request, take, path, {})

    async def delete_item(self, history_item_id: str, request: Request) -> JSONResponse:
        """Delete a take; POST /v1/takes/{take_id}/restore undoes it for a while."""
        await self._studio.history.delete(history_item_id, request.state.owner_filter)
        return JSONResponse({"status": "ok"})

    async def transcribe(self, request: Request) -> JSONResponse:
        """Transcribe ``file`` (1 s to 5 minutes), with the times of its words. Needs a recogniser."""
        form = await read_form(request, FORM_LIMIT, "file", 1)
        return JSONResponse(await until_hangup(request, self._transcript(form, request.state.caller)))

    async def _transcript(self, form: Form, caller: str) -> dict[str, Any]:
        for name in ("webhook", "use_multi_channel"):
            if text_of(form, name).lower() == "true":
                raise InvalidRequest(f"{name} is not possible here; leave it out", name)
        granularity = text_of(form, "timestamps_granularity") or "word"
        if granularity not in ("none", "word"):
            raise InvalidRequest("timestamps_granularity must be none or word", "timestamps_granularity")
        recording = await transcribed(
            self._studio.clips, caller, form.file("file"), text_of(form, "language_code"), "file"
        )
        heard = recording.transcription
        return {
            "language_code": heard.language.partition("-")[0],
            "language_probability": 1.0,
            "text": heard.text,
            "words": [] if granularity == "none" else _words(heard.words),
            "audio_duration_secs": round(recording.seconds, 3),
        }


def _words(words: Sequence[Word]) -> list[dict[str, Any]]:
    """The words, and the spaces between them."""

    def entry(kind: str, text: str, start: float, end: float) -> dict[str, Any]:
        times = {"start": round(start, 3), "end": round(end, 3)}
        return {"text": text, "type": kind, "speaker_id": None, "logprob": 0.0} | times

    entries = [entry("word", word.word, word.start, word.end) for word in words]
    spaces = [entry("spacing", " ", word.end, max(word.end, after.start)) for word, after in pairwise(words)]
    return [each for pair in zip(entries, spaces, strict=False) for each in pair] + entries[-1:]


def _item(take: Take) -> dict[str, Any]:
    return {
        "history_item_id": take.id,
        "request_id": take.id,
        "voice_id": eleven_id(take.voice_id or take.voice),
        "voice_name": take.voice.rpartition("@")[0] or take.voice,
        "voice_category": None,
        "model_id": None,
        "text": take.text,
        "date_unix": int(take.created),
        "character_count_change_from": 0,
        "character_count_change_to": len(take.text),
        "content_type": take.media_type or "audio/wav",
        "state": "created",
        "settings": {},
        "feedback": None,
        "share_link_id": None,
        "source": "TTS",
    }

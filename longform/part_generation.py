"""Generates the audio of a part: its request, and a take with its codes and the times of its words, not stored yet."""

from __future__ import annotations

import logging
import secrets
import time
from contextlib import aclosing
from dataclasses import replace

from audio.encode import wav_samples, whole_wav
from engine import EngineError
from longform.library.project_records import ClaimedPart, ProjectSettings
from speechtext.word_times import Timed
from studio.library.take import NewTake
from studio.speech.delivery import Speech
from studio.speech.request import Origin, SpeechRequest
from studio.speech.speech_service import SpeechService

log = logging.getLogger(__name__)


async def generate_part(service: SpeechService, claim: ClaimedPart) -> NewTake:
    """Generate a new take of a part, queued behind all live requests. Raises the errors of SpeechService.speak."""
    started = time.perf_counter()
    part = claim.part
    request = request_of(claim.settings, part.voice, part.text, claim.seed)
    speech = await service.speak(request, origin_of(part.project_id, claim.owner))
    async with aclosing(speech):
        wav = b"".join([piece async for piece in speech.body])
        words = await _word_times(speech)
    take = replace(
        speech.record,
        id=f"ptake_{secrets.token_hex(12)}",
        created=time.time(),
        seconds=wav_samples(len(wav)) / speech.sample_rate,
        media_type="audio/wav",
        sample_rate=speech.sample_rate,
        part_id=part.id,
        recipe=claim.recipe,
        work_s=time.perf_counter() - started,
    )
    return NewTake(take, [whole_wav(wav, speech.sample_rate)], speech.codes, words)


async def _word_times(speech: Speech) -> list[Timed] | None:
    """The times of the words, or None if they cannot be aligned; the audio is kept nevertheless."""
    try:
        return await speech.timestamps("word")
    except EngineError as error:
        log.info("%s has no word times: %s", speech.request_id, error)
        return None


def request_of(settings: ProjectSettings, voice: str | None, text: str, seed: int | None) -> SpeechRequest:
    """``voice`` overrides the project's voice; without a ``seed``, a random one is used."""
    return SpeechRequest(
        text=text,
        voice=voice or settings.voice,
        format="wav",
        seed=seed,
        temperature=settings.temperature,
        top_p=settings.top_p,
        top_k=settings.top_k,
        speed=settings.speed,
        normalize=settings.normalize,
        pronunciations=settings.pronunciations,
    )


def origin_of(project_id: str, owner: str) -> Origin:
    """A background origin: its requests queue behind all live ones."""
    return Origin(f"{project_id}.{secrets.token_hex(6)}", owner, patient=True, background=True)

"""The record of a new take: everything in its plan that is needed to generate it again."""

from __future__ import annotations

import time

from studio.library.records import OWN_CLIP, RANDOM
from studio.library.takes.take import Take
from studio.speech.planning.plan import Plan
from studio.speech.request import Origin, SpeechRequest


def draft_of(request: SpeechRequest, plan: Plan, origin: Origin) -> Take:
    """The record of a new take, completed by its delivery. It does not contain uploaded clips."""
    voice = OWN_CLIP if request.clips else plan.voice.address if plan.voice else RANDOM
    return Take(
        id=origin.request_id,
        created=time.time(),
        caller=origin.caller,
        text=request.text,
        voice_id=plan.voice.id if plan.voice and not plan.is_dialogue else None,
        voice=plan.label if plan.is_dialogue else voice,
        seed=plan.seed,
        parameters={
            "temperature": plan.sampling.temperature,
            "top_p": plan.sampling.top_p,
            "top_k": plan.sampling.top_k,
            "max_new_tokens": plan.budget,
            "speed": request.speed,
            "chunk_length": request.chunk_length,
            "response_format": request.format,
            "sample_rate": request.sample_rate,
            "read_as": plan.read_as,
            "normalize": request.normalize,
            "dictionary": request.dictionary,
        }
        | (_dialogue(request, plan, voice) if plan.is_dialogue else {}),
    )


def _dialogue(request: SpeechRequest, plan: Plan, voice: str) -> dict[str, object]:
    """Every speaker's voice in its revision; ``voice`` is for text before the first name, if any.

    The sampling stays as requested: each voice has its own defaults. ``voice_ids``: the voices to which the names
    referred.
    """
    cast = {part.speaker: part.voice.address if part.voice else RANDOM for part in plan.parts if part.speaker}
    is_named = all(part.speaker for part in plan.parts)
    sampling = {name: value for name, value in request.requested_sampling.items() if name != "seed"}
    ids = {part.voice.address: part.voice.id for part in plan.parts if part.voice}
    return sampling | {"cast": cast, "turn_gap": plan.gap, "voice": None if is_named else voice, "voice_ids": ids}

"""What the library keeps of a take that has ended: all that is needed to say it again, but for a clip of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from engine import Sampling
from studio.library import StoredTake, Voice
from studio.library.records import OWN_CLIP, RANDOM
from studio.speech.plan import Role
from studio.speech.request import SpeechRequest
from studio.takes.record import Take


def described(
    request: SpeechRequest, sampling: Sampling, voice: Voice | None, roles: Sequence[Role], take: Take
) -> StoredTake:
    """``sampling`` and ``voice`` are those that it was spoken with; of a dialogue, ``roles`` have one voice each."""
    own = OWN_CLIP if request.has_clip else voice.address if voice else RANDOM
    timings = {name: getattr(take, name) for name in ("queue_ms", "first_audio_ms", "generation_s", "audio_s")}
    return StoredTake(
        id=take.id,
        created=take.created,
        text=request.text,
        voice_id=voice.id if voice and not roles else None,
        voice=take.voice if roles else own,
        seed=sampling.seed,
        parameters={
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": sampling.top_k,
            "max_new_tokens": request.max_frames,
            "speed": request.speed,
            "chunk_length": request.chunk_length,
            "response_format": request.format,
            "sample_rate": request.sample_rate,
        }
        | (_dialogue(request, own, roles) if roles else {}),
        state=take.state,
        finish_reason=take.finish_reason,
        error=take.error,
        timings=timings | ({"turns": [asdict(turn) for turn in take.turns]} if take.turns else {}),
        frames=take.frames,
        seconds=take.audio_s,
        caller=take.caller,
    )


def _dialogue(request: SpeechRequest, own: str, roles: Sequence[Role]) -> dict[str, object]:
    """Every speaker's voice in its revision; ``voice`` speaks what stands before the first name, if anything does.

    The sampling stays as it was wished: each voice has defaults of its own.
    """
    cast = {role.turn.speaker: role.voice.address if role.voice else RANDOM for role in roles if role.turn.speaker}
    told = all(role.turn.speaker for role in roles)
    wishes = {name: value for name, value in request.wishes.items() if name != "seed"}
    return wishes | {"cast": cast, "turn_gap": request.turn_gap, "voice": None if told else own}

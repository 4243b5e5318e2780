"""What a request wants said and in whose voices: its text cut up once, the voices found and made ready."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from engine import Engine, Reference, Sampling, Utterance
from studio.errors import InvalidRequest, UnknownVoice
from studio.library import Voice
from studio.library.records import OWN_CLIP, RANDOM, Scalar
from studio.speech.conversation import Part
from studio.speech.dialogue import Turn, fold_speaker, read_turns
from studio.speech.request import SpeechRequest
from studio.speech.text import Script, read_script
from studio.voices.resolver import VoiceResolver

References = tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class Role:
    """A turn and the voice that speaks it."""

    turn: Turn
    voice: Voice | None
    """None is the random voice; of a turn without a speaker, the request's own one is meant instead."""

    @property
    def label(self) -> str:
        return self.voice.slug if self.voice else RANDOM


@dataclass(frozen=True, slots=True)
class Plan:
    """What is said by whom: one voice's script, or the turns of a dialogue."""

    voice: Voice | None
    """The request's own one; None is its clip, or the random voice."""
    own: str
    """What that is called."""
    script: Script = ()
    roles: tuple[Role, ...] = ()
    """Of a dialogue, which has no script of its own."""

    @property
    def label(self) -> str:
        """All its voices, each once."""
        labels = (role.label if role.turn.speaker else self.own for role in self.roles)
        return ", ".join(dict.fromkeys(labels)) or self.own


def plan_of(request: SpeechRequest, voices: VoiceResolver) -> Plan:
    """Blocking: milliseconds. Raises InvalidRequest for a text that cannot be spoken, UnknownVoice."""
    voice = None if request.has_clip else voices.find(request.voice)
    own = OWN_CLIP if request.has_clip else RANDOM if voice is None else voice.slug
    if request.cast is None:
        return Plan(voice, own, read_script(request.text, request.chunk_length))
    turns = read_turns(request.text, request.chunk_length)
    return Plan(voice, own, roles=_cast(turns, request.cast, voices))


class Casting:
    """Makes parts of one take; its voices' references are looked up, and if need be encoded, once."""

    def __init__(
        self, voices: VoiceResolver, engine: Engine, sampling: Callable[[dict[str, Scalar]], Sampling], own: Sampling
    ) -> None:
        """``sampling`` gives the request's for a voice's defaults; ``own`` is its own voice's, with the seed."""
        self._voices, self._engine, self._sampling, self._own = voices, engine, sampling, own

    async def parts(self, roles: Sequence[Role], own: tuple[str, Callable[[], Awaitable[References]]]) -> list[Part]:
        """The turns as the engine takes them; ``own`` is the label and the references of the request's own voice.

        Raises InvalidClip, EngineStopped.
        """
        known: dict[str, References] = {}
        parts = []
        for role in roles:
            named, voice = role.turn.speaker is not None, role.voice
            label = role.label if named else own[0]
            if label not in known:
                known[label] = () if voice is None else await self._voices.references(self._engine, voice)
                known[label] = known[label] if named else await own[1]()
            wanted = self._sampling(voice.defaults if voice else {}) if named else self._own
            sampling = replace(wanted, seed=self._own.seed)
            utterance = Utterance(role.turn.text, known[label], sampling)
            parts.append(Part(role.turn.speaker or "", label, role.turn.script, utterance))
        return parts


def _cast(turns: Sequence[Turn], cast: Mapping[str, str], voices: VoiceResolver) -> tuple[Role, ...]:
    """The turns with their voices: by the cast, else a voice of the speaker's own name.

    Raises InvalidRequest for a speaker who has no voice, UnknownVoice for a voice of the cast that there is not.
    """
    wanted = {fold_speaker(name): voice for name, voice in cast.items()}
    found: dict[str, Voice | None] = {}
    roles = []
    for turn in turns:
        name = fold_speaker(turn.speaker or "")
        if turn.speaker is not None and name not in found:
            found[name] = _voice_of(turn, wanted.get(name), voices)
        roles.append(Role(turn, found.get(name)))
    return tuple(roles)


def _voice_of(turn: Turn, wanted: str | None, voices: VoiceResolver) -> Voice | None:
    if wanted is not None:
        return voices.find(wanted)
    try:
        return voices.find(turn.speaker)
    except UnknownVoice:
        raise InvalidRequest(
            f"line {turn.line}: {turn.speaker!r} has no voice; give it one in cast, or do not begin the line with "
            "a name and a colon",
            "cast",
            "unknown_speaker",
        ) from None

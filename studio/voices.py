"""The bundled voices: a folder with NAME.wav and its words as NAME.txt; and the names that clients use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from studio.errors import UnknownVoice

OPENAI_VOICES = (
    "alloy", "ash", "ballad", "cedar", "coral", "echo", "fable",
    "marin", "nova", "onyx", "sage", "shimmer", "verse",
)  # fmt: skip
"""OpenAI's built-in names, which many clients send whatever the server: each means one of ours."""

DEFAULT = "default"
RANDOM = "random"


@dataclass(frozen=True, slots=True)
class Voice:
    """A voice to speak in. ``clip`` is its reference recording, None for the voice that the seed decides."""

    id: str
    name: str
    text: str = ""
    """The words spoken in the clip."""
    clip: Path | None = None


RANDOM_VOICE = Voice(RANDOM, "Random (the seed decides)")


class VoiceShelf:
    """The voices of one folder, read once; a clip without its words, or words without a clip, is left out."""

    def __init__(self, folder: Path) -> None:
        clips = [clip for clip in sorted(folder.glob("*.wav")) if clip.with_suffix(".txt").is_file()]
        self._bundled = tuple(
            Voice(
                clip.stem.lower(),
                clip.stem.replace("_", " ").replace("-", " ").title(),
                clip.with_suffix(".txt").read_text("utf-8").strip(),
                clip,
            )
            for clip in clips
        )
        self._by_name = {voice.id: voice for voice in (*self._bundled, RANDOM_VOICE)}
        for position, name in enumerate(OPENAI_VOICES):
            meant = self._bundled[position % len(self._bundled)] if self._bundled else RANDOM_VOICE
            self._by_name.setdefault(name, meant)
        self._by_name.setdefault(DEFAULT, self._bundled[0] if self._bundled else RANDOM_VOICE)

    @property
    def bundled(self) -> tuple[Voice, ...]:
        return self._bundled

    @property
    def listed(self) -> tuple[Voice, ...]:
        """What a picker shows: the bundled voices, and the random one."""
        return (*self._bundled, RANDOM_VOICE)

    @property
    def aliases(self) -> dict[str, str]:
        """Name to voice id, for every other name that is understood."""
        return {name: voice.id for name, voice in self._by_name.items() if name != voice.id}

    def find(self, name: str | None) -> Voice:
        """The voice of an id or alias in any case; None and blank mean the default. Raises UnknownVoice."""
        key = (name or DEFAULT).strip().casefold() or DEFAULT
        voice = self._by_name.get(key)
        if voice is None:
            known = ", ".join(voice.id for voice in self.listed)
            raise UnknownVoice(f"there is no voice {(name or '')[:80]!r}; there are {known}", "voice")
        return voice

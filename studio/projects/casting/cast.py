"""A document's characters, a voice proposed for each, and its prose divided among their voices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from studio.library.voices.voice import Voice
from studio.projects.casting.attribution import CastLine, attribute
from studio.projects.casting.characters import Character
from studio.projects.documents.passages import Document, Passage

PAUSE_WITHIN = 0.2
"""Seconds of silence between speech and narration of one paragraph."""


@dataclass(frozen=True, slots=True)
class CharacterVoice:
    """A character, and the address of the voice that is proposed; None where the library has no voice."""

    character: Character
    voice: str | None


def characters_of(document: Document) -> list[Character]:
    """Those who speak in a document, those with most lines first; rows and subtitles have none. Blocking."""
    return list(attribute([passage.text for passage in document.passages]).characters) if document.prose else []


def proposed_voices(
    characters: Sequence[Character], voices: Sequence[Voice], narrator: str | None
) -> list[CharacterVoice]:
    """A voice for each character: of the same gender where that is known, no voice twice while others are left.

    ``narrator``: the slug of the voice that reads the narration, which is the last choice for a character.
    """
    uses = {voice.slug: int(voice.slug == narrator) for voice in voices}
    proposals = []
    for character in characters:
        wanted = character.voice_gender
        fitting = [voice for voice in voices if voice.gender in (wanted, "")] if wanted else list(voices)
        best = min(fitting or voices, key=lambda voice: (uses[voice.slug], voice.gender != wanted), default=None)
        if best is not None:
            uses[best.slug] += 1
        proposals.append(CharacterVoice(character, None if best is None else best.slug))
    return proposals


def with_speakers(document: Document, voice_of: Callable[[str], str | None]) -> Document:
    """The document with each stretch of quoted speech in the voice of its speaker.

    ``voice_of``: the voice of a character's name; None leaves the speech to the narrator. Blocking: some 1.5 s of a
    core for a million characters.
    """
    if not document.prose:
        return document
    attribution = attribute([passage.text for passage in document.passages])
    voices = {}
    for character in attribution.characters:
        known = (voice_of(name) for name in character.names)
        voices[character.name] = next((voice for voice in known if voice is not None), None)
    lines: list[list[CastLine]] = [[] for _ in document.passages]
    for line in attribution.lines:
        lines[line.paragraph].append(line)
    passages: list[Passage] = []
    for passage, its_lines in zip(document.passages, lines, strict=True):
        passages += [passage] if passage.voice or passage.is_title else _divided(passage, its_lines, voices)
    return replace(document, passages=tuple(passages))


def _divided(passage: Passage, lines: Iterable[CastLine], voices: dict[str, str | None]) -> list[Passage]:
    """The first piece keeps chapter and start of the paragraph, the last its pause and end."""
    pieces: list[tuple[str | None, str]] = []
    for line in lines:
        text = passage.text[line.start : line.end].strip()
        voice = voices.get(line.speaker) if line.speaker else None
        if pieces and (voice == pieces[-1][0] or not any(sign.isalnum() for sign in text)):
            pieces[-1] = pieces[-1][0], f"{pieces[-1][1]} {text}"
        elif text:
            pieces.append((voice, text))
    if len(pieces) < 2 and not any(voice for voice, _ in pieces):
        return [passage]
    last = len(pieces) - 1
    return [
        replace(
            passage,
            text=text,
            voice=voice,
            chapter=passage.chapter if number == 0 else "",
            start=passage.start if number == 0 else None,
            end=passage.end if number == last else None,
            pause=passage.pause if number == last else PAUSE_WITHIN,
        )
        for number, (voice, text) in enumerate(pieces)
    ]

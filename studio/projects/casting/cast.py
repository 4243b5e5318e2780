"""Divides a document's prose and scripts among its characters, with the evidence for each line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from studio.errors import InvalidDocument
from studio.library.projects.project_records import MAX_ALIASES, MAX_CAST_CHARACTERS, NewCharacter
from studio.library.voices.known_voices import KnownVoices
from studio.projects.casting.attribution import CastLine, attribute
from studio.projects.casting.characters import NARRATOR_SELF, VOICE_GENDERS, gender_of_name
from studio.projects.casting.speaker_turns import into_turns, with_colons
from studio.projects.documents.passages import PAUSE_WITHIN, Document, Passage
from studio.speech.dialogue import fold_speaker, speaker_names

SCRIPT_SHARE = 0.5
"""A text is a script if at least this share of its paragraphs begins with a name and a colon."""
PROSE_NAMES = 2
"""In a text that is not a script, a name is listed as a speaker if this many lines begin with it and a colon."""


class Casting:
    """Finds the characters of one document by any of their names."""

    def __init__(self, voices: Mapping[str, str], is_voice: KnownVoices | None = None) -> None:
        """``voices``: voices by name; a name that is not in it has the voice of the same name, if there is one."""
        self._voices = {fold_speaker(name): voice for name, voice in voices.items()}
        self._is_voice = is_voice
        self._by_name: dict[str, NewCharacter] = {}

    def is_speaker(self, name: str) -> bool:
        """Whether a line may begin with this name: the name has a voice, or a character has it."""
        return fold_speaker(name) in self._by_name or self._voice_of(name) is not None

    def prefer(self, name: str, voice: str) -> None:
        """Set the voice of a name that has none."""
        self._voices.setdefault(fold_speaker(name), voice)

    def character(self, name: str, aliases: Sequence[str] = (), gender: str = "") -> NewCharacter:
        """The character with one of these names, created if it does not exist."""
        names = [name, *aliases]
        character = next((self._by_name[key] for alias in names if (key := fold_speaker(alias)) in self._by_name), None)
        if character is None:
            voice = next((voice for alias in names if (voice := self._voice_of(alias)) is not None), None)
            gender = gender or VOICE_GENDERS[gender_of_name(name)]
            character = NewCharacter(
                name, tuple(aliases)[:MAX_ALIASES], gender, voice, voice is None and name == NARRATOR_SELF
            )
        elif aliases or gender:
            all_aliases = dict.fromkeys([*character.aliases, *(alias for alias in names if alias != character.name)])
            character = replace(character, aliases=tuple(all_aliases)[:MAX_ALIASES], gender=character.gender or gender)
        for alias in (character.name, *names):
            self._by_name[fold_speaker(alias)] = character
        return character

    def speakers_of(self, passages: Iterable[Passage]) -> tuple[NewCharacter, ...]:
        """The characters who speak in passages, those with most lines first."""
        lines = Counter(passage.speaker for passage in passages if passage.speaker)
        return tuple(self.character(name) for name, _ in lines.most_common())

    def _voice_of(self, name: str) -> str | None:
        folded = fold_speaker(name)
        if folded not in self._voices and self._is_voice is not None and self._is_voice(name):
            self._voices[folded] = name
        return self._voices.get(folded)


def split_by_speaker(document: Document, casting: Casting, find_speakers: bool) -> Document:
    """Return the document with its lines as passages of their speakers, and the characters as its cast.

    ``find_speakers``: also quoted speech in prose, and every name before a colon where the text is a script. Blocking:
    about 1.5 s of a core for a million letters. Raises InvalidDocument.
    """
    if find_speakers and document.prose:
        document = replace(document, passages=tuple(with_colons(document.passages)))
        for name in _script_names(document, only_scripts=True):
            casting.character(name)
    voice_counts = Counter(
        (passage.speaker, passage.voice) for passage in document.passages if passage.speaker and passage.voice
    )
    for (name, voice), _ in voice_counts.most_common():
        casting.prefer(name, str(voice))
    passages = list(into_turns(document.passages, casting.is_speaker))
    if find_speakers and document.prose:
        passages = _split_quotations(passages, casting)
    passages = [_voiced(passage, casting) if passage.speaker else passage for passage in passages]
    cast = casting.speakers_of(passages)
    if len(cast) > MAX_CAST_CHARACTERS:
        raise InvalidDocument(
            f"the document has {len(cast)} characters; at most {MAX_CAST_CHARACTERS} are allowed", "file"
        )
    return replace(document, passages=tuple(passages), cast=cast)


def speakers_in(document: Document) -> Document:
    """As `split_by_speaker`, to list possible speakers: also names that occur several times before a colon in prose."""
    casting = Casting({})
    document = replace(document, passages=tuple(with_colons(document.passages)))
    for name in _script_names(document, only_scripts=False):
        casting.character(name)
    return split_by_speaker(document, casting, find_speakers=True) if document.prose else document


def _script_names(document: Document, only_scripts: bool) -> list[str]:
    texts = [passage.text for passage in document.passages if not (passage.voice or passage.is_title)]
    names_by_text = [speaker_names(text) for text in texts]
    counts = Counter(name for names in names_by_text for name in names)
    is_script = sum(map(bool, names_by_text)) >= SCRIPT_SHARE * max(1, len(texts))
    least = 1 if is_script else PROSE_NAMES
    return [] if only_scripts and not is_script else [name for name, count in counts.items() if count >= least]


def _voiced(passage: Passage, casting: Casting) -> Passage:
    character = casting.character(passage.speaker)
    return replace(passage, speaker=character.name, voice=passage.voice or character.voice)


def _split_quotations(passages: Sequence[Passage], casting: Casting) -> list[Passage]:
    """Split passages so that each stretch of quoted speech is a passage."""
    is_prose = [not (passage.voice or passage.speaker or passage.is_title) for passage in passages]
    attribution = attribute([passage.text if prose else "" for passage, prose in zip(passages, is_prose, strict=True)])
    for person in attribution.characters:
        casting.character(person.name, person.names[1:], person.voice_gender)
    lines: list[list[CastLine]] = [[] for _ in passages]
    for line in attribution.lines:
        lines[line.paragraph].append(line)
    pieces: list[Passage] = []
    for passage, passage_lines in zip(passages, lines, strict=True):
        pieces += _by_line(passage, passage_lines) if any(line.is_speech for line in passage_lines) else [passage]
    return pieces


def _by_line(passage: Passage, lines: Iterable[CastLine]) -> list[Passage]:
    """The first piece keeps chapter and start of the paragraph, the last its pause and end."""
    pieces: list[tuple[str, CastLine]] = []
    opening = ""  # a dash, which is not part of the quotation after it
    for line in lines:
        text = f"{opening} {passage.text[line.start : line.end].strip()}".lstrip()
        is_bare = not any(sign.isalnum() for sign in text)
        opening = text if is_bare and not pieces else ""
        if pieces and (is_bare or (line.is_speech, line.speaker) == (pieces[-1][1].is_speech, pieces[-1][1].speaker)):
            pieces[-1] = f"{pieces[-1][0]} {text}", pieces[-1][1]
        elif not opening:
            pieces.append((text, line))
    last = len(pieces) - 1
    return [
        replace(
            passage,
            text=text,
            speaker=line.speaker or "",
            confidence=line.confidence if line.is_speech else None,
            reason=line.reason if line.is_speech else None,
            chapter=passage.chapter if number == 0 else "",
            start=passage.start if number == 0 else None,
            end=passage.end if number == last else None,
            pause=passage.pause if number == last else PAUSE_WITHIN,
            continues=passage.continues if number == 0 else True,
        )
        for number, (text, line) in enumerate(pieces)
    ]

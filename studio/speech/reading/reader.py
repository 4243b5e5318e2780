"""How the texts of one request are read: cleaned, by its dictionaries, and with numbers and the like as words."""

from __future__ import annotations

from engine import InvalidUtterance, ModelCard, refuse_control_tokens
from studio.errors import InvalidRequest, UnknownVoice
from studio.library import Voice
from studio.library.pronunciations.entries import GLOBAL, DictionaryScope, Pronunciation
from studio.library.pronunciations.pronunciation_repository import Pronunciations
from studio.speech.dialogue import fold_speaker
from studio.speech.reading.dictionary import dictionary_of
from studio.speech.reading.normalise import normalised
from studio.speech.request import SpeechRequest
from studio.speech.script.brackets import read_brackets
from studio.speech.script.markup import without_markup
from studio.speech.script.signs import clean_signs
from studio.speech.text import is_blank
from studio.voices.resolver import FindVoice


class Reader:
    """Reads each turn by the entries of its project, of its own voice and of everybody, in this order."""

    def __init__(
        self, request: SpeechRequest, find: FindVoice, pronunciations: Pronunciations, card: ModelCard
    ) -> None:
        self._request, self._find, self._pronunciations = request, find, pronunciations
        self._tags = card.tags
        self._normalizes = card.normalize if request.normalize is None else request.normalize
        self._cast = {fold_speaker(name): voice for name, voice in (request.cast or {}).items()}
        self._known: dict[str | None, tuple[Pronunciation, ...]] = {}

    def read(self, speaker: str | None, text: str) -> str:
        """What is read of what is written; ``speaker`` as written, None for the request's own voice. Blocking.

        In brackets it has nothing but tags. Raises InvalidRequest for a control token that its signs hid.
        """
        text = _cleaned(text, self._normalizes)
        text = read_brackets(text, self._tags)
        if self._request.dictionary:
            text = dictionary_of(self._entries(speaker)).read(text)
        return normalised(text) if self._normalizes else text

    def _entries(self, speaker: str | None) -> tuple[Pronunciation, ...]:
        name = None if speaker is None else fold_speaker(speaker)
        if name not in self._known:
            voice = self._voice(self._cast.get(name, speaker) if name else self._request.voice)
            shelves = (*([DictionaryScope("voice", voice.id)] if voice else []), GLOBAL)
            shared = self._pronunciations.entries(*shelves)
            self._known[name] = (*self._request.pronunciations, *shared)
        return self._known[name]

    def _voice(self, name: str | None) -> Voice | None:
        """None for one that there is not, which is refused elsewhere, if it is to speak; and for a clip."""
        if self._request.clips and name is None:
            return None
        try:
            return self._find(name)
        except UnknownVoice:
            return None


def _cleaned(text: str, normalizes: bool) -> str:
    """Without the signs that nobody can say, and if it is read at all without markup, unless that is all there is."""
    clean = clean_signs(text)
    if clean != text:
        try:
            refuse_control_tokens(clean, "input")
        except InvalidUtterance as error:
            raise InvalidRequest(str(error), "input") from None
    plain = without_markup(clean) if normalizes else clean
    return clean if is_blank(plain) else plain

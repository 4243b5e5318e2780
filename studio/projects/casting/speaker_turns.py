"""Splits passages of scripts and plays at speakers' names, and separates stage directions from speech."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from studio.projects.documents.passages import PAUSE_WITHIN, Passage
from studio.speech.dialogue import turns_of
from studio.speech.text import is_blank

IsSpeaker = Callable[[str], bool]
"""Whether a name before a colon is a speaker's."""

_DIRECTION = re.compile(
    r"^[ \t]*[\[(（](?P<line>[^\[\]()（）\n]{2,500}[.!?…。！？])[\])）][ \t]*$"
    r"|\[(?P<sentence>[^\[\]\n]{2,500}[.!?…。！？])\]"
    r"|[(（](?P<parenthesis>[^()（）\n]{2,500})[)）][.,:;!?…。，；：！？]*",
    re.MULTILINE,
)
_WITHIN_SENTENCE = re.compile(
    r"(?!according|assuming|being|concerning|considering|depending|during|excluding|having|including|meaning|regarding)"
    r"[a-z]{2,}ing\b|(?:aside|beat|coughs|laughs|pause|sighs)\Z"
)
"""Words in parentheses that are a direction even within a sentence: "laughing …", "pause"; other words are spoken."""

_PLAY_NAME = re.compile(
    r"\s*(?!(?:ACT|BOOK|CANTO|CHAPTER|PART|SCENE|SONNET|VOLUME|[CDILMVX]+)\b)"
    r"([^\W\d_][\w '’-]{1,39})\.(?:[ \t]*\n|[ \t]+)(?=\S)"
)
"""Neither a heading nor a Roman numeral."""
_WORDS_IN_A_PLAYS_NAME = 4
PLAY_SHARE = 0.5
"""A text is a play if at least this share of its paragraphs begins with a name in capitals and a full stop."""


def with_colons(passages: Sequence[Passage]) -> Sequence[Passage]:
    """A play's passages with a colon after each speaker's name, and stage directions on separate lines without
    brackets: many plays have "ROMEO." on a separate line, or before the words. Other texts are not changed."""
    is_text = [not (passage.voice or passage.speaker or passage.is_title) for passage in passages]
    names = [_name_in_capitals(p.text) if is_own else None for p, is_own in zip(passages, is_text, strict=True)]
    if sum(map(bool, names)) < PLAY_SHARE * max(1, sum(is_text)):
        return passages
    return [
        replace(passage, text=f"{name[1]}: {passage.text[name.end() :]}" if name else _without_brackets(passage.text))
        for passage, name in zip(passages, names, strict=True)
    ]


def _without_brackets(text: str) -> str:
    direction = _DIRECTION.fullmatch(text)
    return (direction and direction["line"]) or text


def _name_in_capitals(text: str) -> re.Match[str] | None:
    match = _PLAY_NAME.match(text)
    is_name = match is not None and match[1].isupper() and len(match[1].split()) <= _WORDS_IN_A_PLAYS_NAME
    return match if is_name else None


def into_turns(passages: Iterable[Passage], is_speaker: IsSpeaker) -> Iterator[Passage]:
    """Split passages at lines that begin with a speaker's name and a colon: that speaker has the text up to the end of
    the paragraph. A passage with a voice is not split."""
    for passage in passages:
        yield from [passage] if passage.voice or passage.speaker else _turns(passage, is_speaker)


def _turns(passage: Passage, is_speaker: IsSpeaker) -> Iterator[Passage]:
    """The turns of a passage: the first keeps the chapter and the start, the last the pause."""
    pieces = [piece for turn in turns_of(passage.text, is_speaker) for piece in _split_directions(*turn)]
    if pieces == [(None, passage.text, False)]:
        yield passage
        return
    pauses = [*(PAUSE_WITHIN if continues else None for _, _, continues in pieces[1:]), passage.pause]
    for number, ((speaker, text, continues), pause) in enumerate(zip(pieces, pauses, strict=False)):
        yield replace(
            passage,
            text=text,
            speaker=speaker or "",
            chapter=passage.chapter if number == 0 else "",
            start=passage.start if number == 0 else None,
            pause=pause,
            continues=continues if number else passage.continues,
        )


def _split_directions(speaker: str | None, text: str) -> Iterator[tuple[str | None, str, bool]]:
    """Separate a turn from its stage directions, which the narrator reads instead of the character. Each piece also
    has whether it continues the line of the previous piece.

    Directions lose their square brackets, which a model takes for a tag.
    """
    pieces, at = list[tuple[str | None, str]](), 0
    for direction in filter(_is_direction, _DIRECTION.finditer(text) if speaker else ()):
        words = direction["line"] or (f"({direction['sentence']})" if direction["sentence"] else direction[0])
        pieces += [(speaker, text[at : direction.start()]), (None, words)]
        at = direction.end()
    continues = False
    for piece_speaker, words in [*pieces, (speaker, text[at:])]:
        begin, end = words[: len(words) - len(words.lstrip())], words[len(words.rstrip()) :]
        continues = continues and "\n" not in begin
        if not is_blank(words):
            yield piece_speaker, words.strip(), continues
            continues = "\n" not in end


def _is_direction(match: re.Match[str]) -> bool:
    """Whether words in brackets are a stage direction; within a sentence they seldom are, as in "one (of two)"."""
    words = match["parenthesis"]
    if words is None:
        return True
    before = match.string[max(0, match.start() - 9) : match.start()].rstrip(" \t")[-1:]
    is_apart = not before or before == "\n" or unicodedata.category(before).startswith("P")
    return (is_apart and any(map(str.isalpha, words))) or bool(_WITHIN_SENTENCE.match(words))

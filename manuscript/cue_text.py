"""Reads the text of a subtitle: who speaks, and what; sounds for the hearing impaired are left out and counted."""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable

MOST_LISTED = 5  # kinds of sounds that are quoted
_SIGN = re.compile(r"[♪♫]|^\s*[-‐–—]+(?![-‐–—\d])\s*")
_MARKUP = re.compile(rf"</?[a-zA-Z][^<>]{{0,100}}>|<\d[\d:.]{{0,20}}>|\{{\\[^{{}}]{{0,100}}\}}|{_SIGN.pattern}")
_VOICE = re.compile(r"<v(?:\.[^\s<>]{1,80})?\s+([^<>\n]{1,100})>")
_NAME = re.compile(
    r"\s*(?:[-‐–—]\s*)?(?:>{2,3}\s*)?"
    r"(?:\[(?P<bracket>[^\W\d_][\w .'’#-]{0,39})\]\s*:|(?P<name>[^\W\d_][\w .'’#-]{0,39}?)\s?:(?=\s|$))\s*"
)
"""SubRip's captions and transcribing programs put a name before a colon: "ANNA:", ">> Ben:", "[SPEAKER_01]:"."""
_OTHER = re.compile(r"\s*(?:[-‐–—]|>{2,3})")  # begins the line of another speaker
_TURN = re.compile(r"\s*>{2,3}\s*")
_SOUND = re.compile(r"\[[^\[\]\n]{1,200}\]|(?<!\S)\([^()\n]{1,200}\)(?=\s|$|[.,!?:])")
_WORDS_IN_A_NAME = 3
_MOST_WORDS = 6  # in a sound; longer parentheses are spoken
_TAG_LIKE = re.compile(r"\[pause:", re.IGNORECASE)
_NO_SOUND = re.compile(r"[.?…]\)$")


class CueText:
    """Reads the texts of the subtitles of one file, in order."""

    def __init__(self) -> None:
        self._sounds = Counter[str]()

    def turns(self, lines: Iterable[str], speaker: str = "") -> list[tuple[str, str]]:
        """The speakers, blank if unknown, and texts of a cue; ``\\N`` is a line break, ``speaker`` the cue's own."""
        turns: list[tuple[str, list[str]]] = [(speaker, [])]
        for line in "\n".join(lines).replace("\\N", "\n").replace("\\h", " ").split("\n"):
            pieces = _VOICE.split(line)  # the text before the first voice, then voices and their texts
            for voice, piece in zip(["", *pieces[1::2]], pieces[::2], strict=True):
                is_other = _OTHER.match(piece) is not None
                named, words = _named(html.unescape(_MARKUP.sub("", piece)))
                name = " ".join(html.unescape(voice).split()) or named
                if (name and name != turns[-1][0]) or (is_other and not name and turns[-1][0] and turns[-1][1]):
                    turns.append((name, []))
                words = " ".join(_SIGN.sub("", self._without_sounds(words)).split())
                if any(map(str.isalnum, words)):
                    turns[-1][1].append(words)
        return [(name, "\n".join(texts)) for name, texts in turns if texts]

    def skipped(self) -> tuple[str, ...]:
        """A sentence about the sounds that were left out; none if there were none."""
        count = self._sounds.total()
        if not count:
            return ()
        listed = ", ".join(sound for sound, _ in self._sounds.most_common(MOST_LISTED))
        more = " and others" if len(self._sounds) > MOST_LISTED else ""
        subject = "1 description of a sound is" if count == 1 else f"{count} descriptions of sounds are"
        return (f"{subject} left out: {listed}{more}.",)

    def _without_sounds(self, line: str) -> str:
        """A line without sounds in brackets. Those in small letters amid words may be tags for the model, and stay."""
        if "[" not in line and "(" not in line:
            return line
        is_alone = not _SOUND.sub("", line).strip(" -–—.,!?:")
        begins = len(line) - len(line.lstrip(" -–—"))

        def read(match: re.Match[str]) -> str:
            sound, is_first = match[0], match.start() <= begins
            is_square = sound[0] == "["
            if _TAG_LIKE.match(sound) or len(sound.split()) > _MOST_WORDS or not any(map(str.isalpha, sound)):
                return sound
            is_sound = sound.isupper() or is_alone or (is_first and not is_square)
            if not is_sound or (not is_square and _NO_SOUND.search(sound)):
                return sound
            self._sounds[sound] += 1
            return " "

        return _SOUND.sub(read, line)


def _named(line: str) -> tuple[str, str]:
    """The name with which a line begins, blank if there is none, and its words."""
    match = _NAME.match(line)
    if match is None:
        turn = _TURN.match(line)
        return "", line[turn.end() :] if turn else line
    name = match["bracket"] or match["name"]
    is_marked = match["bracket"] or ">>" in line[: match.start("name")] or (name.isupper() and len(name) > 1)
    if not is_marked or len(name.split()) > _WORDS_IN_A_NAME:
        return "", line
    return " ".join(name.split()), line[match.end() :]

"""The timed sentences of a project: as cues of subtitles, and as chapters of a read-along book in XHTML and SMIL."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import jinja2

from longform.timeline import Placed, Timeline
from manuscript.passages import PARAGRAPH_END, PAUSE_WITHIN
from manuscript.subtitles import WrittenCue
from speechtext.errors import check_job
from speechtext.word_times import Timed, TimedSentence, all_sentences, sentences

WordTimes = Callable[[Sequence[str]], Mapping[str, Sequence[Timed]]]
"""Finds the timed words of takes by their ids."""
AT_ONCE = 100  # takes whose words are read at a time: a book has a million words
RIGHT_TO_LEFT = frozenset(("ar", "dv", "fa", "he", "ps", "ug", "ur", "yi"))
"""Languages written from right to left."""
_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def cues(timeline: Timeline, word_times: WordTimes, characters: Mapping[str, str]) -> Iterator[WrittenCue]:
    """One cue per sentence; one for the whole part if it came from a subtitle or has no word times.

    ``characters``: names by id, of a project with a cast.
    """
    for placed, words in with_words(timeline, word_times):
        start, end = timeline.seconds(placed.start), timeline.seconds(placed.end)
        speaker = characters.get(placed.part.character or "", "")
        cues_of_part = sentences(placed.take.text, words) if placed.part.start is None else []
        if not cues_of_part:
            yield start, end, placed.part.text, speaker
        offset = start - timeline.seconds(placed.skipped)
        for cue in cues_of_part:  # never in the silence that is trimmed around the take
            begin, finish = (min(max(start, offset + at / placed.speed), end) for at in (cue.start, cue.end))
            yield begin, finish, cue.text, speaker


def with_words(timeline: Timeline, word_times: WordTimes) -> Iterator[tuple[Placed, Sequence[Timed]]]:
    """The placed takes with their words, which are empty if they have no times."""
    for at in range(0, len(timeline.placed), AT_ONCE):
        check_job()
        placed = timeline.placed[at : at + AT_ONCE]
        words = word_times([entry.take.id for entry in placed])
        yield from ((entry, words.get(entry.take.id, ())) for entry in placed)


class OverlayClip(NamedTuple):
    """An element of the page, with its start and end in milliseconds of the chapter's audio."""

    element: str
    begin: int
    end: int


def xml(text: str) -> str:
    """The text as XML, also in attributes, without the characters that XML cannot contain."""
    return html.escape(_NOT_XML.sub("", text))


def clock(milliseconds: int) -> str:
    """A SMIL clock value."""
    return f"{milliseconds // 1000}.{milliseconds % 1000:03}s"


_TEMPLATES = jinja2.Environment(  # noqa: S701  (the filter xml escapes)
    loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")), trim_blocks=True, keep_trailing_newline=True
)
_TEMPLATES.filters |= {"xml": xml, "clock": clock}


def rendered(template: str, **values: object) -> str:
    """A file from a template, which is compiled once."""
    return _TEMPLATES.get_template(template).render(values)


def language_attributes(language: str) -> str:
    """The language attributes of an XHTML page's root; blank if the language is unknown."""
    code = xml(language)
    direction = ' dir="rtl"' if language.partition("-")[0].lower() in RIGHT_TO_LEFT else ""
    return f' xml:lang="{code}" lang="{code}"{direction}' if language else ""


class ReadAlongPage:
    """Builds the page of a chapter.

    The clips follow each other without gaps from the beginning of the audio to its end, so that pauses are heard too.
    """

    def __init__(self, title: str, language: str, chapter: Timeline, word_times: WordTimes) -> None:
        """``chapter`` begins at its first sample. Blocking: it reads the words of its takes."""
        self._title, self._language = title, language
        self._chapter = chapter
        self._starts: list[tuple[str, int]] = []  # of elements, in milliseconds
        self._body: list[str] = []
        if not any(placed.part.chapter for placed in chapter.placed):
            self._body.append(f"<h1>{xml(title)}</h1>")
        before: Placed | None = None
        for placed, words in with_words(chapter, word_times):
            if before is not None and before.part.scene:
                self._body.append("<hr/>")
            self._add(placed, words, before if before and _is_one_paragraph(before, placed) else None)
            before = placed

    @property
    def clips(self) -> list[OverlayClip]:
        """The clips in order. Each lasts at least a millisecond; together they last as long as the chapter."""
        ends = [*(start for _, start in self._starts[1:]), self._milliseconds(self._chapter.samples)]
        return list(map(OverlayClip, (element for element, _ in self._starts), [0, *ends], ends))

    @property
    def xhtml(self) -> str:
        language = language_attributes(self._language)
        return rendered("page.xhtml", title=self._title, language=language, body=self._body)

    def smil(self, name: str) -> str:
        """``name``: of the files of the page and its audio, without an extension."""
        return rendered("page.smil", name=name, clips=self.clips)

    def _milliseconds(self, samples: int) -> int:
        return samples * 1000 // self._chapter.sample_rate

    def _add(self, placed: Placed, words: Sequence[Timed], continued: Placed | None) -> None:
        """``continued``: the previous part if both belong to one paragraph."""
        part = placed.part
        if part.chapter and not part.is_title:
            self._body.append(f"<h1>{xml(part.chapter)}</h1>")
        timed = all_sentences(placed.take.text, words)
        first = next((at for at, sentence in enumerate(timed) if sentence.start is not None), None)
        if first is None:
            self._add_whole(placed, continued)
            return
        timed[first] = replace(timed[first], start=0.0)  # highlighted from the beginning of the part
        if part.is_title:
            self._body.append(f"<h1>{'<br/>'.join(self._lines(placed, timed, 1))}</h1>")
        else:
            self._add_paragraphs(self._lines(placed, timed, 2), placed, continued)

    def _add_paragraphs(self, paragraphs: Sequence[str], placed: Placed, continued: Placed | None) -> None:
        """Add paragraphs, of which the first continues the last one of the part ``continued``."""
        last_paragraph = self._body[-1] if self._body else ""
        if continued is not None and paragraphs and last_paragraph.startswith("<p>"):
            # A space, except next to the signs of languages that are written without spaces.
            signs = continued.part.text.rstrip()[-1:] + placed.part.text.lstrip()[:1]
            gap = "" if any(unicodedata.east_asian_width(sign) in "WF" for sign in signs) else " "
            self._body[-1] = f"{last_paragraph.removesuffix('</p>')}{gap}{paragraphs[0]}</p>"
            paragraphs = paragraphs[1:]
        self._body += [f"<p>{paragraph}</p>" for paragraph in paragraphs]

    def _add_whole(self, placed: Placed, continued: Placed | None) -> None:
        """Add a part whose words have no times as one element."""
        start, text = self._milliseconds(placed.start), placed.part.text
        if placed.part.is_title:
            self._body.append(f"<h1>{self._element(start, '<br/>'.join(map(xml, text.split(chr(10)))))}</h1>")
            return
        paragraphs = [line for paragraph in PARAGRAPH_END.split(text) if (line := xml(" ".join(paragraph.split())))]
        if len(paragraphs) == 1:
            self._add_paragraphs([self._element(start, paragraphs[0])], placed, continued)
            return
        inner = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
        self._body.append(self._element(start, inner, "div"))

    def _lines(self, placed: Placed, sentences: Sequence[TimedSentence], breaks: int) -> list[str]:
        """The sentences in lines, which end at this many line breaks or more."""
        lines, gap = [""], ""
        for sentence in sentences:
            gap += sentence.raw[: len(sentence.raw) - len(sentence.raw.lstrip())]
            if lines[-1] and gap.count("\n") >= breaks:
                lines.append("")
            elif lines[-1] and gap:
                lines[-1] += "<br/>" if "\n" in gap else " "
            gap = sentence.raw[len(sentence.raw.rstrip()) :]
            words = xml(sentence.text)
            if sentence.start is not None and words:
                start = placed.start - placed.skipped + round(sentence.start / placed.speed * self._chapter.sample_rate)
                words = self._element(self._milliseconds(min(max(placed.start, start), placed.end)), words)
            lines[-1] += words
        return [line for line in lines if line]

    def _element(self, start: int, inner: str, element: str = "span") -> str:
        """An element spoken from ``start`` on; without its own clip if no time is left for it."""
        begins_late = start >= self._milliseconds(self._chapter.samples)
        if self._starts and (begins_late or start <= self._starts[-1][1]):
            return f"<{element}>{inner}</{element}>"
        name = f"s{len(self._starts) + 1}"
        self._starts.append((name, start))
        return f'<{element} id="{name}">{inner}</{element}>'


def _is_one_paragraph(before: Placed, placed: Placed) -> bool:
    """Whether the second part continues the paragraph of the first; if unknown, the pause between them decides."""
    first, second = before.part, placed.part
    follows = second.position == first.position + 1 and second.start is None
    is_one = first.pause == PAUSE_WITHIN if second.continues is None else second.continues
    return follows and is_one and not (first.scene or second.chapter)

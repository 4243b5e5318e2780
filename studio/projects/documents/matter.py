"""Chapters of a document as they are offered for import: front and back matter are told by their titles."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from studio.errors import InvalidRequest
from studio.projects.documents.passages import Document, Passage

Matter = Literal["front", "body", "back"]

MAX_OPENING = 200
"""Words before the first chapter that count as a title page; longer text is read."""
_WORDS = re.compile(r"[^\W\d_]+")
_FRONT = (
    "copyright|copyright page|all rights reserved|imprint|title page|half title|cover|contents|table of contents"
    "|dedication|epigraph|praise|praise for .*|also by .*|also by|by the same author|other books by .*|books by .*"
    "|list of (?:illustrations|figures|tables|maps)|about this book|publishers? note"
    "|impressum|inhalt|inhaltsverzeichnis|widmung|titelseite"
    "|mentions légales|dédicace|sommaire|table des matières|du même auteur"
    "|créditos|índice|dedicatoria|derechos de autor|dedicatória|sumário|colophon|colofón"
    "|版权|版权页|版权信息|目录|献词|著作権|目次|献辞|奥付"
)
_BACK = (
    "acknowledge?ments?|about the (?:author|authors|translator|publisher)|notes|endnotes|footnotes|bibliography"
    "|references|further reading|index|glossary|credits|newsletter|a preview of .*|excerpt from .*|reading group guide"
    "|danksagung|danksagungen|über (?:den autor|die autorin)|anmerkungen|literaturverzeichnis|register"
    "|remerciements|à propos de l auteur|bibliographie|notes de bas de page"
    "|agradecimientos|agradecimentos|sobre el autor|sobre la autora|sobre o autor|bibliografía|bibliografia"
    "|致谢|关于作者|注释|参考文献|索引|謝辞|著者紹介|参考文献一覧"
)
_IS_FRONT, _IS_BACK = re.compile(_FRONT), re.compile(_BACK)


@dataclass(frozen=True, slots=True)
class Section:
    """A chapter of a document, or what precedes the first one."""

    title: str
    matter: Matter
    words: int
    """Pieces between blanks."""
    characters: int


def sections_of(document: Document) -> tuple[Section, ...]:
    """The chapters in order. Blocking, in proportion to the text."""
    groups = _groups(document.passages)
    return tuple(_section(group, len(groups) > 1) for group in groups)


def chosen_sections(document: Document, numbers: Iterable[int]) -> Document:
    """The document with only these of its sections, counted from 0. Raises InvalidRequest."""
    groups = _groups(document.passages)
    wanted = set(numbers)
    if unknown := sorted(wanted - set(range(len(groups)))):
        raise InvalidRequest(f"chapter {unknown[0]} does not exist: the document has {len(groups)}, from 0", "chapters")
    passages = [passage for number, group in enumerate(groups) if number in wanted for passage in group]
    if not any(passage.text.strip() for passage in passages):
        raise InvalidRequest("choose at least one chapter with text", "chapters")
    return replace(document, passages=tuple(passages))


def _groups(passages: Iterable[Passage]) -> list[list[Passage]]:
    groups: list[list[Passage]] = []
    for passage in passages:
        if passage.chapter or not groups:
            groups.append([])
        groups[-1].append(passage)
    return groups


def _section(passages: list[Passage], is_one_of_many: bool) -> Section:
    words = sum(len(passage.text.split()) for passage in passages)
    title = passages[0].chapter
    is_opening = not title and is_one_of_many and words <= MAX_OPENING
    matter: Matter = "front" if is_opening else _matter_of(title)
    return Section(title, matter, words, sum(len(passage.text) for passage in passages))


def _matter_of(title: str) -> Matter:
    words = " ".join(_WORDS.findall(title[:200].casefold()))
    return "front" if _IS_FRONT.fullmatch(words) else "back" if _IS_BACK.fullmatch(words) else "body"

"""Opening and closing credits: templates in the settings, whose texts are parts at a project's beginning and end."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from longform.library.project_records import (
    MAX_CREDITS,
    NewPart,
    Part,
    PartChanges,
    Project,
    ProjectSettings,
    ReplacedValues,
)
from longform.library.project_repository import ALL_PARTS, ProjectLibrary
from manuscript.passages import MAX_PART_TEXT, MAX_PARTS
from speechtext.script import sentences_of
from studio.errors import InvalidRequest, NotFound
from studio.library.checks import clean_text

PLACEHOLDERS = ("title", "author", "narrator", "year")
_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
_CHAPTERS: dict[str, list[str]] = json.loads(Path(__file__).with_name("credits.json").read_text("utf-8"))
"""Titles of the two chapters by language."""

STAYS_REMOVED = ""
"""The id in the settings of credits that somebody has removed, and whose text has become blank since."""

Texts = tuple[str, str]  # the texts of the opening and the closing credits; blank: none


def check_template(field: str, template: str) -> str:
    """The cleaned template. Raises InvalidRequest for an unknown placeholder, or a template that is too long."""
    template = clean_text(field, template, MAX_CREDITS)
    names = _PLACEHOLDER.findall(template)
    unknown = next((name for name in names if name not in PLACEHOLDERS), None)
    if unknown is not None or "{" in (rest := _PLACEHOLDER.sub("", template)) or "}" in rest:
        allowed = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
        unknown = "a single brace" if unknown is None else f"{{{unknown[:40]}}}"
        raise InvalidRequest(f"{field} contains {unknown}; its placeholders are {allowed}", field)
    return template


def filled_in(template: str, title: str, settings: ProjectSettings) -> str:
    """The text of credits. A sentence with a placeholder that has no value is left out."""
    values = {"title": title, "author": settings.author, "narrator": settings.narrator}
    values["year"] = "" if settings.year is None else str(settings.year)
    sentences = [
        _PLACEHOLDER.sub(lambda name: values[name[1]], sentence)
        for sentence in sentences_of(template)
        if all(values[name] for name in _PLACEHOLDER.findall(sentence))
    ]
    return "".join(sentences).strip()


def _old_text(part: Part, before: str) -> str | None:
    """The text of credits with which a part begins, alone or with more behind it: the one that it was given last, or
    the one ``before``. None: somebody has written something else there."""
    texts = (text for text in (part.credits, before) if text and f"{part.text} ".startswith((f"{text} ", f"{text}\n")))
    return max(texts, key=len, default=None)


def texts_of(title: str, settings: ProjectSettings) -> Texts:
    return filled_in(settings.opening_credits, title, settings), filled_in(settings.closing_credits, title, settings)


def check_texts(texts: Texts, parts: int, behind: Sequence[int] = (0, 0)) -> None:
    """Raise InvalidRequest for credits that are too long, with the characters ``behind`` each in its part, or if
    ``parts``, the number with them, is too large."""
    for name, text, more in zip(("opening_credits", "closing_credits"), texts, behind, strict=True):
        if len(text) + more > MAX_PART_TEXT:
            what = f"with its placeholders filled in{', and what is behind it in its part' if more else ''}, {name}"
            message = f"{what} has {len(text) + more} characters; at most {MAX_PART_TEXT} are allowed"
            raise InvalidRequest(message, name)
    if parts > MAX_PARTS:
        raise InvalidRequest(f"with credits the project has {parts} parts; at most {MAX_PARTS} are allowed", "parts")


@dataclass(frozen=True, slots=True)
class CreditChanges:
    """The changes to the two parts, and the settings that name them."""

    settings: ProjectSettings
    before: Texts
    after: Texts
    parts: Sequence[Part | None]
    removed: Sequence[bool]
    """Whether somebody has deleted or merged each: it is added again only with another template. One that was deleted
    because a placeholder became blank comes back with the next value."""


@dataclass(slots=True)
class ReplacedPart:
    """What a change did to the part with the opening or the closing credits."""

    before: str | None = None  # the id that the settings had before the change
    after: str | None = None  # and after it
    deleted: Sequence[str] = ()  # the ids of the parts that it deleted
    added: str | None = None  # the text of the part that it added or brought back from the trash
    titled: str | None = None  # the id of the first part, if it got the project's title for its chapter


@dataclass(frozen=True, slots=True)
class ReplacedCredits:
    """What a change of the credits replaced, so that it can be undone."""

    parts: list[ReplacedValues] = field(default_factory=list)
    ends: tuple[ReplacedPart, ReplacedPart] = field(default_factory=lambda: (ReplacedPart(), ReplacedPart()))
    """The opening and the closing credits."""


@dataclass(frozen=True, slots=True)
class CreditsUndo:
    """The undo of a change that replaced credits."""

    ends: Sequence[ReplacedPart]  # as in ReplacedCredits
    put_back: Set[str] = frozenset()  # the ids of the parts that have their old values again
    left: Set[str] = frozenset()  # the ids of those that have been changed since, and stay as they are
    taken_away: Set[str] = frozenset()  # the ids of the parts that the change had added


class Credits:
    """Updates the parts with the credits from their templates; in all else they are normal parts.

    Calls block for milliseconds; ``owner_filter`` is as in Projects.
    """

    def __init__(self, library: ProjectLibrary) -> None:
        self._projects, self._arrangement, self._edits = library.projects, library.arrangement, library.part_edits

    def plan(
        self, before: Project, title: str, settings: ProjectSettings, owner_filter: str | None, undo: CreditsUndo | None
    ) -> CreditChanges:
        """The changes caused by a new title and new settings, or by undoing others. Raises InvalidRequest.

        What a failure or a crash has left undone is made up by the next change: new parts are not named yet, and those
        with former credits get the new ones. An undo adds only what the change had deleted.
        """
        old_texts, new_texts = texts_of(before.title, before.settings), texts_of(title, settings)
        ids = (settings.opening_part, settings.closing_part)
        templates = [(one.opening_credits, one.closing_credits) for one in (before.settings, settings)]
        added, parts, removed, new_ids = 0, list[Part | None](), list[bool](), list[str | None]()
        behind, ends = list[int](), undo.ends if undo else (None, None)
        for part_id, old, new, old_text, text, end in zip(ids, *templates, old_texts, new_texts, ends, strict=True):
            # Without a text of the credits, the part has only what somebody has merged into it.
            part = self._part(before.id, owner_filter, part_id) if old_text or undo else None
            is_gone = old == new and part_id is not None and part is None
            is_in_trash = is_gone and self._arrangement.is_deleted(str(part_id))
            is_removed = is_gone and (part_id == STAYS_REMOVED or bool(old_text))  # also once the trash is emptied
            is_same = part is not None or is_in_trash or is_removed or not text
            is_not_undone = end is not None and part is None and not end.deleted
            named = part_id if is_same or is_not_undone else None
            is_taken_away = undo is not None and part_id in undo.taken_away
            new_ids.append(STAYS_REMOVED if is_removed and not (text or is_taken_away) else named)
            added += 0 if is_removed or is_not_undone else bool(text) - bool(part)
            behind.append(len(part.text.removeprefix(_old_text(part, old_text) or part.text)) if part else 0)
            parts.append(part)
            removed.append(is_removed or is_not_undone)
        if added > 0 or new_texts != old_texts:
            check_texts(new_texts, self._projects.count_parts(before.id, owner_filter, ALL_PARTS) + added, behind)
        settings = replace(settings, opening_part=new_ids[0], closing_part=new_ids[1])
        return CreditChanges(settings, old_texts, new_texts, parts, removed)

    def restore(
        self, project: Project, owner_filter: str | None, settings: ProjectSettings, undo: CreditsUndo
    ) -> tuple[ProjectSettings, CreditsUndo]:
        """Delete the parts that a change added and restore those that it deleted, unless the project has others by
        now. Returns the settings, which name the former parts, and the undo with those that are as they were. Raises
        NotFound, InvalidRequest."""
        put_back, taken_away = set(undo.put_back), set[str]()
        named = [settings.opening_part, settings.closing_part]
        for number, end in enumerate(undo.ends):
            part = self._part(project.id, owner_filter, named[number])
            if end.after in undo.left or named[number] not in (end.before, end.after):
                continue
            if part and end.added is not None and part.id == end.after:
                if part.text not in (end.added, part.credits) and part.id not in put_back:  # somebody has written there
                    continue
                titled = (end.titled, project.title) if end.titled else None
                self._arrangement.delete(project.id, owner_filter, [part.id], titled=titled)
                taken_away.add(part.id)
            named[number] = end.before
            if end.deleted:
                with suppress(NotFound):  # not in the trash any more: the part may exist, or is added again
                    self._arrangement.restore(project.id, owner_filter, end.deleted)
                put_back.update(end.deleted, filter(None, [end.before]))  # perhaps it deleted only the second half
        settings = replace(settings, opening_part=named[0], closing_part=named[1])
        return settings, replace(undo, put_back=put_back, taken_away=taken_away)

    def apply(
        self, project: Project, owner_filter: str | None, changes: CreditChanges, undo: CreditsUndo | None
    ) -> ReplacedCredits:
        """Add, change and delete the two parts; returns what was replaced. Raises InvalidRequest, NotFound.

        A text that somebody has written is never changed, and what was merged into a part stays; both go to the trash
        with credits that are blank. Of a part that was split, the second half stays if its words do; else the first
        gets all of the new text. Parts that an ``undo`` has put back already stay as they are, as do those with other
        texts by now.
        """
        ids = project.settings.opening_part, project.settings.closing_part
        replaced = ReplacedCredits()
        for number, (new_text, part, part_id) in enumerate(zip(changes.after, changes.parts, ids, strict=True)):
            before = changes.before[number]
            if part is None:
                if not new_text or changes.removed[number]:
                    continue
                end = replaced.ends[number]
                end.added = new_text
                if part_id and self._arrangement.is_deleted(part_id):
                    self._arrangement.restore(project.id, owner_filter, [part_id])
                    restored = self._projects.part(project.id, owner_filter, part_id)
                    if restored.text == (restored.credits or restored.text):
                        replaced.parts.extend(self._write(restored, owner_filter, new_text, new_text))
                    else:
                        end.added = restored.text
                else:
                    end.titled = self._add(project, owner_filter, new_text, is_closing=number == 1)
                continue
            text, unneeded, old_text = new_text, list[str](), _old_text(part, before)
            if undo and part.id in undo.put_back:
                self._write(part, owner_filter, None, new_text)
                continue
            if new_text == before and old_text in (None, new_text):
                continue
            if old_text:
                text = f"{new_text}{part.text.removeprefix(old_text)}".strip()
            elif second := self._second_half(part, before, owner_filter):
                if new_text.endswith(second.text):
                    text = new_text.removesuffix(second.text).strip()
                else:
                    unneeded.append(second.id)
            elif new_text or undo:
                continue
            if not text:
                unneeded.append(part.id)
            if unneeded:
                self._arrangement.delete(project.id, owner_filter, unneeded)
                replaced.ends[number].deleted = unneeded
            if text and text != part.text:
                replaced.parts.extend(self._write(part, owner_filter, text, new_text))
        return replaced

    def _write(self, part: Part, owner_filter: str | None, text: str | None, credits: str) -> list[ReplacedValues]:
        changes = PartChanges(text=text, credits=credits)
        return self._edits.edit_part(part.project_id, owner_filter, part.id, changes)[1]

    def _second_half(self, part: Part, before: str, owner_filter: str | None) -> Part | None:
        """The part after this one if the credits, given last or ``before``, were split into the two."""
        following = self._projects.part_ids(part.project_id, owner_filter, offset=part.position + 1, limit=1)
        second = self._part(part.project_id, owner_filter, following[0] if following else None)
        texts = [text.removeprefix(part.text).strip() for text in (part.credits, before) if text.startswith(part.text)]
        return second if second and second.text in texts else None

    def _part(self, project_id: str, owner_filter: str | None, part_id: str | None) -> Part | None:
        if part_id is None:
            return None
        try:
            return self._projects.part(project_id, owner_filter, part_id)
        except NotFound:  # it was deleted or merged into another one
            return None

    def _add(self, project: Project, owner_filter: str | None, text: str, is_closing: bool) -> str | None:
        """Returns the id of the first part, if its chapter gets a title."""
        chapters = _CHAPTERS.get(project.settings.language.partition("-")[0].lower(), _CHAPTERS["en"])
        part = NewPart(text, chapters[is_closing], credits=text)
        if is_closing:
            count = self._projects.count_parts(project.id, owner_filter, ALL_PARTS)
            [last_part] = self._projects.part_ids(project.id, owner_filter, offset=count - 1, limit=1)
            self._arrangement.insert(project.id, owner_filter, part, last_part, "", "closing_part")
            return None
        [first_part] = self._projects.part_ids(project.id, owner_filter, limit=1)
        has_title = bool(self._projects.part(project.id, owner_filter, first_part).chapter)
        self._arrangement.insert(project.id, owner_filter, part, None, project.title, "opening_part")
        return None if has_title else first_part

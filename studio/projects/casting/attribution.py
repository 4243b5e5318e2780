"""Finds the speaker of each line of prose, with a confidence and the reason: deterministic rules, strongest first.

1. A verb of speech with a name ("said Eleanor", "Eleanor said"), or with a role or a pronoun that means one person.
2. A person's action in the same paragraph ("Jack lit a cigarette.").
3. Continued speech, and alternating turns of two people.
4. The person addressed answers; the person named last speaks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from studio.library.projects.project_records import SURE
from studio.projects.casting.characters import NARRATOR_SELF, Character, Characters, Gender
from studio.projects.casting.noun_phrases import find_phrases
from studio.projects.casting.person_patterns import SENTENCES, TITLED_SUBJECT, UNNAMED, PersonPatterns
from studio.projects.casting.quotations import Quotation, QuotationStyle, find_quotations
from studio.projects.casting.speech_verbs import FIRST_PERSON, POSSESSIVES, PRONOUNS, ROLES
from studio.work.job import check_job

Reason = Literal["tag", "pronoun", "action", "continued", "turns", "answer", "mention", "unknown"]
CONFIDENCE: dict[Reason, float] = {
    "tag": 0.98,
    "continued": 0.95,
    "pronoun": 0.9,
    "action": 0.85,
    "turns": 0.8,
    "answer": 0.6,
    "mention": 0.5,
    "unknown": 0.0,
}
_TAG_WITHIN = 160
"""Maximum characters between a quotation and its verb of speech."""
_SCENE_GAP = 2
"""Paragraphs of narration after which turns are no longer assumed to alternate."""
_RECENT = 8
"""Number of people named last to whom a pronoun may refer."""
_COMPANY = 6
"""Number of paragraphs in which a third person may take turns too."""


@dataclass(frozen=True, slots=True)
class CastLine:
    """A stretch of narration or speech in one paragraph, by character offsets; narration has no speaker."""

    paragraph: int
    start: int
    end: int
    is_speech: bool
    speaker: str | None = None
    confidence: float = 1.0
    reason: Reason = "tag"


@dataclass(frozen=True, slots=True)
class Attribution:
    """The lines of a text in order, and the characters, those with the most lines first."""

    lines: tuple[CastLine, ...]
    characters: tuple[Character, ...]


def attribute(paragraphs: Sequence[str]) -> Attribution:
    """Divide a text into narration and speech with its speakers. Blocking; the time is linear in the text."""
    style = QuotationStyle.of(paragraphs)
    by_paragraph = find_quotations(paragraphs, style)
    patterns = PersonPatterns(find_phrases(_beside_quotations(paragraphs, by_paragraph)))
    scenes: list[_Paragraph] = []
    for place, (text, quotations) in enumerate(zip(paragraphs, by_paragraph, strict=True)):
        scenes.extend(_Paragraph(patterns, len(scenes), place, 0, text, quotations).by_speakers())
    names = [name for scene in scenes for name in scene.names()]
    characters = Characters.of(patterns, names, [" ".join(scene.narration) for scene in scenes])
    turns = _Turns(characters, scenes)
    speakers = turns.resolve()
    lines = [line for scene in scenes for line in _lines(scene, speakers[scene.index])]
    for line in lines:
        if line.speaker is not None and (person := characters.find(line.speaker)) is not None:
            person.lines += 1
    people = sorted((person for person in characters.people if person.lines), key=lambda person: -person.lines)
    return Attribution(tuple(lines), tuple(people))


def _beside_quotations(
    paragraphs: Sequence[str], by_paragraph: Sequence[Sequence[Quotation]]
) -> Iterator[tuple[str, str]]:
    for text, quotations in zip(paragraphs, by_paragraph, strict=True):
        ends = [0, *(quotation.end for quotation in quotations)]
        starts = [*(quotation.start for quotation in quotations), len(text)]
        for number, quotation in enumerate(quotations):
            before = text[max(ends[number], quotation.start - _TAG_WITHIN) : quotation.start]
            yield before, text[quotation.end : min(starts[number + 1], quotation.end + _TAG_WITHIN)]


@dataclass(slots=True)
class _Tag:
    """The name, role or pronoun beside a quotation with a verb of speech."""

    person: str

    @property
    def gender(self) -> Gender | None:
        """The gender of a pronoun; None for names and roles."""
        return PRONOUNS.get(self.person.lower())  # type: ignore[return-value]


@dataclass(slots=True)
class _Paragraph:
    """A paragraph, or as much of it as one person speaks."""

    patterns: PersonPatterns
    index: int
    place: int
    """The number, in the text, of the paragraph that it is or is a part of."""
    offset: int
    """Its start in that paragraph."""
    text: str
    quotations: list[Quotation]
    narration: list[str] = field(init=False)
    """The text before, between and after the quotations: one more piece than quotations."""
    tags: list[_Tag | None] = field(init=False)
    """The tag of each quotation; None without its own."""

    def __post_init__(self) -> None:
        edges = [
            0,
            *(edge for quotation in self.quotations for edge in (quotation.start, quotation.end)),
            len(self.text),
        ]
        self.narration = [self.text[edges[i] : edges[i + 1]] for i in range(0, len(edges), 2)]
        self.tags = self._find_tags()

    @property
    def speech(self) -> str:
        return " ".join(self.text[quotation.start : quotation.end] for quotation in self.quotations)

    def _find_tags(self) -> list[_Tag | None]:
        tags: list[_Tag | None] = []
        for number in range(len(self.quotations)):
            before, after = self.narration[number][-_TAG_WITHIN:], self.narration[number + 1][:_TAG_WITHIN]
            patterns = self.patterns
            match = patterns.after.match(after) or patterns.beside.search(before) or patterns.before.search(before)
            tags.append(_Tag(match["behind"] or match["before"]) if match else None)
        return tags

    @property
    def has_unnamed(self) -> bool:
        """Whether the quotations have only a verb of speech without a known subject: "growled a deep voice"."""
        return not any(self.tags) and any(UNNAMED.match(piece[:_TAG_WITHIN]) for piece in self.narration[1:])

    def by_speakers(self) -> Iterator[_Paragraph]:
        """The parts of the paragraph between tags that name different people."""
        start, first, person = 0, 0, ""
        index = self.index
        for number, tag in enumerate(self.tags):
            if tag is None or tag.gender is not None:
                continue
            if person and tag.person != person:
                cut = self.quotations[number].start
                cut -= len(SENTENCES.findall(self.narration[number])[-1].lstrip()) if not self._is_closed(number) else 0
                yield self._cut(index, start, cut, self.quotations[first:number])
                start, first, index = cut, number, index + 1
            person = tag.person
        yield self._cut(index, start, len(self.text), self.quotations[first:]) if start else self

    def _is_closed(self, number: int) -> bool:
        """Whether a sentence ends right before a quotation, so that nothing there belongs to it."""
        return self.narration[number].rstrip()[-1:] in (*".!?…", "")

    def _cut(self, index: int, start: int, end: int, quotations: list[Quotation]) -> _Paragraph:
        shifted = [
            replace(quotation, start=quotation.start - start, end=quotation.end - start) for quotation in quotations
        ]
        return _Paragraph(self.patterns, index, self.place, start, self.text[start:end], shifted)

    def names(self) -> Iterator[str]:
        """Names beside verbs of speech, and names with a title of people who do something."""
        for tag in self.tags:
            if tag and tag.gender is None and tag.person.lower() not in FIRST_PERSON:
                yield tag.person
        for piece in self.narration:
            for sentence in SENTENCES.findall(piece):
                if match := TITLED_SUBJECT.match(sentence):
                    yield match["person"]


@dataclass(slots=True)
class _Turn:
    """The speaker of a paragraph's speech; ``excluded``: people whom it addresses."""

    speaker: Character | None
    reason: Reason
    confidence: float
    excluded: list[Character]


class _Turns:
    """Processes the paragraphs once, tracking who was named and spoke last; then once more for unknown speakers."""

    def __init__(self, characters: Characters, paragraphs: Sequence[_Paragraph]) -> None:
        self.characters = characters
        self.paragraphs = paragraphs
        self.recent: list[Character] = []
        self.now = 0
        """The current paragraph."""
        self.named_at: dict[str, int] = {}
        """By name, the last paragraph that named a person or that the person spoke."""
        self.turns: list[_Turn | None] = []
        self.last_speeches: list[tuple[int, Character]] = []
        """Paragraph and speaker of the last speeches, the newest last."""
        self.relatives: dict[str, Character] = {}

    def resolve(self) -> list[_Turn | None]:
        for paragraph in self.paragraphs:
            check_job()
            self.now = paragraph.index
            self.turns.append(self._turn(paragraph) if paragraph.quotations else None)
            if not paragraph.quotations:
                self._mention(paragraph.text)
        for index, turn in enumerate(self.turns):
            if turn is not None and turn.reason in ("answer", "mention", "unknown"):
                self.turns[index] = self._from_what_follows(index, turn)
        return self.turns

    def _turn(self, paragraph: _Paragraph) -> _Turn:
        excluded = self._addressees(paragraph.speech)
        self._mention(paragraph.narration[0])
        speaker, reason = self._by_text(paragraph)
        is_continued = speaker is None and paragraph.quotations[0].continues
        if is_continued and (before := self.turns[-1]) is not None:
            speaker, reason = before.speaker, "continued" if before.speaker else "unknown"
        confidence = CONFIDENCE[reason]
        if speaker is None and not is_continued:
            speaker, reason, confidence = self._by_turns(paragraph, excluded)
        if paragraph.has_unnamed:
            confidence = min(confidence, CONFIDENCE["mention"])
        if speaker is not None:
            self._mention_person(speaker)
            self.last_speeches = [*self.last_speeches[-3:], (paragraph.index, speaker)]
        for piece in paragraph.narration[1:]:
            self._mention(piece)
        if speaker is not None and reason in ("tag", "pronoun", "action"):
            self._mention_person(speaker)
        return _Turn(speaker, reason, confidence, excluded)

    def _by_text(self, paragraph: _Paragraph) -> tuple[Character | None, Reason]:
        """Find the speaker by the narration of the paragraph itself."""
        for tag in paragraph.tags:
            if tag is None:
                continue
            if tag.person.lower() in FIRST_PERSON:
                return self.characters.add(NARRATOR_SELF), "tag"
            if tag.gender is not None:
                if (person := self._person_of(tag.gender)) is not None:
                    return person, "pronoun"
            elif (person := self._relative(tag.person, paragraph) or self.characters.find(tag.person)) is not None:
                return person, "tag"
        # A person's action beside the quotation, the nearest sentence first.
        for piece in reversed(SENTENCES.findall(paragraph.narration[0])):
            if (person := self._subject(piece)) is not None:
                return person, "action"
        for text in paragraph.narration[1:]:
            for piece in SENTENCES.findall(text)[:1]:
                if (person := self._subject(piece)) is not None:
                    return person, "action"
        return None, "unknown"

    def _relative(self, name: str, paragraph: _Paragraph) -> Character | None:
        """The person meant by "her mother", if named in the same paragraph; later the same words mean that person."""
        words = name.lower().split()
        if words[0] not in POSSESSIVES:
            return None
        role, gender = words[-1], ROLES.get(words[-1], "")
        for piece in paragraph.narration:
            for sentence in SENTENCES.findall(piece):
                subject = self.characters.patterns.subject.match(sentence)
                for person in self.characters.mentioned(subject["person"]) if subject else ():
                    if (
                        person.gender in (gender, "")
                        and name not in person.names
                        and person.name.lower() != name.lower()
                    ):
                        self.relatives[role] = person
        return self.relatives.get(role)

    def _subject(self, sentence: str) -> Character | None:
        match = self.characters.patterns.subject.match(sentence)
        if match is None:
            return None
        word = match["person"]
        if word.lower() in FIRST_PERSON:
            return self.characters.find(NARRATOR_SELF)
        if word.lower() in PRONOUNS:
            return self._person_of(PRONOUNS[word.lower()])  # type: ignore[arg-type]
        people = self.characters.mentioned(word)
        return people[0] if people else None

    def _by_turns(self, paragraph: _Paragraph, excluded: list[Character]) -> tuple[Character | None, Reason, float]:
        """Find the speaker by earlier speech: two people take turns; else the person addressed, or named last."""
        if not self.last_speeches or paragraph.index - self.last_speeches[-1][0] > _SCENE_GAP:
            candidates = [person for person in self.recent if person not in excluded]
            return (candidates[0], "mention", CONFIDENCE["mention"]) if candidates else (None, "unknown", 0.0)
        index, previous = self.last_speeches[-1]
        gap = paragraph.index - index
        respondents = [
            person for person in self._excluded_at(index) if person is not previous and person not in excluded
        ]
        partner = next(
            (
                person
                for at, person in reversed(self.last_speeches[:-1])
                if person is not previous and index - at <= _SCENE_GAP
            ),
            None,
        )
        if partner is not None and partner not in excluded and (not respondents or partner in respondents):
            pair = {previous.name, partner.name}
            has_third_person = any(self.now - at <= _COMPANY for name, at in self.named_at.items() if name not in pair)
            return partner, "turns", CONFIDENCE["turns"] - 0.15 * (gap - 1) - 0.2 * has_third_person
        if respondents:
            return respondents[0], "answer", CONFIDENCE["answer"] + 0.15
        candidates = [person for person in self.recent if person is not previous and person not in excluded]
        if candidates:
            return candidates[0], "mention", CONFIDENCE["mention"]
        return None, "unknown", 0.0

    def _from_what_follows(self, index: int, turn: _Turn) -> _Turn:
        """The speaker of an unattributed paragraph before two people who take turns: the second of them."""
        following = [
            next_turn for next_turn in self.turns[index + 1 : index + 1 + 2 + _SCENE_GAP] if next_turn is not None
        ][:2]
        if len(following) == 2 and all(next_turn.confidence >= SURE for next_turn in following):
            first, second = following
            if second.speaker is not first.speaker and second.speaker not in turn.excluded:
                return replace(turn, speaker=second.speaker, reason="turns", confidence=0.65)
        return turn

    def _excluded_at(self, index: int) -> list[Character]:
        turn = self.turns[index] if index < len(self.turns) else None
        return [] if turn is None else turn.excluded

    def _addressees(self, speech: str) -> list[Character]:
        people = []
        for match in self.characters.patterns.vocative.finditer(speech):
            if match[1].lower() not in PRONOUNS and (person := self.characters.find(match[1])) is not None:
                people.append(person)
        return people

    def _person_of(self, gender: Gender) -> Character | None:
        """The person to whom a pronoun refers: the last one named of that gender, else the last of unknown gender."""
        for person in self.recent:
            if person.gender == gender:
                return person
        return next((person for person in self.recent if not person.gender), None)

    def _mention(self, text: str) -> None:
        """Record the people that a text names. A sentence's subject, named first, counts as its most recent mention."""
        for sentence in SENTENCES.findall(text):
            subject = self._subject(sentence)
            for person in reversed(self.characters.mentioned(sentence)):
                self._mention_person(person)
            if subject is not None:
                self._mention_person(subject)

    def _mention_person(self, person: Character) -> None:
        self.recent = [person, *(other for other in self.recent if other is not person)][:_RECENT]
        self.named_at[person.name] = self.now


def _lines(paragraph: _Paragraph, turn: _Turn | None) -> list[CastLine]:
    lines = []
    place, offset, at = paragraph.place, paragraph.offset, 0
    for quotation in paragraph.quotations:
        if paragraph.text[at : quotation.start].strip():
            lines.append(CastLine(place, offset + at, offset + quotation.start, is_speech=False))
        assert turn is not None
        confidence = turn.confidence if quotation.is_sure else min(turn.confidence, 0.5)
        name = None if turn.speaker is None else turn.speaker.name
        start, end = offset + quotation.start, offset + quotation.end
        lines.append(CastLine(place, start, end, True, name, round(confidence, 2), turn.reason))
        at = quotation.end
    if paragraph.text[at:].strip():
        lines.append(CastLine(place, offset + at, offset + len(paragraph.text), is_speech=False))
    return lines

"""Finds the speaker of each line of prose, with a confidence and the reason. Deterministic.

A first pass collects what the text says about each paragraph of speech:

1. A verb of speech with a name ("said Eleanor", "Eleanor said"), or with a role or a relation that means one person.
2. A pronoun beside it, or a person's action in the same paragraph ("Jack lit a cigarette.").
3. Continued speech, people who are addressed, and people named last.

Then each scene is decoded as a whole (``scenes``). The confidence is the share of such lines that were right in novels.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Literal, get_args

from manuscript.characters import (
    CALLED,
    FIRST_PERSON,
    MAX_NAMES,
    NARRATOR_SELF,
    POSSESSIVES,
    PRONOUNS,
    ROLES,
    SENTENCES,
    TITLED_SUBJECT,
    UNNAMED,
    Character,
    Characters,
    Gender,
    PersonPatterns,
    find_phrases,
    gender_of_name,
    given_names_in,
    has_given_name,
    noun_of,
)
from manuscript.han import HanNames
from manuscript.quotations import Quotation, find_quotations
from manuscript.scenes import Evidence, decode, scenes_of
from speechtext.errors import check_job

Reason = Literal["tag", "pronoun", "action", "continued", "turns", "answer", "mention", "unknown"]
Kind = Literal["name", "name before", "noun", "relative", Reason]
"""What shows the speaker: a reason, with the kinds of tags apart, which are not equally certain."""
_REASONS: dict[Kind, Reason] = {
    **{reason: reason for reason in get_args(Reason)},
    **dict.fromkeys(("name", "name before", "noun"), "tag"),
    "relative": "pronoun",
}
_CERTAIN = frozenset({"name", "name before", "noun"})  # kinds whose person does not depend on other lines
_CONFIDENCES: dict[Kind, list[tuple[float, float]]] = json.loads(
    Path(__file__).with_name("confidences.json").read_text("utf-8")
)
"""The measured share of right lines, by kind: pairs of a probability of the decoded scene and the share from it on."""
_UNNAMED_AT_MOST = 0.5  # where the verb of speech has an unknown subject
_TAG_WITHIN = 160  # characters between a quotation and its verb of speech
_SCENE_GAP = 2  # paragraphs of narration after which turns are no longer assumed to alternate
_NARRATORS_LINES = 10  # with “I said”, from which a book has a first-person narrator
_ADDRESSED_LEAST = 3  # times that a name must stand beside the narrator's lines
_ADDRESSED_SHARE = 0.15  # of all times: most of the narrator's lines have no “I said” either
_OWNERS = ("’s", "'s")
_RECENT = 8  # people named last to whom a pronoun may refer


_CALLS = re.compile(r"\b(?:(?P<male>sir|[Mm]y lord|[Mm]onsieur(?=[,.!?]))|ma[’']am|[Mm]adam|[Mm]y lady)\b")


@dataclass(frozen=True, slots=True)
class CastLine:
    """A stretch of narration or speech in one paragraph, by character offsets; only speech has the last four."""

    paragraph: int
    start: int
    end: int
    is_speech: bool
    speaker: str | None = None
    confidence: float | None = None
    reason: Reason | None = None
    scene: int = -1  # the number of its scene


@dataclass(frozen=True, slots=True)
class Attribution:
    """The lines of a text in order, and the characters, those with the most lines first."""

    lines: tuple[CastLine, ...]
    characters: tuple[Character, ...]


Decisions = Mapping[int, Sequence[tuple[int, str]]]
"""Speakers that are known already, by the number of a paragraph: offsets into it, each with the name of the person who
speaks there."""


def attribute(paragraphs: Sequence[str], known: Sequence[Character] = ()) -> Attribution:
    """Divide a text into narration and speech with its speakers. Blocking; the time is linear in the text.

    ``known``: people of the text, who have all names that are given for them.
    """
    [attribution] = attribute_again(paragraphs, known, [{}])
    return attribution


def attribute_again(
    paragraphs: Sequence[str], known: Sequence[Character], alternatives: Sequence[Decisions]
) -> list[Attribution]:
    """One attribution, as from `attribute`, for each of these alternative sets of decisions."""
    by_paragraph = find_quotations(paragraphs)
    beside = (piece for text, speech in zip(paragraphs, by_paragraph, strict=True) for piece in _beside(text, speech))
    nouns = (phrase for person in known for name in person.names if (phrase := noun_of(name)))
    phrases = dict.fromkeys([*nouns, *find_phrases(beside)])
    patterns = PersonPatterns(phrases, _han_names(paragraphs, by_paragraph))
    scenes: list[_Paragraph] = []
    for place, (text, quotations) in enumerate(zip(paragraphs, by_paragraph, strict=True)):
        scenes.extend(_Paragraph(patterns, len(scenes), place, 0, text, quotations).by_speakers())
    names = [name for scene in scenes for name in scene.names()]
    names += _addressed_and_acting(patterns, scenes)
    characters = Characters.of(patterns, names, [" ".join(scene.narration) for scene in scenes], known)
    characters.name_narrator(_narrators_names(scenes))
    turns = _Turns(characters, scenes)
    return [_attribution(characters, scenes, turns.decoded(decisions)) for decisions in alternatives]


def _addressed_and_acting(patterns: PersonPatterns, scenes: Sequence[_Paragraph]) -> list[str]:
    """Names without a verb of speech that are people's: speech addresses them, and they act beside speech."""
    addressed = {name for scene in scenes for name in patterns.vocative.findall(scene.speech) if name[0].isupper()}
    subjects = dict.fromkeys(
        match["person"]
        for scene in scenes
        if scene.quotations and not any(scene.tags)
        for piece in scene.narration
        for sentence in SENTENCES.findall(piece)
        if (match := patterns.subject.match(sentence)) is not None
    )
    names = [name for name in subjects if name in addressed and not _is_kin(name)][:MAX_NAMES]
    places = _places(names)
    seen = {match[1] for scene in scenes for match in places.finditer(scene.text)}
    return [name for name in names if name not in seen]


def _narrators_names(scenes: Sequence[_Paragraph]) -> list[str]:
    """The names by which others address a first-person narrator: nobody speaks under them, and speech beside the
    narrator's has them most often."""
    speech = [scene for scene in scenes if scene.quotations]
    is_narrators = [any(tag.lower() in FIRST_PERSON for tag in scene.tags) for scene in speech]
    if sum(is_narrators) < _NARRATORS_LINES:
        return []
    speakers = {word for scene in speech for tag in scene.tags for word in tag.split()}
    near, total = Counter[str](), Counter[str]()
    for at, scene in enumerate(speech):
        if not is_narrators[at]:
            called = {match["name"] for match in CALLED.finditer(scene.speech)}
            total.update(called)
            beside = (other for other in (at - 1, at + 1) if 0 <= other < len(speech) and is_narrators[other])
            near.update(called if any(abs(speech[other].index - scene.index) == 1 for other in beside) else ())
    names = [
        name
        for name, count in near.most_common(3)
        if count >= max(_ADDRESSED_LEAST, _ADDRESSED_SHARE * total[name]) and not speakers & set(name.split())
    ]
    return [name for name in names if not any(map(_places([name]).search, (scene.text for scene in scenes)))]


def _places(names: Sequence[str]) -> re.Pattern[str]:
    return re.compile(rf"\b(?:in|at|near|nach|en|à)\s+({'|'.join(map(re.escape, names)) or '(?!)'})\b")


def _attribution(characters: Characters, scenes: Sequence[_Paragraph], turns: Sequence[_Turn | None]) -> Attribution:
    lines = [line for scene in scenes for line in _lines(scene, turns[scene.index])]
    counts = Counter(line.speaker for line in lines if line.speaker is not None)
    people = (replace(person, lines=counts[person.name]) for person in characters.people if counts[person.name])
    return Attribution(tuple(lines), tuple(sorted(people, key=lambda person: -person.lines)))


def _han_names(paragraphs: Sequence[str], by_paragraph: Sequence[Sequence[Quotation]]) -> HanNames:
    pieces = [_narration(text, speech) for text, speech in zip(paragraphs, by_paragraph, strict=True)]
    return HanNames(chain.from_iterable(map(pairwise, pieces)), chain.from_iterable(pieces))


def _narration(text: str, quotations: Sequence[Quotation]) -> list[str]:
    """The text before, between and after the quotations: one more piece than quotations."""
    ends = [0, *(quotation.end for quotation in quotations)]
    starts = [*(quotation.start for quotation in quotations), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)]


def _beside(text: str, quotations: Sequence[Quotation]) -> Iterator[tuple[str, str]]:
    """The narration before and after each quotation, as much as may contain its verb of speech."""
    for before, after in pairwise(_narration(text, quotations)):
        yield before[-_TAG_WITHIN:], after[:_TAG_WITHIN]


@dataclass(slots=True)
class _Paragraph:
    """A paragraph, or as much of it as one person speaks."""

    patterns: PersonPatterns
    index: int
    place: int  # the number, in the text, of the paragraph that it is or is a part of
    offset: int  # its start in that paragraph
    text: str
    quotations: list[Quotation]
    narration: list[str] = field(init=False)
    tags: list[str] = field(init=False)
    """The name, role or pronoun beside each quotation with a verb of speech; blank without its own."""
    is_after: list[bool] = field(init=False)  # whether the verb of speech is after the quotation

    def __post_init__(self) -> None:
        self.narration = _narration(self.text, self.quotations)
        beside = ((before[-_TAG_WITHIN:], after[:_TAG_WITHIN]) for before, after in pairwise(self.narration))
        tags = [self.tag(before, after) for before, after in beside]
        self.tags = [tag for tag, _ in tags]
        self.is_after = [is_after for _, is_after in tags]

    @property
    def is_led(self) -> bool:
        """Whether the narrator has words before the first quotation."""
        return any(map(str.isalnum, self.narration[0]))

    @property
    def speech(self) -> str:
        return " ".join(self.text[quotation.start : quotation.end] for quotation in self.quotations)

    def tag(self, before: str, after: str) -> tuple[str, bool]:
        patterns = self.patterns
        if name := patterns.han.tag(before, after):
            return name, True
        if (match := patterns.after.match(after)) is not None:
            tag = match["heard"] or match["behind"] or match["before"]
            return "" if tag.endswith(_OWNERS) else tag, True  # "said Scrooge's nephew"
        match = patterns.beside.search(before) or patterns.before.search(before)
        return (match["behind"] or match["before"], False) if match else ("", False)

    def by_speakers(self) -> Iterator[_Paragraph]:
        """The parts of the paragraph between tags that name different people."""
        start, first, person = 0, 0, ""
        index = self.index
        for number, tag in enumerate(self.tags):
            if not tag or (tag.lower() in PRONOUNS and (not person or _may_mean(tag, person))):
                person = person or tag
                continue
            if person and tag != person and not (person.lower() in PRONOUNS and _may_mean(person, tag)):
                cut, before = self.quotations[number].start, self.narration[number]
                if before.rstrip()[-1:] not in (*".!?…", ""):  # the sentence that leads to the quotation belongs to it
                    cut -= len(SENTENCES.findall(before)[-1].lstrip())
                yield self._cut(index, start, cut, self.quotations[first:number])
                start, first, index = cut, number, index + 1
            person = tag
        yield self._cut(index, start, len(self.text), self.quotations[first:]) if start else self

    def _cut(self, index: int, start: int, end: int, quotations: list[Quotation]) -> _Paragraph:
        shifted = [
            replace(quotation, start=quotation.start - start, end=quotation.end - start) for quotation in quotations
        ]
        return _Paragraph(self.patterns, index, self.place, start, self.text[start:end], shifted)

    def names(self) -> Iterator[str]:
        """Names beside verbs of speech, of people who do something, and of people who are addressed."""
        for name in self.patterns.vocative.findall(self.speech):
            if name[0].isupper() and (has_given_name(name) or TITLED_SUBJECT.match(name)):
                yield name
        for tag in self.tags:
            if tag and tag.lower() not in PRONOUNS and tag.lower() not in FIRST_PERSON and not _is_kin(tag):
                yield tag
        for piece in self.narration:
            for sentence in SENTENCES.findall(piece):
                if not sentence.isupper():
                    yield from given_names_in(sentence)
                if not sentence.isupper() and (match := TITLED_SUBJECT.match(sentence)):
                    yield match["person"]


def _may_mean(pronoun: str, tag: str) -> bool:
    """Whether a pronoun may mean the person of another tag, by their genders."""
    gender = PRONOUNS.get(tag.lower()) or gender_of_name(tag)
    return gender in ("", PRONOUNS[pronoun.lower()])


def _is_kin(tag: str) -> bool:
    """Whether a name says only whose relative or guest a person is: "her father"."""
    words = tag.lower().split()
    return len(words) > 1 and words[0] in POSSESSIVES and words[-1] in ROLES


@dataclass(slots=True)
class _Turn:
    """The speaker of a paragraph's speech; ``excluded``: people whom it addresses."""

    speaker: Character | None
    kind: Kind
    excluded: list[Character]
    confidence: float = 0.0
    scene: int = -1


def _confidence(kind: Kind, probability: float) -> float:
    """The share of right lines of this kind and probability."""
    return next((share for least, share in reversed(_CONFIDENCES.get(kind, ())) if probability >= least), 0.0)


class _Turns:
    """Processes the paragraphs once, tracking who was named and spoke last; then their scenes are decoded."""

    def __init__(self, characters: Characters, paragraphs: Sequence[_Paragraph]) -> None:
        self.characters = characters
        self.paragraphs = paragraphs
        self.recent: list[Character] = []
        self.turns: list[_Turn | None] = []
        self.breaks = 0  # of the text so far
        self.evidence: list[Evidence] = []
        self.last_speeches: list[tuple[int, Character]] = []
        """Paragraph and speaker of the last speeches, the newest last."""
        self.relatives: dict[tuple[str, str], Character] = {}
        self.led: tuple[Character, Kind] | None = None
        """The person to whose speech the paragraph before leads by a colon at its end."""

        for paragraph in paragraphs:
            check_job()
            self.turns.append(self._turn(paragraph) if paragraph.quotations else None)
            self.breaks += not any(map(str.isalpha, paragraph.text))
            self.led = self._leads(paragraph)
            if not paragraph.quotations:
                self._mention(paragraph.text)

    def decoded(self, decisions: Decisions) -> list[_Turn | None]:
        """The speakers of all paragraphs, where these lines are certain."""
        turns = list(self.turns)
        for number, scene in enumerate(scenes_of([self._decided(each, decisions) for each in self.evidence])):
            check_job()
            for evidence, (person, probability) in zip(scene, decode(scene), strict=True):
                turn = self.turns[evidence.index]
                assert turn is not None
                kind = turn.kind
                if not evidence.is_certain and person is not turn.speaker and kind not in ("pronoun", "continued"):
                    kind = "turns" if person else "unknown"
                is_decided = evidence.is_certain and kind not in _CERTAIN
                confidence = 1.0 if is_decided else _confidence(kind, probability)
                if evidence.is_unnamed and not is_decided:
                    confidence = min(confidence, _UNNAMED_AT_MOST)
                turns[evidence.index] = _Turn(person, kind, turn.excluded, confidence, number)
        return turns

    def _decided(self, evidence: Evidence, decisions: Decisions) -> Evidence:
        paragraph = self.paragraphs[evidence.index]
        for at, name in decisions.get(paragraph.place, ()):
            if 0 <= at - paragraph.offset < len(paragraph.text):
                person = self.characters.add(name)
                return replace(evidence, speaker=person, is_certain=True, is_continued=False)
        return evidence

    def _turn(self, paragraph: _Paragraph) -> _Turn:
        excluded = self._addressees(paragraph.speech)
        self._mention(paragraph.narration[0])
        speaker, kind = self._by_text(paragraph, excluded)
        calls = _CALLS.search(paragraph.speech)
        evidence = Evidence(
            paragraph.index,
            self.breaks,
            speaker,
            is_certain=kind in _CERTAIN,
            is_led=paragraph.is_led,
            # Only a verb of speech without a known subject: "growled a deep voice".
            is_unnamed=not any(paragraph.tags)
            and any(UNNAMED.match(piece[:_TAG_WITHIN]) for piece in paragraph.narration[1:]),
            recent=tuple(self.recent),
            addressed=excluded,
            spoken_of=self.characters.mentioned(paragraph.speech),
            calls="" if calls is None else "male" if calls["male"] else "female",
        )
        if kind == "pronoun" and speaker is not None:
            evidence.gender, evidence.speaker = speaker.gender, None
        self.evidence.append(evidence)
        if speaker is None and paragraph.quotations[0].continues and (before := self.turns[-1]) is not None:
            speaker, kind, evidence.is_continued = before.speaker, "continued", True
        if speaker is None:
            speaker, kind = self._by_turns(paragraph, excluded)
        if speaker is not None:
            self._mention_person(speaker)
            self.last_speeches = [*self.last_speeches[-3:], (paragraph.index, speaker)]
        for piece in paragraph.narration[1:]:
            self._mention(piece)
        if speaker is not None and kind in (*_CERTAIN, "pronoun", "action"):
            self._mention_person(speaker)
        return _Turn(speaker, kind, excluded)

    def _by_text(self, paragraph: _Paragraph, excluded: list[Character]) -> tuple[Character | None, Kind]:
        """Find the speaker by the narration of the paragraph itself."""
        for tag, is_after in zip(paragraph.tags, paragraph.is_after, strict=True):
            if not tag:
                continue
            if tag.lower() in FIRST_PERSON:
                return self.characters.add(NARRATOR_SELF), "name"
            if (gender := PRONOUNS.get(tag.lower())) is not None:
                if (person := self._person_of(gender, excluded)) is not None:
                    return person, "pronoun"
            elif _is_kin(tag):
                if (person := self._relative(tag, paragraph, excluded)) is not None:
                    return person, "relative"
            elif (person := self.characters.find(tag)) is not None:
                is_noun = bool(self.characters.patterns.phrase(tag)) or tag[0].islower()
                return person, "noun" if is_noun else "name" if is_after else "name before"
        if self.led is not None and not paragraph.is_led and not any(paragraph.tags):
            return self.led
        # A person's action beside the quotation, the nearest sentence first.
        before = reversed(SENTENCES.findall(paragraph.narration[0]))
        after = (sentence for text in paragraph.narration[1:] for sentence in SENTENCES.findall(text)[:1])
        for sentence in chain(before, after):
            if (person := self._subject(sentence)) is not None:
                return person, "action"
        return None, "unknown"

    def _leads(self, paragraph: _Paragraph) -> tuple[Character, Kind] | None:
        text = paragraph.narration[-1].rstrip(" —–")
        if not text.endswith((":", "：")):
            return None
        tag, _ = paragraph.tag(text[-_TAG_WITHIN:], "")
        if tag.lower() in FIRST_PERSON:
            return self.characters.add(NARRATOR_SELF), "name before"
        if person := tag and tag.lower() not in PRONOUNS and self.characters.find(tag):
            return person, "name before"
        person = None
        for sentence in SENTENCES.findall(text):
            subject = self.characters.patterns.subject.match(sentence)
            gender = PRONOUNS.get(subject["person"].lower(), "") if subject else ""
            if gender == "" or person is None or person.gender not in (gender, ""):
                person = self._subject(sentence) or person
        if person is None and paragraph.quotations and self.turns[-1] is not None:
            person = self.turns[-1].speaker
        return None if person is None else (person, "action")

    def _relative(self, name: str, paragraph: _Paragraph, excluded: list[Character]) -> Character | None:
        """The person meant by "her mother": named in the same paragraph, known by family, or there and of that gender.

        The same words of the same person mean the same relative later.
        """
        words = name.lower().split()
        role, gender = words[-1], ROLES.get(words[-1], "")
        owner = self._person_of(PRONOUNS.get(words[0], ""), []) if PRONOUNS.get(words[0]) else None
        key = (owner.name if owner else "", role)
        for piece in paragraph.narration:
            for sentence in SENTENCES.findall(piece):
                subject = self.characters.patterns.subject.match(sentence)
                for person in self.characters.mentioned(subject["person"]) if subject else ():
                    if person is not owner and person.gender in (gender, ""):
                        self.relatives[key] = person
        if key not in self.relatives and owner is not None and (known := self.characters.relative(owner, role)):
            self.relatives[key] = known
        if key in self.relatives:
            return self.relatives[key]
        here = [person for _, person in reversed(self.last_speeches)] + self.recent
        others = [person for person in here if person is not owner and person not in excluded]
        return next((person for person in others if person.gender and person.gender == (gender or person.gender)), None)

    def _subject(self, sentence: str) -> Character | None:
        match = self.characters.patterns.subject.match(sentence)
        if match is None:
            return None
        word = match["person"]
        if word.lower() in FIRST_PERSON:
            return self.characters.find(NARRATOR_SELF)
        if word.lower() in PRONOUNS:
            return self._person_of(PRONOUNS[word.lower()], [])
        people = self.characters.mentioned(word)
        return people[0] if people else None

    def _by_turns(self, paragraph: _Paragraph, excluded: list[Character]) -> tuple[Character | None, Kind]:
        """A first guess by earlier speech: two people take turns; else the person addressed, or named last."""
        index, previous = self.last_speeches[-1] if self.last_speeches else (0, None)
        if previous is not None and paragraph.index - index <= _SCENE_GAP:
            before = self.turns[index]
            addressed = before.excluded if before else ()
            respondents = [person for person in addressed if person is not previous and person not in excluded]
            others = (person for at, person in reversed(self.last_speeches[:-1]) if index - at <= _SCENE_GAP)
            partner = next((person for person in others if person is not previous), None)
            if partner is not None and partner not in excluded and (not respondents or partner in respondents):
                return partner, "turns"
            if respondents:
                return respondents[0], "answer"
            excluded = [*excluded, previous]
        candidates = [person for person in self.recent if person not in excluded]
        return (candidates[0], "mention") if candidates else (None, "unknown")

    def _addressees(self, speech: str) -> list[Character]:
        names = self.characters.patterns.vocative.findall(speech)
        people = (self.characters.find(name) for name in names if name.lower() not in PRONOUNS)
        return [person for person in people if person is not None]

    def _person_of(self, gender: Gender, excluded: Sequence[Character]) -> Character | None:
        """The person to whom a pronoun refers: the last one named of that gender, else the last of unknown gender."""
        recent = [person for person in self.recent if person.name != NARRATOR_SELF]
        people = [person for person in recent if person not in excluded] or recent
        return next((person for wanted in (gender, "") for person in people if person.gender == wanted), None)

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


def _lines(paragraph: _Paragraph, turn: _Turn | None) -> list[CastLine]:
    lines = []
    place, offset, at = paragraph.place, paragraph.offset, 0
    for quotation in paragraph.quotations:
        if paragraph.text[at : quotation.start].strip():
            lines.append(CastLine(place, offset + at, offset + quotation.start, is_speech=False))
        assert turn is not None
        confidence = turn.confidence if quotation.is_sure or turn.confidence == 1 else min(turn.confidence, 0.5)
        name = None if turn.speaker is None else turn.speaker.name
        start, end = offset + quotation.start, offset + quotation.end
        lines.append(CastLine(place, start, end, True, name, round(confidence, 2), _REASONS[turn.kind], turn.scene))
        at = quotation.end
    if paragraph.text[at:].strip():
        lines.append(CastLine(place, offset + at, offset + len(paragraph.text), is_speech=False))
    return lines

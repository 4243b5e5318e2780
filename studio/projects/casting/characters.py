"""Finds the characters of a book: their names, which names mean the same person, and their gender."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from studio.paths import ASSETS
from studio.projects.casting.person_patterns import PersonPatterns
from studio.projects.casting.speech_verbs import ABBREVIATED, ARTICLES, POSSESSIVES, PRONOUNS, ROLES, TITLES

Gender = Literal["m", "f", ""]

MAX_NAMES = 300
"""Maximum number of names beside verbs of speech, most frequent first: a person can review a cast of this size."""
MAX_NAME = 80
"""Characters; longer text is not a name."""
NARRATOR_SELF = "I"
"""The name of a first-person narrator who speaks."""


_PRONOUNS_NEAR = re.compile(r"\b(he|him|his|she|her|hers|er|sie|il|elle|él|ella)\b", re.IGNORECASE)
_VOTE_WITHIN = 70
"""Number of characters after a name in which a pronoun probably refers to that person."""
_PLAIN_ARTICLES = ARTICLES - POSSESSIVES
_NOT_NAMES = frozenset(
    (  # noqa: SIM905
        "the a an and but or so then when while if it its he she they we you i his her their there here this that "
        "these those what who why how where which nobody everyone everybody someone somebody anyone neither both one "
        "two three after before in on at by for from with without as not no yes oh ah well now once again still only "
        "even just der die das und aber er sie es wir ihr ein eine le la les un une il elle on el los las lo una y "
        "pero en"
    ).split()
)
"""Words that are capitalised only where they begin a sentence."""
_GIVEN_NAMES = json.loads((ASSETS / "page" / "lib" / "given-names.json").read_text(encoding="utf-8"))
_GENDERS: dict[str, Gender] = dict.fromkeys(_GIVEN_NAMES["female"], "f") | dict.fromkeys(_GIVEN_NAMES["male"], "m")
"""Gender of given names that nearly always are women's or men's, in lower case; the page uses the same names."""

VOICE_GENDERS: dict[Gender, str] = {"m": "male", "f": "female", "": ""}


@dataclass(slots=True)
class Character:
    """A person of a book. ``names``: all names of this person in the text, the fullest first."""

    name: str
    names: tuple[str, ...]
    gender: Gender = ""
    lines: int = 0
    """Stretches of speech."""

    @property
    def voice_gender(self) -> str:
        """The gender as in voices: male, female, or blank if unknown."""
        return VOICE_GENDERS[self.gender]


@dataclass(slots=True)
class Characters:
    """The people who speak in a book, found by any of their names."""

    patterns: PersonPatterns
    people: list[Character] = field(default_factory=list)
    _by_name: dict[str, Character] = field(default_factory=dict)

    @classmethod
    def of(cls, patterns: PersonPatterns, speakers: Iterable[str], narration: Sequence[str]) -> Characters:
        """``speakers``: names and roles beside verbs of speech; ``narration``: all text that is not speech."""
        characters = cls(patterns)
        counts = Counter(name for name in map(characters._cleaned, speakers) if name)
        candidates = [name for name, _ in counts.most_common(MAX_NAMES)]
        for name in sorted(candidates, key=lambda name: (-len(_core(name)), -counts[name], name)):
            characters._assign(name, counts)
        characters._join_roles()
        votes = characters._votes(narration)
        for person in characters.people:
            person.gender = _gender_of(person, votes[person.name])
        return characters

    def find(self, name: str) -> Character | None:
        """The person of this name, title or role."""
        if (person := self._by_name.get(_key(name))) is not None:
            return person
        name = self._cleaned(name)
        person = self._by_name.get(_key(name))
        if person is None and (core := " ".join(_core(name))) and (person := self._by_name.get(core)) is not None:
            return person if any(_is_same_person(name, other) for other in person.names) else None
        return person

    def mentioned(self, text: str) -> list[Character]:
        """The people named in a text, in order."""
        people = []
        for mention in self.patterns.mention.finditer(text):
            if (person := self._in_mention(mention[0])) is not None:
                people.append(person)
        return people

    def add(self, name: str) -> Character:
        """The person with this name, created if there is none."""
        person = self.find(name)
        if person is None:
            person = Character(name[:1].upper() + name[1:], (name,))  # "the constable"
            self._index_name(person, name)
            self.people.append(person)
        return person

    def _in_mention(self, mention: str) -> Character | None:
        """The person in a mention, whose first word may be capitalised only because it begins a sentence."""
        words = self._cleaned(mention).split()
        for start in range(len(words)):
            for end in range(len(words), start, -1):
                if (person := self.find(" ".join(words[start:end]))) is not None:
                    return person
        return None

    def _cleaned(self, name: str) -> str:
        return self.patterns.phrase(name) or clean_name(name)

    def _assign(self, name: str, counts: Counter[str]) -> None:
        """Add a name to the only person whom it can mean, or create a person."""
        candidates = [person for person in self.people if any(_is_same_person(name, other) for other in person.names)]
        if len(candidates) > 1:
            namesakes = [person for person in candidates if _core(person.name)[:1] == _core(name)[:1]]
            candidates = namesakes or sorted(
                candidates, key=lambda person: -sum(counts[other] for other in person.names)
            )
        if candidates:
            candidates[0].names += (name,)
            self._index_name(candidates[0], name)
        else:
            self.add(name)

    def _join_roles(self) -> None:
        """Add a role to the only person with that title: "the Colonel" to Colonel Reed."""
        for person in [person for person in self.people if not _core(person.name)]:
            role = _key(person.name).split()[-1]
            titled = [other for other in self.people if other is not person and _has_title(other, role)]
            if len(titled) == 1:
                titled[0].names += person.names
                self._by_name |= {key: titled[0] for key, other in self._by_name.items() if other is person}
                self.people.remove(person)
        for person in self.people:  # "Constable!" where he is only ever called "the constable" beside a verb
            for core in [" ".join(_core(name)) for name in person.names if _is_phrase(name)]:
                self._by_name.setdefault(core, person)
        for person in self.people:  # "the captain" also where he is only ever called Captain Rudd beside a verb
            for title in {title for name in person.names for title in _titles(name) if title in ROLES}:
                if sum(_has_title(other, title) for other in self.people) == 1:
                    self._by_name.setdefault(title, person)

    def _index_name(self, person: Character, name: str) -> None:
        self._by_name.setdefault(_key(name), person)
        if (core := " ".join(_core(name))) and not _is_phrase(name):
            self._by_name.setdefault(core, person)
            if len(_core(name)) > 1:
                self._by_name.setdefault(_core(name)[0], person)

    def _votes(self, narration: Sequence[str]) -> dict[str, Counter[str]]:
        votes: dict[str, Counter[str]] = defaultdict(Counter)
        for text in narration:
            for mention in self.patterns.mention.finditer(text):
                person = self._in_mention(mention[0])
                if person is None:
                    continue
                following = text[mention.end() : mention.end() + _VOTE_WITHIN]
                other = self.patterns.mention.search(following)
                pronoun = _PRONOUNS_NEAR.search(following)
                if pronoun and (other is None or pronoun.start() < other.start() or self._in_mention(other[0]) is None):
                    votes[person.name][PRONOUNS.get(pronoun[1].lower(), "")] += 1
        return votes


def clean_name(name: str) -> str:
    """The name without possessives and words that only begin a sentence; blank if nothing is left."""
    words = re.sub(r"[’']s$", "", name.strip(" ,.;:!?")).split()
    while words and words[0].lower() in _NOT_NAMES and words[0].lower() not in ARTICLES:
        words.pop(0)
    if words and words[0].lower() in ARTICLES and (len(words) == 1 or words[-1].lower() not in ROLES):
        words.pop(0)
    cleaned = " ".join(words)
    return cleaned if len(cleaned) <= MAX_NAME else ""


def _key(name: str) -> str:
    """The name folded, without full stops and without the article of a role: "the Captain" is "captain"."""
    words = name.replace(".", "").lower().split()
    is_role = len(words) > 1 and words[0] in _PLAIN_ARTICLES and words[-1] in ROLES
    return " ".join(words[1:] if is_role else words)


def _is_phrase(name: str) -> bool:
    """Whether the name is a noun with an article: "the constable", but not "the Captain", which also is a title."""
    words = name.lower().split()
    return words[0].startswith(("l’", "l'")) or (words[0] in _PLAIN_ARTICLES and words[-1] not in ROLES)


def _core(name: str) -> list[str]:
    """The words of a name that are neither titles, roles nor articles, folded."""
    return [word for word in _key(name).split() if word not in TITLES and word not in ARTICLES and word not in ROLES]


def _titles(name: str) -> set[str]:
    return {ABBREVIATED.get(word, word) for word in _key(name).split() if word in TITLES or word in ROLES}


def _is_same_person(name: str, other: str) -> bool:
    """Whether two names can mean one person: one has all words of the other, and their titles are compatible."""
    words, other_words = _core(name), _core(other)
    if not words or not other_words:
        return _key(name) == _key(other)
    if not (set(words) <= set(other_words) or set(other_words) <= set(words)):
        return False
    if _is_phrase(name) != _is_phrase(other):  # "the constable" may be Constable Reed, but "the smith" is not Mr. Smith
        noun, names = (words, other_words) if _is_phrase(name) else (other_words, words)
        return len(noun) < len(names) and noun == names[: len(noun)]
    if any({title, other_title} == {"miss", "mrs"} for title in _titles(name) for other_title in _titles(other)):
        return False
    genders = {TITLES.get(title) or ROLES.get(title) for title in _titles(name) | _titles(other)} - {"", None}
    if len(genders) > 1:
        return False
    surname_alone = len(words) == 1 and len(other_words) > 1 and words[0] == other_words[-1]
    return not (surname_alone and _titles(name) & {"mrs", "frau", "madame", "mme", "señora"} and not _titles(other))


def _has_title(person: Character, role: str) -> bool:
    return any(role in _titles(name) and _core(name) for name in person.names)


def _gender_of(person: Character, votes: Counter[str]) -> Gender:
    titles = {title for name in person.names for title in _titles(name)}
    for gender in {TITLES.get(title, "") or ROLES.get(title, "") for title in titles}:
        if gender:
            return gender  # type: ignore[return-value]
    men, women = votes["m"], votes["f"]
    return gender_of_name(person.name) if men == women else "m" if men > women else "f"


def gender_of_name(name: str) -> Gender:
    """The gender by a title or a given name; blank if neither shows it."""
    for title in _titles(name):
        if gender := TITLES.get(title, "") or ROLES.get(title, ""):
            return gender  # type: ignore[return-value]
    return next((_GENDERS.get(first_name, "") for first_name in _core(name)[:1]), "")

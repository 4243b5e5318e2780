"""Finds the people of a text: patterns of names with titles, roles, pronouns and its own noun phrases; its characters.

Of the characters: their names, which names mean the same person, and their gender.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from manuscript.han import HanNames

Gender = Literal["female", "male", ""]

_WORDS: dict[str, Any] = json.loads(Path(__file__).with_name("speech-words.json").read_text("utf-8"))

INVERTED = "|".join(chain(*_WORDS["inverted"].values()))
"""Verbs before their subject, without a mark between speech and narrator."""
VERBS = "|".join((*chain(*_WORDS["verbs"].values()), INVERTED))  # as a pattern of alternatives

BETWEEN = r"(?:\s++(?:had|then|only|just|at last|finally|\w+ly))?"
"""Words between a person and the verb, as a pattern."""
LINK = r"(?:\s++(?:in|on|at|from|with|behind|beside|near|by|of|to|who)\b[^.!?,;:\"“”„«»‘]{0,40}?)?"
"""Words before these that describe the person: "the girl in the red coat"."""

TITLES: dict[str, Gender] = _WORDS["titles"]
"""Words before a name, folded, without a full stop, and the gender that they show."""

HONORIFICS = tuple(_WORDS["honorifics"])
"""Titles, without a full stop, that occur only before a person's name."""

ABBREVIATED: dict[str, str] = _WORDS["abbreviated"]
"""Titles that are short for a role: "the doctor" is Dr. Hall."""

ROLES: dict[str, Gender] = _WORDS["roles"]
"""Nouns that mean a person after "the", "her", "der" …, and their gender."""

PRONOUNS: dict[str, Gender] = _WORDS["pronouns"]
FIRST_PERSON = frozenset({"i", "ich", "je", "yo", "io", "eu", "我"})
POSSESSIVES = frozenset("her his my their our ihr ihre sein seine mein meine son sa mon ma su mi".split())  # noqa: SIM905
ARTICLES = frozenset("the der die das le la l’ el il lo".split()) | POSSESSIVES  # noqa: SIM905

AFTER_NOUNS = frozenset(_WORDS["after_nouns"])
"""Words that do not belong to the noun before them: "said the constable again"."""
NOT_NAMES = frozenset(_WORDS["not_names"])
"""Words that are capitalised only where they begin a sentence."""
NOT_PEOPLE = frozenset(_WORDS["not_people"])
"""Nouns beside verbs of speech that are not speakers: "read the sign", "said the other"."""
PHRASE_ADJECTIVES = frozenset(_WORDS["adjectives"])  # words of Romance languages that come before their noun

MAX_PHRASES = 300  # the most frequent ones of a text: patterns grow with their number
MAX_WORDS = 4  # of a phrase, not counting the article
_ARTICLE_GENDERS: dict[str, Gender] = {
    **dict.fromkeys(("le", "el", "der", "il", "lo"), "male"),
    **dict.fromkeys(("la", "die"), "female"),
}
_GERMAN = frozenset({"der", "die", "das"})
_GERMAN_NOUN = re.compile(r"(?:[a-zäöüß]\S*\s+)*(?:[A-ZÄÖÜ]\S*\s*)+")  # "alte Herr", without the adverb after it
_ROMANCE = frozenset({"le", "la", "l’", "el", "il", "lo"})
_LETTERS = r"[^\W\d_](?:[\w’']|-(?=\w)){0,30}"
_BEFORE_ROLE = rf"(?:(?:{'|'.join(sorted(ARTICLES - POSSESSIVES - {'l’'}))})\s+|l[’'])"
_INVERTED = re.compile(
    rf"^[\s,;:.!?—–\-]*+(?i:{VERBS})(?:-t)?\s++(?P<article>{_BEFORE_ROLE})(?P<words>(?:{_LETTERS}[ ]?){{1,6}}+)"
)
_DIRECT = re.compile(
    rf"^[\s,;—–\-]*+(?P<article>the\s+)(?P<words>{_LETTERS}(?:\s++{_LETTERS}){{0,3}}?){LINK}{BETWEEN}\s++(?i:{VERBS})\b"
)
_BEFORE = re.compile(
    rf"(?<!\S)(?P<article>[Tt]he\s+)(?P<words>{_LETTERS}(?:\s++{_LETTERS}){{0,3}}?){BETWEEN}\s++"
    rf"(?i:{VERBS})\b[^.!?]{{0,60}}[,:]\s*$"
)
_KEPT_ING = frozenset({"king", "thing", "viking", "being", "darling", "sibling"})
MAX_NAMES = 300
"""Maximum number of names beside verbs of speech, most frequent first: a person can review a cast of this size."""
MAX_NAME = 80  # characters; longer text is not a name
NARRATOR_SELF = "I"  # the name of a first-person narrator who speaks

_PRONOUNS_NEAR = re.compile(r"\b(he|him|his|she|her|hers|er|sie|il|elle|él|ella)\b", re.IGNORECASE)
_VOTES = 2  # more for one gender than for the other
_VOTES_OF = dict.fromkeys(("he", "him", "his", "she", "her", "hers"), 2)  # in other languages things have genders too
_VOTE_WITHIN = 70
"""Number of characters after a name in which a pronoun probably refers to that person."""
_PLAIN_ARTICLES = ARTICLES - POSSESSIVES
_GIVEN_NAMES = json.loads(Path(__file__).with_name("given-names.json").read_text("utf-8"))
_GENDERS: dict[str, Gender] = {name: gender for gender, names in _GIVEN_NAMES.items() for name in names}
"""Gender of given names that nearly always are women's or men's, in lower case; the page has a copy."""
_SHORT_NAMES: dict[str, list[str]] = json.loads(Path(__file__).with_name("short-names.json").read_text("utf-8"))
"""The given names, in lower case, for which a short form may stand: Lizzy is Elizabeth."""
_MARRIED = frozenset({"mrs", "frau", "madame", "mme", "señora"})
_FORMAL = frozenset({"mr", "sir", "lord", "lady"})
# Titles that say nothing for certain; in most novels these are men, so women need twice as many pronouns.
_RANKS = frozenset("captain colonel major general lieutenant sergeant inspector judge professor doctor rev".split())  # noqa: SIM905
_OF_WOMEN = _MARRIED | {"miss", "ms", "mademoiselle", "mlle", "fräulein", "señorita", "lady"}
_FAMILY = {
    **dict.fromkeys(("husband", "father", "papa"), ("mr", "sir", "dr", "colonel", "captain")),
    **dict.fromkeys(("wife", "mother", "mamma", "mama"), ("mrs", "lady", "madame")),
}
_KIND_ADJECTIVES = frozenset("friendly elderly lovely lonely ugly sickly burly kindly jolly silly ghostly".split())  # noqa: SIM905


def _any_of(words: Iterable[str]) -> str:
    """A pattern of these alternatives, longest first; the same in every process, for any order of the words."""
    return "|".join(sorted(map(re.escape, words), key=lambda word: (-len(word), word)))


_TITLE = _any_of(TITLES)
_PARTICLE = r"(?:(?:de|del|della|da|di|du|van|von|der|den|la|le|ter|zu)\s++){0,2}"
_CAPITAL = r"(?:d[’'](?=[A-Z])|St\.?\s++|(?:[A-HJ-Z]\.\s?){1,4})?[A-ZÀ-ÖØ-ÞŒŠŽ](?:[\w’']|-(?=\w)){0,40}+(?!\w)"
_NOT_A_NAME = rf"(?!(?i:{_any_of(NOT_NAMES)})\b(?![’'-]\w))"
_NAME = (
    rf"(?:(?:(?i:(?:{_TITLE})\.?\s++)){{1,3}}{_PARTICLE}{_CAPITAL}|{_NOT_A_NAME}{_CAPITAL})"
    rf"(?:\s++{_PARTICLE}{_NOT_A_NAME}{_CAPITAL}){{0,3}}"
)
_PRONOUN = rf"(?i:{_any_of({*PRONOUNS, *FIRST_PERSON})})\b"
_VERB = rf"(?P<verb>(?i:{VERBS}))\b"
_INDEFINITE = ("a", "an", "ein", "eine", "un", "une", "una")
_LEAD_IN = rf"(?:(?:(?i:{_any_of(set(NOT_NAMES) - {*PRONOUNS, *FIRST_PERSON, *ARTICLES})})|\w+ly)\s++){{0,2}}"
"""Words before the subject of a sentence: "Then Anna", "Suddenly he"."""
_OPENING = rf"^\W*{_LEAD_IN}"
_ABBREVIATION = rf"\b(?i:{_any_of((*HONORIFICS, 'st'))})\.(?=\s)"
SENTENCES = re.compile(rf"(?:{_ABBREVIATION}|[^.!?…。！？])+[.!?…。！？]*")
"""Clauses of a text; the full stop of "Dr." does not end one."""
TITLED_SUBJECT = re.compile(rf"{_OPENING}(?P<person>(?i:{_any_of(HONORIFICS)})\b\.?\s+{_NAME})(?!\s*[’']s\b)")
"""A name with a title, which certainly means a person, at the start of a sentence."""


_GIVEN_NAME = re.compile(rf"(?<![\w’'])(?P<name>{_NAME})(?=\s+[a-z])")


def given_names_in(sentence: str) -> Iterator[str]:
    """The people of a sentence whose given names show that they are people, and not places: "Edmund waited"."""
    return (match["name"] for match in _GIVEN_NAME.finditer(sentence) if has_given_name(match["name"]))


def has_given_name(name: str) -> bool:
    """Whether the name begins with a known given name, perhaps after a title."""
    core = _core(name)
    return bool(core) and (core[0] in _GENDERS or core[0] in _SHORT_NAMES)


CALLED = re.compile(rf",\s(?P<name>{_NAME})\s?[,.!?…—–]")
"""A name after a comma; words before one, such as "Look", are mostly no names."""
UNNAMED = re.compile(
    rf"^[\s,;:.!?—–\-]*+(?:(?i:{VERBS})(?:-t)?\s+(?!to\b|that\b)[^\W\d_]"
    rf"|(?:an?|another|one|some|somebody|someone|several|everybody|everyone|jemand)\b[^.!?,;:]{{0,40}}?\s(?i:{VERBS})\b)"
)
"""A verb of speech after a quotation, with any subject."""
_ARTICLE = re.compile(rf"(?i:(?:{_any_of(ARTICLES)})\s+|l[’'])")


_ADJECTIVE = (
    r"(?!(?:my|by|they|any|only|merely|simply|directly)\b)"
    r"(?:poor|dear|old|young|little|good|[a-z]+(?:ed|ful|ous|less|y))"
)
"""A word between a verb of speech and a name: "sighed poor Helen", "cried the scandalised Margaret"."""
_ADVERB = r"(?:\w{3,30}mente?|hier|da|nun|dann|jetzt|leise|laut|trocken|ernst|ruhig|wieder|alors|enfin|aussi|entonces)"


class PersonPatterns:
    """The patterns of one text."""

    def __init__(self, phrases: Collection[str] = (), han: HanNames | None = None) -> None:
        """``phrases``: nouns that mean people in it, folded, without article. Blocking: 0.1 s for MAX_PHRASES."""
        self.han = han or HanNames((), ())
        self.phrases = frozenset(phrases)
        articles = rf"(?:(?:{_any_of(ARTICLES)})\s+|l[’'])"
        role = rf"(?i:{articles}(?:{_any_of(phrases) or '(?!)'}|(?:old\s+|young\s+)?(?:{_any_of(ROLES)}))\b)"
        person = rf"(?:{role}|{_PRONOUN}|{_NAME}|{self.han.pattern})"
        self.mention = re.compile(rf"(?<![\w’'])(?:{role}|{_NAME})|{self.han.pattern}")
        """A mention of any person, but not a pronoun."""
        self.after = re.compile(
            rf"^[\s,;:.!?—–\-]*+(?:(?:he|she|I|{_NAME})\s+heard\s+(?P<heard>{person})\s+(?:say|cry|call|ask|answer|reply)\b"
            rf"|(?:(?:lui|leur|le|se)\s+)?{_VERB}(?:-t)?(?:\s+out)?[\s\-]+(?:{_ADVERB}\s+)?(?:(?:the\s+)?{_ADJECTIVE}\s+(?={_NAME}))?(?P<behind>{person})"
            rf"|(?P<before>{person}){LINK}{BETWEEN}\s++(?P<verb2>(?i:{VERBS}))\b)"
        )
        """A verb of speech and its subject after a quotation."""
        self.beside = re.compile(
            rf"(?<!\S)(?P<before>{role})(?P<behind>){BETWEEN}\s++(?i:{VERBS})\b[^.!?]{{0,60}}[,:]\s*$"
        )
        """A verb of speech before a quotation, directly after a noun."""
        self.before = re.compile(
            rf"(?:^|(?:[.!?…]|,|\band)\s++){_LEAD_IN}(?:(?P<before>{person})(?:{_ABBREVIATION}|[^.!?:]){{0,80}}?\b{_VERB}"
            rf"|(?P<verb2>(?i:{VERBS}))\s+(?P<behind>{person}))[^.!?]{{0,60}}[,:]\s*$"
        )
        """A verb of speech before a quotation, with its subject further before it."""
        self.subject = re.compile(rf"{_OPENING}(?P<person>{person})(?!\s*[’']s\b)")
        """The subject of a sentence, at its start."""
        self.vocative = re.compile(
            rf"(?:^\W{{0,9}}|,\s{{1,3}}|[，。！？])({person})\s{{0,3}}(?:[,.!?…—–\-，。！？]|\W{{0,9}}$)"
        )
        """A person addressed."""

    def phrase(self, name: str) -> str:
        """The name as written within a sentence, if it is an article and one of the phrases; else blank."""
        article = _ARTICLE.match(name)
        is_phrase = article is not None and " ".join(name[article.end() :].lower().split()) in self.phrases
        return name[:1].lower() + name[1:] if is_phrase else ""


def find_phrases(narration: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The phrases beside verbs of speech, folded, without article, the most frequent first.

    ``narration``: the text before and after each quotation, as much as may contain its verb of speech.
    """
    counts = Counter[str]()
    for before, after in narration:
        for pattern, text in ((_INVERTED, after), (_DIRECT, after), (_BEFORE, before)):
            if (match := pattern.search(text)) and (words := _phrase(match["words"], match["article"].strip().lower())):
                counts[" ".join(words)] += 1
                break
    heads = Counter(phrase.split()[-1] for phrase in counts if " " in phrase)
    for head, number in heads.items():
        if number == 1 and head not in ROLES:  # "the old stationmaster" is "the stationmaster" too
            counts[head] += 0
    return tuple(phrase for phrase, _ in counts.most_common(MAX_PHRASES))


def _phrase(text: str, article: str) -> Sequence[str]:
    """The words of the text that belong to the noun; none if it does not mean a person."""
    is_named = bool(last := text.split()[-1:]) and last[0][0].isupper()
    if is_named and not text.strip()[0].isupper() and article not in _GERMAN:
        return ()  # "the scandalised Margaret", but "der alte Herr"
    if article in _GERMAN and (noun := _GERMAN_NOUN.match(text)):
        text = noun[0]
    words = list[str]()
    for word in text.lower().split():
        # Words after a noun that describe the way of speaking: "gravely", "smiling".
        is_adverb = word.endswith("ly") and word not in _KIND_ADJECTIVES
        is_adverb = is_adverb or (word.endswith("ing") and word not in _KEPT_ING)
        if word in AFTER_NOUNS or (words and is_adverb):
            break
        words.append(word)
        if article in _ROMANCE and word not in PHRASE_ADJECTIVES:
            break
    is_proper = is_named and len(words) == 1 and article not in _GERMAN  # "the Voice"
    if not words or len(words) > MAX_WORDS or words[0] in HONORIFICS or (words[-1] in NOT_PEOPLE and not is_proper):
        return ()
    return () if len(words) == 1 and words[0] in ROLES else words


@dataclass(slots=True)
class Character:
    """A person of a book. ``names``: all names of this person in the text, the fullest first."""

    name: str
    names: tuple[str, ...]
    gender: Gender = ""
    lines: int = 0  # stretches of speech


@dataclass(slots=True)
class Characters:
    """The people who speak in a book, found by any of their names."""

    patterns: PersonPatterns
    people: list[Character] = field(default_factory=list)
    _by_name: dict[str, Character] = field(default_factory=dict)
    _by_core: dict[str, list[Character]] = field(default_factory=dict)
    """The people whom a name without titles may mean, those with the most lines first."""

    @classmethod
    def of(
        cls,
        patterns: PersonPatterns,
        speakers: Iterable[str],
        narration: Sequence[str],
        known: Iterable[Character] = (),
    ) -> Characters:
        """``speakers``: names and roles beside verbs of speech; ``narration``: all text that is not speech; ``known``:
        people who have these names and no others' names, and who keep their name and their gender, if it is known."""
        characters = cls(patterns)
        given = [Character(person.name, person.names, person.gender) for person in known]
        for person in given:
            characters.people.append(person)
            for name in person.names:
                characters._index_name(person, name)
        counts = Counter(name for name in map(characters._cleaned, speakers) if name and not characters._is_given(name))
        candidates = [name for name, _ in counts.most_common(MAX_NAMES)]
        for name in sorted(candidates, key=lambda name: (-len(_core(name)), not _titles(name), -counts[name], name)):
            characters._assign(name, counts)
        characters._index_cores(counts)
        characters._join_roles()
        for person in characters.people[len(given) :]:  # called by the fullest of the names that are in use
            least = max(counts[name] for name in person.names) / 10
            name = next(
                name
                for name in person.names
                if (counts[name] >= least and not name.isupper()) or name == person.names[-1]
            )
            person.name = name[:1].upper() + name[1:]
            person.names = (name, *(other for other in person.names if other != name))
        votes = characters._votes(narration)
        for person in characters.people:
            men, women = votes[person.name]["male"], votes[person.name]["female"]
            men += (men + women) // 4 * 2 * any(_RANKS & set(_titles(name)) for name in person.names)
            voted: Gender = "male" if men > women else "female"
            shown = person.gender or _shown_gender(person.names)
            person.gender = shown or gender_of_name(person.name) if abs(men - women) < _VOTES else shown or voted
        return characters

    def find(self, name: str) -> Character | None:
        """The person of this name, title or role."""
        if (person := self._by_name.get(_key(name))) is not None:
            return person
        if not (name := self._cleaned(name)):
            return None
        if (person := self._by_name.get(_key(name))) is not None:
            return person
        fitting = (person for person in self._by_core.get(" ".join(_core(name)), ()) if _fits(name, person))
        return next(fitting, None)

    def mentioned(self, text: str) -> list[Character]:
        """The people named in a text, in order."""
        mentions = (self._in_mention(mention[0]) for mention in self.patterns.mention.finditer(text))
        return [person for person in mentions if person is not None]

    def add(self, name: str) -> Character:
        """The person with this name, created if there is none."""
        person = self.find(name)
        if person is None:
            person = Character(name[:1].upper() + name[1:], (name,))  # "the constable"
            self._index_name(person, name)
            self.people.append(person)
        return person

    def name_narrator(self, names: Sequence[str]) -> None:
        """Give a first-person narrator these names."""
        for name in names:
            narrator, same = self.add(NARRATOR_SELF), self.find(name)
            if same is None:
                narrator.names += (name,)
                self._index_name(narrator, name)
            elif same is not narrator:
                narrator.names += same.names
                self.people.remove(same)
                self._by_name = {key: narrator if each is same else each for key, each in self._by_name.items()}
                for people in self._by_core.values():
                    people[:] = [narrator if each is same else each for each in people]
            narrator.gender = narrator.gender or gender_of_name(name)

    def _is_given(self, name: str) -> bool:
        return _key(name) in self._by_name

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

    def surname(self, person: Character) -> str:
        """The family name of a person, folded; blank if only given names are known."""
        names = (core for name in person.names if (core := _core(name)) and (len(core) > 1 or _titles(name)))
        return next((core[-1] for core in names), "")

    def relative(self, person: Character, role: str) -> Character | None:
        """The husband, wife, father or mother by a title and the family name: "her father" is Mr. Bennet."""
        surname, titles = self.surname(person), _FAMILY.get(role)
        if not surname or not titles:
            return None
        people = (self._by_name.get(f"{title} {surname}") for title in titles)
        return next((each for each in people if each is not None and each is not person), None)

    def _assign(self, name: str, counts: Counter[str]) -> None:
        """Add a name to the only person whom it can mean, or create a person."""
        candidates = [person for person in self.people if _fits(name, person)]
        if len(candidates) > 1:
            namesakes = [person for person in candidates if _core(person.name)[:1] == _core(name)[:1]]
            candidates = namesakes or candidates
            is_surname = len(_core(name)) == 1 and not _titles(name)
            is_surname = is_surname and (not gender_of_name(name) or f"mr {_key(name)}" in self._by_name)
            # A surname alone means a man: books give women a title or a first name.
            candidates.sort(
                key=lambda person: (
                    is_surname and _shown_gender(person.names) == "female",
                    -sum(counts[other] for other in person.names),
                )
            )
        if candidates:
            candidates[0].names += (name,)
            self._index_name(candidates[0], name)
        else:
            self.add(name)

    def _join_roles(self) -> None:
        """Add a role to the only person with that title: "the Colonel" to Colonel Reed."""
        for person in [person for person in self.people if not _core(person.name)]:
            role = _key(person.name).rpartition(" ")[2]  # blank for a name of full stops
            titled = [other for other in self.people if other is not person and _has_title(other, role)]
            if len(titled) == 1:
                titled[0].names += person.names
                self._by_name |= {key: titled[0] for key, other in self._by_name.items() if other is person}
                self.people.remove(person)
        for person in self.people:  # "Constable!" where he is only ever called "the constable" beside a verb
            for core in [" ".join(_core(name)) for name in person.names if _is_phrase(name)]:
                if core:  # "the count" has none
                    self._by_name.setdefault(core, person)
        for person in self.people:  # "the captain" also where he is only ever called Captain Rudd beside a verb
            for title in {title for name in person.names for title in _titles(name) if title in ROLES}:
                if sum(_has_title(other, title) for other in self.people) == 1:
                    self._by_name.setdefault(title, person)

    def _index_name(self, person: Character, name: str) -> None:
        self._by_name.setdefault(_key(name), person)
        if (core := _core(name)) and not _is_phrase(name):
            for part in dict.fromkeys((" ".join(core), core[0])):
                if person not in (known := self._by_core.setdefault(part, [])):
                    known.append(person)

    def _index_cores(self, counts: Counter[str]) -> None:
        """A name without titles means the person who has it in the text, then the one who speaks most."""
        weights = {id(person): sum(counts[name] for name in person.names) for person in self.people}
        for people in self._by_core.values():
            people.sort(key=lambda person: -weights[id(person)])

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
                    word = pronoun[1].lower()
                    votes[person.name][PRONOUNS.get(word, "")] += _VOTES_OF.get(word, 1)
        return votes


def clean_name(name: str) -> str:
    """The name without possessives and words that only begin a sentence; blank if nothing is left."""
    words = re.sub(r"[’']s?$", "", name.strip(" ,.;:!?-")).split()
    while words and words[0].lower() in NOT_NAMES and words[0].lower() not in ARTICLES:
        words.pop(0)
    if words and words[0].lower() in ARTICLES and (len(words) == 1 or words[-1].lower() not in ROLES):
        words.pop(0)
    cleaned = " ".join(words)
    is_title = all(word.lower().rstrip(".") in HONORIFICS for word in words)
    is_owned = any(word.endswith(("’s", "'s")) for word in words[:-1])  # "Mrs. Hall's Bible"
    return "" if is_title or len(cleaned) > MAX_NAME or (is_owned and words[0].lower() not in ARTICLES) else cleaned


def _key(name: str) -> str:
    """The name folded, without full stops and without the article of a role: "the Captain" is "captain"."""
    words = name.replace(".", "").lower().split()
    is_role = len(words) > 1 and words[0] in _PLAIN_ARTICLES and words[-1] in ROLES
    return " ".join(words[1:] if is_role else words)


def _is_phrase(name: str) -> bool:
    """Whether the name is a noun with an article: "the constable", but not "the Captain", which also is a title."""
    words = name.lower().split() or [""]
    return words[0].startswith(("l’", "l'")) or (words[0] in _PLAIN_ARTICLES and words[-1] not in ROLES)


def noun_of(name: str) -> str:
    """The noun of such a name, folded: "constable"; blank for other names."""
    return " ".join(name.lower().split()[1:]) if _is_phrase(name) else ""


def _core(name: str) -> list[str]:
    """The words of a name that are neither titles, roles nor articles, folded."""
    return [word for word in _key(name).split() if word not in TITLES and word not in ARTICLES and word not in ROLES]


def _titles(name: str) -> list[str]:
    """The titles and roles in a name, in order."""
    words = _key(name).split()
    return list(dict.fromkeys(ABBREVIATED.get(word, word) for word in words if word in TITLES or word in ROLES))


def _is_same_person(name: str, other: str) -> bool:
    """Whether two names can mean one person: one has all words of the other, and their titles are compatible."""
    words, other_words = _core(name), _core(other)
    if not words or not other_words:
        return _key(name) == _key(other)
    if not (_is_within(words, other_words) or _is_within(other_words, words)):
        return False
    if _is_phrase(name) != _is_phrase(other):  # "the constable" may be Constable Reed, but "the smith" is not Mr. Smith
        noun, names = (words, other_words) if _is_phrase(name) else (other_words, words)
        return len(noun) < len(names) and noun == names[: len(noun)]
    titles, other_titles = set(_titles(name)), set(_titles(other))
    if _are_of_two(titles, other_titles) or _are_of_two(other_titles, titles):
        return False
    if (titles | other_titles) & _FORMAL and not (set(words) <= set(other_words) or set(other_words) <= set(words)):
        return False  # "Tom Bertram" is rather the son of Sir Thomas Bertram
    genders = {gender_of_name(each) if len(_core(each)) > 1 else _shown_by(_titles(each)) for each in (name, other)}
    if len(genders - {""}) > 1:
        return False
    if len(words) == len(other_words) > 1 and (titles ^ other_titles) & _MARRIED:
        return _GENDERS.get(words[0]) == "female"  # Mrs. Newland Archer is not Newland Archer
    (shorter, short_titles), (longer, long_titles) = sorted(
        ((words, titles), (other_words, other_titles)), key=lambda each: (len(each[0]), len(each[1]))
    )
    is_given = shorter[0] != longer[-1] if len(longer) > 1 else shorter[0] in _SHORT_NAMES or gender_of_name(shorter[0])
    if len(shorter) > 1 or is_given:
        return True
    # A surname alone: "Archer" is neither Mrs. nor Miss Archer, and Mrs. Archer is not Janey Archer.
    return not (long_titles & _OF_WOMEN if not short_titles else short_titles & _MARRIED and not long_titles)


def _are_of_two(titles: set[str], other: set[str]) -> bool:
    """Whether no person has both titles: Mrs. and Miss or Dr. Grant, old and young Thomas."""
    if titles & {*_MARRIED, "lady"} and (other & {"miss", *_RANKS}):
        return True
    return "young" in titles and bool(other & {"old", "mr", "sir"}) and not titles & other


def _is_within(words: Sequence[str], other: Sequence[str]) -> bool:
    """Whether all words are in another name, perhaps as short forms."""
    return all(any(_is_same_word(word, another) for another in other) for word in words)


def _is_same_word(word: str, other: str) -> bool:
    full, other_full = _SHORT_NAMES.get(word, ()), _SHORT_NAMES.get(other, ())
    is_part = min(word, other, key=len) > "㐀" and (word.endswith(other) or other.endswith(word))  # 黛玉 is 林黛玉
    return word == other or word in other_full or other in full or is_part


def _fits(name: str, person: Character) -> bool:
    """Whether a name is one of a person's names and contradicts none: "Darcy" fits Mr. and Miss Darcy, two people."""
    is_same = [_is_same_person(name, other) for other in person.names]
    has_word = any(set(_core(name)) & set(_core(other)) for other in person.names)
    if _core(name) and not has_word and any({"mr", "sir"} & set(_titles(other)) for other in person.names):
        return False  # "Tom" is rather the son of Mr. Thomas Gradgrind
    return any(is_same) and not any(
        _contradicts(name, other) for other, same in zip(person.names, is_same, strict=True) if not same
    )


def _contradicts(name: str, other: str) -> bool:
    """Whether one person cannot have both names: "Mary" can also be Miss Crawford, but Henry Crawford cannot."""
    words, other_words = _core(name), _core(other)
    if not words or not other_words or _is_phrase(name) or _is_phrase(other):
        return True
    if any(_is_same_word(word, another) for word in words for another in other_words):
        return True
    return len({gender_of_name(name), gender_of_name(other)} - {""}) > 1


def _has_title(person: Character, role: str) -> bool:
    return any(role in _titles(name) and _core(name) for name in person.names)


def gender_of_name(name: str) -> Gender:
    """The gender by a title or a given name; blank if neither shows it."""
    return _shown(name) or next(map(_gender_of_given, _core(name)[:1]), "")


def _shown(name: str) -> Gender:
    """The gender by a title, a role or an article."""
    return _shown_by(_titles(name)) or (_ARTICLE_GENDERS.get(name.lower().split()[0], "") if _is_phrase(name) else "")


def _gender_of_given(name: str) -> Gender:
    genders = {_GENDERS.get(each, "") for each in _SHORT_NAMES.get(name, ())}
    return _GENDERS.get(name) or (genders.pop() if len(genders) == 1 else "")


def _shown_gender(names: Iterable[str]) -> Gender:
    """The gender of most titles in these names."""
    shown = Counter(gender for name in names if (gender := _shown(name)))
    return "male" if shown["male"] > shown["female"] else "female" if shown["female"] else ""


def _shown_by(titles: Iterable[str]) -> Gender:
    return next((gender for title in titles if (gender := TITLES.get(title, "") or ROLES.get(title, ""))), "")

"""Divides a document's prose, scripts and plays among its characters, with the evidence for each line.

Scripts and plays are split at their speakers' names, and stage directions are separated from speech.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from manuscript.attribution import CastLine, attribute, attribute_again
from manuscript.characters import NARRATOR_SELF, Character, Gender, gender_of_name
from manuscript.passages import (
    MAX_ALIASES,
    MAX_CAST_CHARACTERS,
    PARAGRAPH_END,
    SURE,
    Document,
    InvalidDocument,
    NewCharacter,
    Passage,
    divided,
)
from speechtext.script import is_blank
from speechtext.turns import fold_speaker, speaker_names, turns_of

SCRIPT_SHARE = 0.5
"""A text is a script if at least this share of its paragraphs begins with a name and a colon."""
PROSE_NAMES = 2
"""In a text that is not a script, a name is listed as a speaker if this many lines begin with it and a colon."""
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
WINDOW = 50
"""Passages before and after a decided one that are read again with it: most scenes are shorter."""
NEAR = 12  # passages within which lines depend on each other
_MENDED = 0.25  # the share of a wrong neighbour's doubt that a decision removes, chosen on annotated novels
_GENDERS: dict[str, Gender] = {"female": "female", "male": "male"}  # pronouns tell only these two apart
PLAY_SHARE = 0.5
"""A text is a play if at least this share of its paragraphs begins with a name in capitals and a full stop."""


class Casting:
    """Finds the characters of one document by any of their names."""

    def __init__(
        self,
        voices: Mapping[str, str],
        is_voice: Callable[[str], bool] | None = None,
        people: Iterable[NewCharacter] = (),
    ) -> None:
        """``voices``: voices by name; a name that is not in it has the voice of the same name, if there is one.

        ``people``: known before the document is read, with all their names; of two with the same name the first has it.
        """
        self._voices = {fold_speaker(name): voice for name, voice in voices.items()}
        self._is_voice = is_voice
        self._by_name: dict[str, NewCharacter] = {}
        self.known = tuple(people)
        for person in self.known:
            for name in (person.name, *person.aliases):
                self._by_name.setdefault(fold_speaker(name), person)

    def is_speaker(self, name: str) -> bool:
        """Whether a line may begin with this name: the name has a voice, or a character has it."""
        return fold_speaker(name) in self._by_name or self._voice_of(name) is not None

    def prefer(self, name: str, voice: str) -> None:
        """Set the voice of a name that has none."""
        self._voices.setdefault(fold_speaker(name), voice)

    def character(self, name: str, aliases: Sequence[str] = (), gender: str = "") -> NewCharacter:
        """The character with one of these names, created if it does not exist."""
        names = [name, *aliases]
        character = next((self._by_name[key] for alias in names if (key := fold_speaker(alias)) in self._by_name), None)
        if character is None:
            voice = next((voice for alias in names if (voice := self._voice_of(alias)) is not None), None)
            gender = gender or gender_of_name(name)
            character = NewCharacter(
                name, tuple(aliases)[:MAX_ALIASES], gender, voice, voice is None and name == NARRATOR_SELF
            )
        elif aliases or gender:
            all_aliases = dict.fromkeys([*character.aliases, *(alias for alias in names if alias != character.name)])
            character = replace(character, aliases=tuple(all_aliases)[:MAX_ALIASES], gender=character.gender or gender)
        for alias in (character.name, *names):
            self._by_name[fold_speaker(alias)] = character
        return character

    def _voice_of(self, name: str) -> str | None:
        folded = fold_speaker(name)
        if folded not in self._voices and self._is_voice is not None and self._is_voice(name):
            self._voices[folded] = name
        return self._voices.get(folded)


def split_by_speaker(document: Document, casting: Casting, find_speakers: bool) -> Document:
    """Return the document with its lines as passages of their speakers, and the characters as its cast.

    ``find_speakers``: also quoted speech in prose, and every name before a colon where the text is a script. Blocking:
    about 1.5 s of a core for a million letters. Raises InvalidDocument.
    """
    if find_speakers and document.prose:
        document = replace(document, passages=tuple(_with_colons(document.passages)))
        for name in _script_names(document, only_scripts=True):
            casting.character(name)
    voices = Counter((each.speaker, each.voice) for each in document.passages if each.speaker and each.voice)
    for (name, voice), _ in voices.most_common():
        casting.prefer(name, str(voice))
    for known in document.cast:  # a table says their genders
        casting.character(known.name, known.aliases, known.gender)
    passages = [turn for passage in document.passages for turn in _turns_in(passage, casting.is_speaker)]
    if find_speakers and document.prose:
        passages = _split_quotations(passages, casting)
    for at, passage in enumerate(passages):
        if passage.speaker:
            character = casting.character(passage.speaker)
            passages[at] = replace(passage, speaker=character.name, voice=passage.voice or character.voice)
    lines = Counter(passage.speaker for passage in passages if passage.speaker)
    cast = tuple(casting.character(name) for name, _ in lines.most_common())
    if len(cast) > MAX_CAST_CHARACTERS:
        raise InvalidDocument(f"the document's cast has {len(cast):,} people; the limit is {MAX_CAST_CHARACTERS:,}")
    return replace(document, passages=tuple(passages), cast=cast)


def most_mended(lines: Sequence[tuple[int, float, bool]]) -> list[int]:
    """The places of unsure lines, in the order in which a decision mends most.

    ``lines``: the places and confidences of all lines of speech, a decided one with 1, and whether each continues the
    paragraph of the passage before it. An answer mends the line itself if it is wrong, the rest of its quotation, which
    comes directly after it, and its open neighbours, whose speakers depend on it.
    """
    quotations: list[list[int]] = []
    speech: list[tuple[int, float]] = []  # of each quotation: where it begins, and the confidence
    for place, confidence, continues in lines:
        if continues and quotations and quotations[-1][-1] == place - 1 and confidence == speech[-1][1]:
            quotations[-1].append(place)
        else:
            quotations.append([place])
            speech.append((place, confidence))
    doubts = [1 - confidence for _, confidence in speech]
    gains = list[tuple[float, list[int]]]()
    for number, (place, confidence) in enumerate(speech):
        if confidence < SURE:
            near = range(max(0, number - 2), min(len(speech), number + 5))
            open_near = (
                doubts[other]
                for other in near
                if other != number and abs(speech[other][0] - place) <= NEAR and speech[other][1] < SURE
            )
            gains.append((-doubts[number] * (1 + _MENDED * sum(open_near)), quotations[number]))
    return [place for _, places in sorted(gains) for place in places]


def decide_again(
    passages: Sequence[Passage], cast: Iterable[NewCharacter], decided: Collection[int], latest: int
) -> dict[int, tuple[str, float]]:
    """The speakers of other lines that change with the latest decision, and their confidence, by number.

    ``passages``: successive ones of a document that was split by speaker; a blank speaker is the narrator. ``decided``:
    the numbers of those whose speaker is certain, among them ``latest``. Blocking: 60 ms for 100 passages.
    """
    paragraphs = list[str]()
    spans = list[tuple[int, int, int, int]]()  # number of the passage, number of the paragraph, start, end
    for number, passage in enumerate(passages):
        for place, text in enumerate([""] if passage.is_heading else PARAGRAPH_END.split(passage.text)):
            if passage.continues and paragraphs and not place:
                start = len(paragraphs[-1]) + 1
                paragraphs[-1] += f" {text}"
            else:
                start = 0
                paragraphs.append(text)
            spans.append((number, len(paragraphs) - 1, start, start + len(text)))
    before: dict[int, list[tuple[int, str]]] = defaultdict(list)
    after: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for number, paragraph, start, _ in spans:
        if number in decided and (decision := passages[number].speaker):
            after[paragraph].append((start, decision))
            if number != latest:
                before[paragraph].append((start, decision))
    known = [_as_person(each) for each in cast]
    old, new = (
        _lines_of(spans, attribution.lines) for attribution in attribute_again(paragraphs, known, [before, after])
    )
    changed: dict[int, tuple[str, float]] = {}
    for number, line in new.items():
        passage, speaker, confidence = passages[number], line.speaker, line.confidence
        if number in decided or passage.confidence is None or speaker is None or confidence is None:
            continue
        # Lines that the decision does not change keep what the whole document showed, not only these passages of it.
        is_surer = speaker == passage.speaker and confidence != old[number].confidence
        if speaker != old[number].speaker or is_surer:
            changed[number] = speaker, confidence
    for step in (-1, 1):  # the rest of the quotation, which is divided because it is long
        number = latest
        while 0 <= number + step < len(passages) and _goes_on(passages, max(number, number + step)):
            number += step
            if number not in decided:
                changed[number] = passages[latest].speaker, 1.0
    return changed


def _goes_on(passages: Sequence[Passage], number: int) -> bool:
    """Whether a passage has more of the quotation in the one before it: no narration is between them."""
    passage = passages[number]
    goes_on = passage.continues or passage.reason == "continued"
    return goes_on and None not in (passage.confidence, passages[number - 1].confidence)


def _as_person(character: NewCharacter) -> Character:
    return Character(character.name, (character.name, *character.aliases), _GENDERS.get(character.gender, ""))


def _lines_of(spans: Iterable[tuple[int, int, int, int]], lines: Iterable[CastLine]) -> dict[int, CastLine]:
    """The first line of speech in each passage."""
    spoken: dict[int, list[CastLine]] = defaultdict(list)
    for line in lines:
        if line.is_speech:
            spoken[line.paragraph].append(line)
    found: dict[int, CastLine] = {}
    for number, paragraph, start, end in spans:
        for line in spoken.get(paragraph, ()):
            if line.start < end and line.end > start:
                found.setdefault(number, line)
    return found


def speakers_in(document: Document, people: Iterable[NewCharacter] = ()) -> Document:
    """Split a document to list possible speakers, with names that occur several times before a colon in prose."""
    casting = Casting({}, people=people)
    if document.prose:
        document = replace(document, passages=tuple(_with_colons(document.passages)))
        for name in _script_names(document, only_scripts=False):
            casting.character(name)
    return split_by_speaker(document, casting, find_speakers=True)


def is_script(document: Document) -> bool:
    """Whether its paragraphs are mostly the lines of at least two turns, as in a script or a play."""
    if not document.prose:
        return False
    names = _script_names(replace(document, passages=tuple(_with_colons(document.passages))), only_scripts=True)
    return len(names) > 1


def _script_names(document: Document, only_scripts: bool) -> list[str]:
    texts = [passage.text for passage in document.passages if not (passage.voice or passage.is_heading)]
    names_by_text = [speaker_names(text) for text in texts]
    # A title page or an imprint ("London:") that each volume repeats is one text.
    counts = Counter(name for names in dict(zip(texts, names_by_text, strict=True)).values() for name in names)
    is_script = sum(map(bool, names_by_text)) >= SCRIPT_SHARE * max(1, len(texts))
    least = 1 if is_script else PROSE_NAMES
    return [] if only_scripts and not is_script else [name for name, count in counts.items() if count >= least]


def _split_quotations(passages: Sequence[Passage], casting: Casting) -> list[Passage]:
    """Split passages so that each stretch of quoted speech is a passage."""
    is_prose = [not (passage.voice or passage.speaker or passage.is_heading) for passage in passages]
    known = [_as_person(person) for person in casting.known]
    paragraphs = [passage.text if prose else "" for passage, prose in zip(passages, is_prose, strict=True)]
    attribution = attribute(paragraphs, known)
    for person in attribution.characters:
        casting.character(person.name, person.names[1:], person.gender)
    lines: list[list[CastLine]] = [[] for _ in passages]
    for line in attribution.lines:
        lines[line.paragraph].append(line)
    pieces: list[Passage] = []
    for passage, passage_lines in zip(passages, lines, strict=True):
        pieces += _by_line(passage, passage_lines) if any(line.is_speech for line in passage_lines) else [passage]
    return pieces


def _by_line(passage: Passage, lines: Iterable[CastLine]) -> Iterator[Passage]:
    pieces: list[tuple[str, CastLine]] = []
    opening = ""  # a dash, which is not part of the quotation after it
    for line in lines:
        text = f"{opening} {passage.text[line.start : line.end].strip()}".lstrip()
        is_bare = not any(sign.isalnum() for sign in text)
        opening = text if is_bare and not pieces else ""
        if pieces and (is_bare or (line.is_speech, line.speaker) == (pieces[-1][1].is_speech, pieces[-1][1].speaker)):
            pieces[-1] = f"{pieces[-1][0]} {text}", pieces[-1][1]
        elif not opening:
            pieces.append((text, line))
    parts = list[Passage]()
    for text, line in pieces:
        continues = True if parts else passage.continues
        speaker, sure, reason = line.speaker or "", line.confidence, line.reason
        parts.append(replace(passage, text=text, continues=continues, speaker=speaker, confidence=sure, reason=reason))
    return divided(passage, parts)


def _with_colons(passages: Sequence[Passage]) -> Sequence[Passage]:
    """A play's passages with a colon after each speaker's name, and stage directions on separate lines without
    brackets: many plays have "ROMEO." on a separate line, or before the words. Other texts are not changed."""
    names = list[re.Match[str] | None]()
    texts = 0
    for passage in passages:
        is_text = not (passage.voice or passage.speaker or passage.is_heading)
        texts += is_text
        name = _PLAY_NAME.match(passage.text) if is_text else None
        names.append(name if name and name[1].isupper() and len(name[1].split()) <= _WORDS_IN_A_PLAYS_NAME else None)
    if sum(map(bool, names)) < PLAY_SHARE * max(1, texts):
        return passages
    lines: list[Passage] = []
    for passage, name in zip(passages, names, strict=True):
        if name:
            lines.append(replace(passage, text=f"{name[1]}: {passage.text[name.end() :]}"))
        else:
            direction = _DIRECTION.fullmatch(passage.text)
            lines.append(replace(passage, text=(direction and direction["line"]) or passage.text))
    return lines


def _turns_in(passage: Passage, is_speaker: Callable[[str], bool]) -> Iterator[Passage]:
    """Split a passage without a voice at lines that begin with a speaker's name and a colon: that speaker has the text
    up to the end of the paragraph."""
    if passage.voice or passage.speaker:
        yield passage
        return
    pieces = [piece for turn in turns_of(passage.text, is_speaker) for piece in _split_directions(*turn)]
    if pieces == [(None, passage.text, False)]:
        yield passage
        return
    turns = list[Passage]()
    for speaker, text, goes_on in pieces:
        continues = goes_on if turns else passage.continues
        turns.append(replace(passage, text=text, speaker=speaker or "", continues=continues))
    yield from divided(passage, turns)


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

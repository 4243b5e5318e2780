"""python -m benchmarks.casting FOLDER [--novels A,B] [--chat URL MODEL]: how often the import finds who speaks.

FOLDER holds a folder per annotated novel, as the Project Dialogism Novel Corpus publishes them (its "data"):
novel_text.txt, quotation_info.csv and character_info.csv; or a folder of such folders for each language. The text goes,
as a .txt file, through the import with speakers, and each letter of the result is laid on the letters of the novel.
With --chat, an OpenAI-compatible endpoint is then asked about the lines that are not sure, as "Ask" does, and the
figures after its answers are on a line of their own.

found: quotations of which at least half the letters are speech. speaker: quotations whose character is that person; a
person may have several characters. voice: only the largest character of each person counts. Quotations that are not
found count as wrong, those without one known speaker are left out. nobody: characters without a name of the corpus'
list, of whose lines no person has half. keys: decisions, each with one key in the order in which the page shows the
lines, until 90 % of the speakers are right; each decides its scene again.
"""

from __future__ import annotations

import argparse
import ast
import bisect
import csv
import os
import re
import time
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import anyio

from longform.chat_endpoint import SCENE_LEAD, SCENE_PARTS, ChatEndpoint, Person, Scene, SceneLine, scene_of
from longform.document_import import DocumentImport
from manuscript import Casting, Document, NewCharacter, Passage, decide_again, split_by_speaker
from manuscript.cast import WINDOW, most_mended

KINDS = ("Explicit", "Anaphoric", "Implicit")
WANTED = 0.9
"""Share of right speakers at which a person stops to decide lines."""
_GENDERS = {"F": "female", "M": "male"}
_FILLER = re.compile(r"^(?:(?:my|the|a|an|dear|dearest|poor|our) )+")


@dataclass(frozen=True, slots=True)
class Quotation:
    """A quotation with its spans of characters, and its speaker."""

    spans: tuple[tuple[int, int], ...]
    speaker: str
    kind: str


@dataclass(frozen=True, slots=True)
class Novel:
    """An annotated novel."""

    name: str
    group: str
    text: str
    quotations: tuple[Quotation, ...]
    people: dict[str, frozenset[str]]
    """The people whom a name may mean, by folded name."""
    genders: dict[str, str]

    def person(self, name: str) -> str:
        people = self.people.get(folded(name), frozenset())
        return name if name in self.genders or not people else min(people)


@dataclass(slots=True)
class Figures:
    """The figures of one novel, as numbers of quotations."""

    novel: str
    letters: int
    group: str = ""  # the folder of the novel's folder
    quotations: int = 0  # with one known speaker
    found: int = 0
    right: int = 0
    voiced: int = 0
    by_kind: Counter[str] = field(default_factory=Counter)
    right_by_kind: Counter[str] = field(default_factory=Counter)
    sure: int = 0
    sure_right: int = 0
    gendered: int = 0  # quotations of people whose gender the corpus knows, and who are in the cast
    wrong_gender: int = 0
    nobody: list[str] = field(default_factory=list)
    keys: int | None = None
    seconds: float = 0.0


def folded(name: str) -> str:
    """The name without case, punctuation and words such as "the" and "dear"."""
    name = unicodedata.normalize("NFKC", name).lower().replace("’", "'")
    words = " ".join(re.sub(r"[^\w' ]+", " ", name).split())
    return _FILLER.sub("", words + " ").strip()


def read_novel(folder: Path) -> Novel:
    """Read a novel in the layout of the corpus, whose spans count characters."""
    people: dict[str, set[str]] = defaultdict(set)
    genders: dict[str, str] = {}
    with (folder / "character_info.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            main = row["Main Name"]
            genders[main] = _GENDERS.get(row["Gender"].strip().upper()[:1], "")
            for name in (main, *ast.literal_eval(row["Aliases"] or "()")):
                people[folded(name)].add(main)
    quotations = []
    with (folder / "quotation_info.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            spans = tuple((int(start), int(end)) for start, end in ast.literal_eval(row["quoteByteSpans"]))
            quotations.append(Quotation(spans, row["speaker"], row["quoteType"].strip().capitalize()))
    with (folder / "novel_text.txt").open(encoding="utf-8", newline="") as file:
        text = file.read()
    names = {name: frozenset(mains) for name, mains in people.items()}
    return Novel(folder.name, folder.parent.name, text, tuple(quotations), names, genders)


def imported(text: str) -> Document:
    """The text's document, as an import with speakers makes it, before it is cut into parts."""
    document = DocumentImport(text.encode(), "txt", with_speakers=True).document()
    return split_by_speaker(document, Casting({}), find_speakers=True)


def _letters(text: str) -> tuple[str, list[int]]:
    places = [at for at, sign in enumerate(text) if sign.isalnum()]
    return "".join(text[at].lower()[0] for at in places), places


class Laid:
    """For each quotation of a novel, the passage that has most of its letters; None if fewer than half are speech."""

    def __init__(self, novel: Novel, passages: Sequence[Passage]) -> None:
        stream, self._places = _letters(novel.text)
        self._owners = [-1] * len(stream)
        at = 0
        for number, passage in enumerate(passages):
            own, _ = _letters(passage.text)
            # Text that the import left out, such as a licence, lies between two passages.
            if own and (start := stream.find(own, at, at + len(own) + 60_000)) >= 0:
                at = start + len(own)
                self._owners[start:at] = [number] * len(own)
        self.passages = [self._passage(each, passages) for each in novel.quotations]

    def _passage(self, quotation: Quotation, passages: Sequence[Passage]) -> int | None:
        places = self._places
        bounds = [
            (bisect.bisect_left(places, start), bisect.bisect_left(places, end)) for start, end in quotation.spans
        ]
        owners = [owner for start, end in bounds for owner in self._owners[start:end]]
        spoken = Counter(owner for owner in owners if owner >= 0 and passages[owner].confidence is not None)
        if not owners or spoken.total() * 2 < len(owners):
            return None
        speakers = Counter[str]()
        for number, count in spoken.items():
            speakers[passages[number].speaker] += count
        [(speaker, _)] = speakers.most_common(1)
        return next(number for number, _ in spoken.most_common() if passages[number].speaker == speaker)


def ask(document: Document, endpoint: ChatEndpoint) -> tuple[Document, str]:
    """The document with the speakers that the endpoint proposes for lines that are not sure, and how many it answered.

    Raises ChatFailed.
    """
    passages = list(document.passages)
    is_open = [each.confidence is not None and not each.is_sure for each in passages]
    scenes, end = list[Scene](), 0
    for at in (at for at, asked in enumerate(is_open) if asked):
        if at >= end:
            first = max(0, at - SCENE_LEAD)
            window = [
                SceneLine(each.text, key=str(number))
                if is_open[number] and number >= at
                else SceneLine(each.text, each.speaker if each.is_sure else "")
                for number, each in enumerate(passages[first : first + SCENE_PARTS], first)
            ]
            scenes.append(scene_of(window))
            end = first + len(scenes[-1])
    people = [Person(each.name, each.aliases, each.gender) for each in document.cast]
    names = {name.casefold(): each.name for each in people for name in (*each.aliases, each.name)}
    proposals = anyio.run(endpoint.propose, scenes, people, None)
    for key, proposal in proposals.items():
        if name := names.get(proposal.speaker.casefold()):
            passages[int(key)] = replace(passages[int(key)], speaker=name)
    return replace(document, passages=tuple(passages)), f"{len(proposals)} of {sum(is_open)} lines answered"


def measure(novel: Novel, endpoint: ChatEndpoint | None = None) -> list[Figures]:
    """The figures of the import, and with an endpoint those after its answers. Raises ChatFailed."""
    began = time.process_time()
    document = imported(novel.text)
    figures = Figures(novel.name, len(novel.text), novel.group, seconds=time.process_time() - began)
    results = [_figures(novel, document, figures)]
    if endpoint is not None:
        document, answered = ask(document, endpoint)
        name = f"{novel.name}, {endpoint.model}, {answered}"
        results.append(_figures(novel, document, Figures(name, len(novel.text), f"{novel.group}, {endpoint.model}")))
    return results


def _figures(novel: Novel, document: Document, figures: Figures) -> Figures:
    laid = Laid(novel, document.passages).passages
    lines = [
        (passage, each.kind, novel.person(each.speaker))
        for each, passage in zip(novel.quotations, laid, strict=True)
        if each.speaker not in ("", "nan") and not each.speaker.startswith("_")
    ]
    identities = _identities(novel, document, [(passage, person) for passage, _, person in lines])
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for passage, _, person in lines:
        speaker = _speaker(document, passage)
        if identities.get(speaker) == person:
            counts[person][speaker] += 1
    largest = {person: speakers.most_common(1)[0][0] for person, speakers in counts.items()}
    genders = {each.name: each.gender for each in document.cast}
    for passage, kind, person in lines:
        speaker = _speaker(document, passage)
        is_right = identities.get(speaker) == person
        figures.quotations += 1
        figures.found += passage is not None
        figures.right += is_right
        figures.voiced += is_right and largest[person] == speaker
        figures.by_kind[kind] += 1
        figures.right_by_kind[kind] += is_right
        if passage is not None and speaker and document.passages[passage].is_sure:
            figures.sure += 1
            figures.sure_right += is_right
        if novel.genders.get(person) and person in largest:
            figures.gendered += 1
            figures.wrong_gender += genders[largest[person]] not in ("", novel.genders[person])
    figures.nobody = _nobody(novel, document, [(passage, person) for passage, _, person in lines])
    figures.keys = keys_until_right(document, [(passage, person) for passage, _, person in lines], identities, largest)
    return figures


def _speaker(document: Document, passage: int | None) -> str:
    return "" if passage is None else document.passages[passage].speaker


Lines = Sequence[tuple[int | None, str]]
"""The passage of each quotation, and its person."""


def _by_speaker(document: Document, lines: Lines) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for passage, person in lines:
        if speaker := _speaker(document, passage):
            counts[speaker][person] += 1
    return counts


def _named(novel: Novel, character: NewCharacter) -> set[str]:
    """The people of the corpus who have one of the character's names."""
    names = (character.name, *character.aliases)
    return set[str]().union(*(novel.people.get(folded(name), frozenset()) for name in names))


def _identities(novel: Novel, document: Document, lines: Lines) -> dict[str, str]:
    """The person that each character is: one with one of its names, else the one with most of its lines."""
    counts = _by_speaker(document, lines)
    identities = {}
    for character in document.cast:
        named = _named(novel, character)
        own = {person: count for person, count in counts[character.name].items() if not named or person in named}
        if own or named:
            identities[character.name] = max(sorted(own), key=lambda person: own[person]) if own else min(named)
    return identities


def _nobody(novel: Novel, document: Document, lines: Lines) -> list[str]:
    counts = _by_speaker(document, lines)
    unnamed = [each.name for each in document.cast if not _named(novel, each) and counts[each.name]]
    return [name for name in unnamed if max(counts[name].values()) * 2 < counts[name].total()]


def keys_until_right(
    document: Document, lines: Lines, identities: dict[str, str], largest: dict[str, str]
) -> int | None:
    """The decisions until WANTED of the speakers are right; None if all lines that are not sure are decided before."""
    passages = list(document.passages)
    people = {passage: person for passage, person in lines if passage is not None}
    decided, keys = set[int](), 0
    while True:
        right = sum(
            passage is not None
            and (
                identities.get(passages[passage].speaker) == person
                or (passage in decided and people[passage] == person)
            )
            for passage, person in lines
        )
        if right >= WANTED * len(lines):
            return keys
        speech = [
            (number, 1.0 if number in decided else each.confidence, bool(each.continues))
            for number, each in enumerate(passages)
            if each.confidence is not None
        ]
        if not (order := most_mended(speech)):
            return None
        at = order[0]
        keys += 1
        decided.add(at)
        # A line that the corpus does not have, or whose person is not in the cast, is confirmed as it is.
        passages[at] = replace(passages[at], speaker=largest.get(people.get(at, ""), passages[at].speaker))
        first = max(0, at - WINDOW)
        window = passages[first : at + WINDOW + 1]
        numbers = {number - first for number in decided if first <= number < first + len(window)}
        for number, line in decide_again(window, document.cast, numbers, at - first).items():
            passages[first + number] = replace(window[number], speaker=line[0], confidence=line[1])


def table(results: Iterable[Figures]) -> str:
    """A line per novel, and one for all of each group."""
    rows = list(results)
    columns = ("novel", "quotations", "found", "speaker", "voice", *KINDS, "sure", "of these right", "wrong gender")
    lines = [" | ".join((*columns, "nobody", "keys", "s per M"))]
    for row in rows:
        lines.append(_row(row, str(row.keys) if row.keys is not None else "not reached", len(row.nobody)))
    groups = {row.group: [other for other in rows if other.group == row.group] for row in rows}
    lines += [_total(group, members) for group, members in groups.items() if len(rows) > 1]
    return "\n".join(lines)


def _total(group: str, rows: Sequence[Figures]) -> str:
    total = Figures(f"all of {group}", sum(row.letters for row in rows))
    for name in ("quotations", "found", "right", "voiced", "sure", "sure_right", "gendered", "wrong_gender", "seconds"):
        setattr(total, name, sum(getattr(row, name) for row in rows))
    for row in rows:
        total.by_kind.update(row.by_kind)
        total.right_by_kind.update(row.right_by_kind)
    reached = [row.keys / row.quotations for row in rows if row.keys is not None]
    keys = f"{_percent(sum(reached), len(reached))} of the quotations in {len(reached)} novels"
    return _row(total, keys, sum(len(row.nobody) for row in rows) / len(rows))


def _row(row: Figures, keys: str, nobody: float) -> str:
    cells = [row.novel, f"{row.quotations:,}", _percent(row.found, row.quotations), _percent(row.right, row.quotations)]
    cells += [_percent(row.voiced, row.quotations)]
    cells += [_percent(row.right_by_kind[kind], row.by_kind[kind]) for kind in KINDS]
    cells += [_percent(row.sure, row.quotations), _percent(row.sure_right, row.sure)]
    cells += [_percent(row.wrong_gender, row.gendered), f"{nobody:.1f}", keys, f"{1e6 * row.seconds / row.letters:.1f}"]
    return " | ".join(cells)


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "-"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--novels", default="", help="names of folders, with commas; by default all")
    parser.add_argument("--chat", nargs=2, metavar=("URL", "MODEL"), help="its key is in the variable CHAT_KEY")
    options = parser.parse_args(arguments)
    endpoint = None
    if options.chat:
        url, model = options.chat
        endpoint = ChatEndpoint(url, model, os.environ.get("CHAT_KEY"))
    wanted = set(filter(None, options.novels.split(",")))
    folders = sorted(path.parent for path in options.folder.rglob("quotation_info.csv"))
    folders = [folder for folder in folders if not wanted or folder.name in wanted]
    if not folders:
        parser.error(f"{options.folder} has no folders with novel_text.txt, quotation_info.csv and character_info.csv")
    results = list[Figures]()
    for folder in folders:
        for figures in measure(read_novel(folder), endpoint):
            results.append(figures)
            print(table([figures]).splitlines()[-1], flush=True)
            if figures.nobody:
                print(f"  nobody: {', '.join(figures.nobody)}")
    print(table(results))


if __name__ == "__main__":
    main()

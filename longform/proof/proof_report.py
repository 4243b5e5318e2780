"""The report of a check: a table of all doubtful spots as CSV or JSON, and a summary in plain text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from longform.library.project_repository import ProjectLibrary
from longform.library.proof_records import KINDS, Kind, ProofFigures, Spot
from longform.proof.part_check import VERSION
from manuscript.table import write_rows
from speechtext.script import sentences_of

MAX_SPOTS, PAGE = 20_000, 500  # accepted and open ones each; read at a time
NAMES: dict[Kind, str] = {kind: kind.replace("_", " ") for kind in KINDS} | {
    "too_long": "too long for its text",
    "too_short": "too short for its text",
    "level": "level differs",
    "pace": "pace differs",
    "voice": "another voice",
    "late": "begins late",
}
COLUMNS = ("part", "start", "end", "kind", "weight", "accepted", "words", "heard", "sentence", "take", "chosen")


class ProofReport:
    """The findings of a check in a project. Blocking: milliseconds for every thousand spots."""

    def __init__(self, library: ProjectLibrary, project_id: str, owner_filter: str | None) -> None:
        """Raises NotFound."""
        self.title = library.projects.get(project_id, owner_filter).title
        self.figures = library.proofs.figures(project_id, owner_filter, VERSION)
        find = library.proofs.spots
        spots = list[Spot]()
        for accepted in (False, True):
            for at in range(0, MAX_SPOTS, PAGE):
                page, total = find(project_id, owner_filter, accepted=accepted, offset=at, limit=PAGE)
                spots += page
                if at + PAGE >= total:
                    break
        self.spots: Sequence[Spot] = sorted(spots, key=lambda spot: (spot.position, spot.finding.start))

    @property
    def files(self) -> dict[str, str]:
        """The files for an export, by name; none if nothing was checked or noted."""
        if not self.figures.checked and not self.spots:
            return {}
        return {"proof.csv": self.as_csv(), "proof.txt": self.as_text()}

    def as_csv(self) -> str:
        """A row for each spot, in the order of the book; times are seconds of the take."""
        return write_rows([COLUMNS, *(self._row(spot).values() for spot in self.spots)])

    def as_json(self) -> str:
        """The figures and the rows."""
        rows = [self._row(spot) for spot in self.spots]
        report = {"title": self.title, **figures_json(self.figures), "spots": rows}
        return json.dumps(report, ensure_ascii=False, indent=1)

    def as_text(self) -> str:
        """The figures, and the spots that were not accepted."""
        figures, open_spots = self.figures, [spot for spot in self.spots if not spot.accepted]
        lines = [
            f"{self.title}\n",
            f"Parts checked: {figures.checked} of {figures.parts} with audio, {figures.seconds / 60:.1f} minutes",
        ]
        if figures.changed:
            remedy = "generate them and continue the check, which checks only parts with new audio"
            lines.append(f"Parts changed since they were checked, and not counted: {figures.changed}; {remedy}")
        lines += [
            _words_line(figures),
            f"Doubtful spots: {len(open_spots)}, accepted: {len(self.spots) - len(open_spots)}",
            *(f"  {NAMES[kind]}: {figures.open[kind]}" for kind in KINDS if figures.open.get(kind)),
            "",
            *map(_line, open_spots),
        ]
        return "\n".join(lines).rstrip() + "\n"

    def _row(self, spot: Spot) -> dict[str, object]:
        finding, (before, words, after) = spot.finding, sentence_of(spot)
        values = (
            *(spot.position + 1, round(finding.start, 3), round(finding.end, 3)),
            *(finding.kind, finding.weight, spot.accepted),
            *(words, finding.heard, f"{before}{words}{after}".strip()),
            *(spot.take_number, spot.is_chosen),
        )
        return dict(zip(COLUMNS, values, strict=True))


def sentence_of(spot: Spot) -> tuple[str, str, str]:
    """The sentence of a spot: the text before the words concerned, these words, and the text after them."""
    text, first, last = spot.text, spot.finding.first, spot.finding.last
    begins = ends = 0
    start: int | None = None
    for sentence in sentences_of(text):
        begins, ends = ends, ends + len(sentence)
        if start is None and first < ends:
            start = begins
        if start is not None and last <= ends:
            break
    start = begins if start is None else start
    return text[start:first].lstrip(), text[first:last], text[last:ends].rstrip()


def _words_line(figures: ProofFigures) -> str:
    if (share := figures.per_thousand) is None:
        return "Words: not compared, as this needs a speech recogniser"
    words = f"Words: {figures.words}, wrong: {figures.wrong} ({share:.1f} per 1,000)"
    return words if figures.compared == figures.checked else f"{words}, compared in {figures.compared} parts"


def _line(spot: Spot) -> str:
    """The place of a spot, and what is doubtful there."""
    finding, (_, words, _) = spot.finding, sentence_of(spot)
    words, heard = (f"“{' '.join(piece.split())}”" for piece in (words, finding.heard))
    seconds = f"{finding.end - finding.start:.1f} s"
    match finding.kind:
        case "no_speech":
            summary = ""
        case "silence":
            summary = f" of {seconds}"
        case "too_long" | "too_short":
            summary = f": {seconds}"
        case "voice":
            summary = f", like {finding.heard}" if finding.heard else ""
        case "note" | "level" | "pace" | "late":
            summary = f": {finding.heard}"
        case "added" | "repeated":
            summary = f": {heard}"
        case "changed":
            summary = f": {words}, heard {heard}"
        case _:
            summary = f": {words}"
    take = "" if spot.is_chosen else f" of take {spot.take_number}, which is not the chosen one"
    return f"Part {spot.position + 1}, {finding.start:.1f} s{take}: {NAMES[finding.kind]}{summary}"


def figures_json(figures: ProofFigures) -> dict[str, object]:
    """The public form of the figures."""
    share, counts = figures.per_thousand, asdict(figures)
    del counts["open"]
    return counts | {
        "wrong_per_1000": None if share is None else round(share, 2),
        "seconds": round(figures.seconds, 3),
        "spots": {kind: figures.open.get(kind, 0) for kind in KINDS},
    }

"""The report of a check: a table of all doubtful spots as CSV or JSON, and a summary in plain text."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

from studio.library import Library
from studio.library.projects.proof_records import KINDS, Kind, ProofFigures, Spot
from studio.projects.proof.part_check import VERSION
from studio.speech.text import sentences_of

MAX_SPOTS = 20_000
NAMES: dict[Kind, str] = {
    "left_out": "left out",
    "added": "added",
    "changed": "changed",
    "repeated": "repeated",
    "cut_end": "cut end",
    "silence": "silence",
    "no_speech": "no speech",
    "too_long": "too long for its text",
    "too_short": "too short for its text",
    "level": "level differs",
    "pace": "pace differs",
    "note": "note",
}
COLUMNS = ("part", "start", "end", "kind", "weight", "accepted", "words", "heard", "sentence", "take", "chosen")


class ProofReport:
    """The findings of a check in a project. Blocking: milliseconds for every thousand spots."""

    def __init__(self, library: Library, project_id: str, owner_filter: str | None) -> None:
        """Raises NotFound."""
        self.title = library.projects.get(project_id, owner_filter).title
        self.figures = library.proofs.figures(project_id, owner_filter, VERSION)
        spots = list[Spot]()
        for accepted in (False, True):
            total = MAX_SPOTS
            listed = list[Spot]()
            while len(listed) < min(total, MAX_SPOTS):
                page, total = library.proofs.spots(
                    project_id, owner_filter, accepted=accepted, offset=len(listed), limit=500
                )
                if not page:
                    break
                listed += page
            spots += listed
        self.spots: Sequence[Spot] = sorted(spots, key=lambda spot: (spot.position, spot.finding.start))

    @property
    def files(self) -> dict[str, str]:
        """The files for an export, by name; none if nothing was checked or noted."""
        if not self.figures.checked and not self.spots:
            return {}
        return {"proof.csv": self.as_csv(), "proof.txt": self.as_text()}

    def as_csv(self) -> str:
        """A row for each spot, in the order of the book; times are seconds of the take."""
        text = io.StringIO(newline="")
        table = csv.writer(text)
        table.writerow(COLUMNS)
        for spot in self.spots:
            table.writerow(self._row(spot).values())
        return text.getvalue()

    def as_json(self) -> str:
        """The figures and the rows."""
        rows = [self._row(spot) for spot in self.spots]
        report = {"title": self.title, **figures_json(self.figures), "spots": rows}
        return json.dumps(report, ensure_ascii=False, indent=1)

    def as_text(self) -> str:
        """The figures, and the spots that were not accepted."""
        figures, open_spots = self.figures, [spot for spot in self.spots if not spot.accepted]
        lines = [
            self.title,
            "",
            f"Parts checked: {figures.checked} of {figures.parts} with audio, {figures.seconds / 60:.1f} minutes",
            *_changed_lines(figures),
            _words_line(figures),
            f"Doubtful spots: {len(open_spots)}, accepted: {len(self.spots) - len(open_spots)}",
            *(f"  {NAMES[kind]}: {figures.open[kind]}" for kind in KINDS if figures.open.get(kind)),
            "",
        ]
        lines += [f"{_place_of(spot)}: {summary_of(spot)}" for spot in open_spots]
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


def _changed_lines(figures: ProofFigures) -> Sequence[str]:
    if not figures.changed:
        return []
    remedy = "generate them and continue the check, which checks only parts with new audio"
    return [f"Parts changed since they were checked, and not counted: {figures.changed}; {remedy}"]


def _words_line(figures: ProofFigures) -> str:
    if (share := figures.per_thousand) is None:
        return "Words: not compared, as this needs a speech recogniser"
    words = f"Words: {figures.words}, wrong: {figures.wrong} ({share:.1f} per 1,000)"
    return words if figures.compared == figures.checked else f"{words}, compared in {figures.compared} parts"


def _place_of(spot: Spot) -> str:
    take = "" if spot.is_chosen else f" of take {spot.take_number}, which is not the chosen one"
    return f"Part {spot.position + 1}, {spot.finding.start:.1f} s{take}"


def summary_of(spot: Spot) -> str:
    """A spot in one line."""
    finding, (_, words, _) = spot.finding, sentence_of(spot)
    words, heard = (f"“{' '.join(piece.split())}”" for piece in (words, finding.heard))
    if finding.kind in ("note", "level", "pace"):
        return f"{NAMES[finding.kind]}: {finding.heard}"
    if finding.kind == "changed":
        return f"changed: {words}, heard {heard}"
    if finding.kind in ("added", "repeated"):
        return f"{NAMES[finding.kind]}: {heard}"
    if finding.kind == "silence":
        return f"silence of {finding.end - finding.start:.1f} s"
    if finding.kind in ("too_long", "too_short"):
        return f"{NAMES[finding.kind]}: {finding.end - finding.start:.1f} s"
    return NAMES[finding.kind] if finding.kind == "no_speech" else f"{NAMES[finding.kind]}: {words}"


def figures_json(figures: ProofFigures) -> dict[str, object]:
    """The public form of the figures."""
    share = figures.per_thousand
    return {
        "parts": figures.parts,
        "checked": figures.checked,
        "compared": figures.compared,
        "words": figures.words,
        "wrong": figures.wrong,
        "wrong_per_1000": None if share is None else round(share, 2),
        "seconds": round(figures.seconds, 3),
        "changed": figures.changed,
        "spots": {kind: figures.open.get(kind, 0) for kind in KINDS},
    }

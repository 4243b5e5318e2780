"""Request and response bodies for checking the audio of projects."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from longform.library.proof_records import MAX_NOTE, ProofFigures, Spot
from longform.proof.proof_report import figures_json, sentence_of
from longform.proof.proof_runs import MAX_TRIES, ProofRun
from studio.api.field_types import FINITE, NO_BOOLEAN, StrictBody


class ProofBody(StrictBody):
    """The scope of a check."""

    again: bool = Field(
        False, description="Check also the parts that were checked before, for example with another recogniser."
    )


class SpotBody(StrictBody):
    """The change of a doubtful spot."""

    accepted: bool = Field(description="true: it is fine, so do not list it any more; false: list it again.")
    acceptance_before: int | None = Field(
        None, description="The spot's acceptance as read; if that has changed since, the response is 412. Absent: any."
    )


class NoteBody(StrictBody):
    """A spot marked by a listener."""

    take: str = Field(description="The id of a part's take.")
    at: Annotated[float, FINITE, Field(ge=0), NO_BOOLEAN] = Field(description="Seconds from the beginning of the take.")
    note: str = Field("", description=f"At most {MAX_NOTE} characters; may be blank.")


class ImproveBody(StrictBody):
    """A part to regenerate until nothing in it is doubtful."""

    part: str = Field(description="The id of the part.")
    tries: Annotated[int, Field(ge=1, le=MAX_TRIES), NO_BOOLEAN] = Field(
        3, description="How many times it is generated at most, each time with a new seed."
    )


def proof_json(run: ProofRun, figures: ProofFigures, has_recogniser: bool) -> dict[str, Any]:
    """``state``: idle (not started since the studio's start), waiting, running, done, cancelled or failed."""
    left = run.seconds_left(figures, has_recogniser)
    return {
        "object": "project.proof",
        "state": run.state,
        "error": run.error,
        "recogniser": has_recogniser,
        "eta_s": None if left is None else round(left, 1),
        **figures_json(figures),
    }


def spot_json(spot: Spot) -> dict[str, Any]:
    """``before``, ``words`` and ``after`` are the sentence, with the words concerned between the other two."""
    finding, (before, words, after) = spot.finding, sentence_of(spot)
    return {
        "id": spot.id,
        "object": "project.proof.spot",
        "kind": finding.kind,
        "weight": finding.weight,
        "part": spot.part_id,
        "position": spot.position,
        "take": spot.take_id,
        "take_number": spot.take_number,
        "chosen": spot.is_chosen,
        "start": round(finding.start, 3),
        "end": round(finding.end, 3),
        "before": before,
        "words": words,
        "after": after,
        "heard": finding.heard,
        "accepted": spot.accepted,
        "acceptance": spot.acceptance,
    }

"""Converts takes to rows of SQLite and back, with their codes and word times."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np

from studio.library.schema import Database
from studio.library.take import NewTake, SpokenPart, Take, TakeCodes, TurnTime

_TIMINGS = {"queue_ms", "first_audio_ms", "generation_s", "audio_s", "turns", "resumed_at", "continues", "made_by"}
_TIMINGS |= {"regenerated_from", "can_continue"}
"""Fields that share one column of JSON, since no search uses them."""
_DEFAULTS = {field.name: field.default for field in fields(Take) if field.name in _TIMINGS}


def insert_take(db: Database, new_take: NewTake, digest: str | None) -> Take:
    """The take as stored; ``digest``: of its audio file."""
    take = new_take.take if digest is None else replace(new_take.take, audio=digest, size=sum(map(len, new_take.audio)))
    row = asdict(take)
    timings = {name: row.pop(name) for name in _DEFAULTS if row[name] != _DEFAULTS[name]}
    row |= {"audio": take.audio or None, "timings": json.dumps(timings, sort_keys=True)}
    row["parameters"] = json.dumps(take.parameters, sort_keys=True)
    number = db.table("takes").insert({name: row[name] for name in row if name not in _DEFAULTS}).last_rowid
    if new_take.codes is not None:
        db.table("take_codes").insert({"take": number} | _codes_row(new_take.codes))
    if new_take.words is not None:
        db.table("take_times").insert({"take": number, "words": json.dumps(new_take.words)})
    return take


def take_of(row: dict[str, Any]) -> Take:
    """A row of takes as a record; modifies the row instead of copying it, since a project has 100,000 of them."""
    del row["n"]
    timings = {name: value for name, value in json.loads(row.pop("timings")).items() if name in _DEFAULTS}
    if "turns" in timings:
        timings["turns"] = tuple(TurnTime(**turn) for turn in timings["turns"])
    timings.setdefault("audio_s", row["seconds"])
    row["parameters"] = json.loads(row["parameters"])
    row["starred"], row["live"] = bool(row["starred"]), bool(row["live"])
    row["audio"] = row["audio"] or ""
    return Take(**row, **timings)


def codes_of(row: dict[str, Any]) -> TakeCodes:
    """A row of take_codes."""
    flat, offset, parts = np.frombuffer(row["codes"], "<i2").astype(np.int16), 0, []
    for seed, frames, is_whole, *text_and_end in json.loads(row["parts"]):
        size = row["codebooks"] * frames
        codes = flat[offset : offset + size].reshape(row["codebooks"], frames)
        parts.append(SpokenPart(seed, codes, is_whole, *text_and_end))
        offset += size
    return TakeCodes(row["made_by"], tuple(parts))


def _codes_row(codes: TakeCodes) -> dict[str, Any]:
    parts = [[part.seed, part.codes.shape[1], part.is_whole, part.text, part.end] for part in codes.parts]
    return {
        "made_by": codes.made_by,
        "codebooks": codes.parts[0].codes.shape[0],
        "parts": json.dumps(parts),
        "codes": b"".join(np.ascontiguousarray(part.codes, "<i2").tobytes() for part in codes.parts),
    }

"""Converts voices and samples to rows of their tables, and back."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from audio import Cut
from studio.library.checks import right_of
from studio.library.names import fold
from studio.library.records import NewSample, Sample
from studio.library.schema import Database, select
from studio.library.voice import Voice, VoiceFields

Row = dict[str, Any]

_PLAIN = [field.name for field in dataclasses.fields(Sample) if field.name not in ("cut", "quality")]
"""Fields of a sample that are stored as columns of the same name."""
_VOICE_PLAIN = Voice.model_fields.keys() - {"consent", "favourite", "latest", "revision", "samples", "right", "speaker"}


def is_favourite(viewer: str) -> str:
    """An SQL condition on rows of `voices`; ``viewer``: the name of its parameter, which is null for all viewers."""
    condition = f"({viewer} is null or favourites.owner = {viewer})"
    return f"exists (select 1 from favourites where voice_id = voices.id and {condition})"


def haystack(voice: Row) -> str:
    """The folded text that is searched."""
    texts = (voice[column] for column in ("name", "slug", "description", "accent", "language"))
    words = (*texts, *json.loads(voice["tags"]))
    return fold(" ".join(words))


def voices_of(
    db: Database, rows: Sequence[Row], viewer: str | None = None, revisions: Sequence[int] | None = None
) -> list[Voice]:
    """The voices of rows of `voices`, each with the samples of its newest revision, or of that in ``revisions``.

    Without a ``viewer``, the favourites of all viewers count.
    """
    shown = [(row["id"], row["revision"]) for row in rows]
    if revisions is not None:
        shown = [(row["id"], revision) for row, revision in zip(rows, revisions, strict=True)]
    samples: dict[tuple[str, int], list[Sample]] = {key: [] for key in shown}
    for start in range(0, len(shown), 200):
        batch = shown[start : start + 200]
        placeholders = ",".join("(?,?)" for _ in batch)
        where = f"(voice_id, revision) in (values {placeholders})"
        query = f"select * from samples where {where} order by voice_id, position"
        for row in select(db, query, [value for pair in batch for value in pair]):
            samples[row["voice_id"], row["revision"]].append(sample_of(row))
    query = f"select id from voices where id in (select value from json_each(?2)) and {is_favourite('?1')}"
    favourites = {row[0] for row in db.execute(query, [viewer, json.dumps([row["id"] for row in rows])]).fetchall()}
    pairs = zip(rows, shown, strict=True)
    return [_voice(row, key[1], samples[key], row["id"] in favourites, viewer) for row, key in pairs]


def sample_of(row: Row) -> Sample:
    cut = Cut(row["start"], row["end"], row["gain_db"], row["channel"])
    return Sample(**{name: row[name] for name in _PLAIN}, cut=cut, quality=json.loads(row["quality"]))


def as_sample(new_sample: NewSample, sample_id: str, clip: str) -> Sample:
    """A new sample in the form in which it is read; ``clip``: the digest of its file."""
    names = {field.name for field in dataclasses.fields(NewSample)} - {"data"}
    facts = {name: getattr(new_sample, name) for name in names}
    return Sample(id=sample_id, clip=clip, size=len(new_sample.data), **facts)


def write_samples(db: Database, voice_id: str, revision: int, samples: Sequence[Sample]) -> None:
    db.table("samples").insert_all(
        {name: getattr(sample, name) for name in _PLAIN}
        | dataclasses.asdict(sample.cut)
        | {
            "voice_id": voice_id,
            "revision": revision,
            "position": position,
            "cut": sample.cut_key,
            "quality": json.dumps(sample.quality, sort_keys=True),
        }
        for position, sample in enumerate(samples)
    )


def columns_of(fields: VoiceFields, only_set: bool) -> Row:
    """The columns of all fields, or only of those set; without the slug, which must be free, and the favourite, which
    is a person's."""
    columns = VoiceFields.model_fields.keys() - {"slug", "favourite"}
    row: Row = fields.model_dump(exclude_unset=only_set, include=columns)
    if "name" in row:
        row["folded"] = fold(row["name"])
    if "consent" in row:
        row["consent_id"] = row.pop("consent") or None
    if "tags" in row:
        row["tags"] = json.dumps(row["tags"], ensure_ascii=False)
    if "defaults" in row:
        row["defaults"] = json.dumps(row["defaults"], sort_keys=True)
    return row


def _voice(row: Row, revision: int, samples: Sequence[Sample], favourite: bool, viewer: str | None) -> Voice:
    """The voice of a row, not checked again, because earlier versions had other limits."""
    values = {name: row[name] for name in _VOICE_PLAIN}
    return Voice.model_construct(
        **values
        | {
            "tags": tuple(json.loads(row["tags"])),
            "defaults": json.loads(row["defaults"]),
            "favourite": favourite,
            "bundled": bool(row["bundled"]),
            "consent": row["consent_id"],
            "latest": row["revision"],
            "revision": revision,
            "samples": tuple(samples),
            "right": right_of(row, viewer),
        }
    )

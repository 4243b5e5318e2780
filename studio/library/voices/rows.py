"""Between rows and nouns: how voices and samples are written to their tables and read back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from studio.library.records import Cut, NewSample, Sample, Voice
from studio.library.sqlite import Database, select
from studio.library.voices.names import fold

Row = dict[str, Any]


def haystack(voice: Row) -> str:
    """What a search looks through, folded."""
    said = (voice[column] for column in ("name", "slug", "description", "accent", "language"))
    words = (*said, *json.loads(voice["tags"]))
    return fold(" ".join(words))


def voices_of(db: Database, rows: Sequence[Row], revision: int | None = None) -> list[Voice]:
    """The voices of rows of `voices`, each with the samples of one revision: the given or its newest."""
    wanted = [(row["id"], revision or row["revision"]) for row in rows]
    samples: dict[str, list[Sample]] = {row["id"]: [] for row in rows}
    for start in range(0, len(wanted), 200):
        part = wanted[start : start + 200]
        pairs = ",".join("(?,?)" for _ in part)
        query = f"select * from samples where (voice_id, revision) in (values {pairs}) order by voice_id, position"
        for row in select(db, query, [value for pair in part for value in pair]):
            samples[row["voice_id"]].append(sample_of(row))
    return [_voice(row, number, samples[row["id"]]) for row, (_, number) in zip(rows, wanted, strict=True)]


def sample_of(row: Row) -> Sample:
    return Sample(
        id=row["id"],
        clip=row["clip"],
        media_type=row["media_type"],
        size=row["size"],
        clip_seconds=row["clip_seconds"],
        text=row["text"],
        speaker=row["speaker"],
        cut=Cut(row["start"], row["end"], row["gain_db"], row["channel"]),
        seconds=row["seconds"],
        score=row["score"],
        quality=json.loads(row["quality"]),
    )


def as_sample(new: NewSample, sample_id: str) -> Sample:
    """A new sample as it will be read back."""
    return Sample(
        id=sample_id,
        clip=new.clip,
        media_type=new.media_type,
        size=len(new.data),
        clip_seconds=new.clip_seconds,
        text=new.text,
        speaker=new.speaker,
        cut=new.cut,
        seconds=new.seconds,
        score=new.score,
        quality=new.quality,
    )


def write_samples(db: Database, voice_id: str, revision: int, samples: Sequence[Sample]) -> None:
    db.table("samples").insert_all(
        {
            "voice_id": voice_id,
            "revision": revision,
            "position": position,
            "id": sample.id,
            "clip": sample.clip,
            "media_type": sample.media_type,
            "size": sample.size,
            "clip_seconds": sample.clip_seconds,
            "text": sample.text,
            "speaker": sample.speaker,
            "start": sample.cut.start,
            "end": sample.cut.end,
            "gain_db": sample.cut.gain_db,
            "channel": sample.cut.channel,
            "cut": sample.cut_key,
            "seconds": sample.seconds,
            "score": sample.score,
            "quality": json.dumps(sample.quality, sort_keys=True),
        }
        for position, sample in enumerate(samples)
    )


def _voice(row: Row, revision: int, samples: Sequence[Sample]) -> Voice:
    return Voice(
        id=row["id"],
        slug=row["slug"],
        name=row["name"],
        description=row["description"],
        tags=tuple(json.loads(row["tags"])),
        language=row["language"],
        gender=row["gender"],
        accent=row["accent"],
        colour=row["colour"],
        favourite=bool(row["favourite"]),
        bundled=bool(row["bundled"]),
        licence=row["licence"],
        consent_id=row["consent_id"],
        defaults=json.loads(row["defaults"]),
        created=row["created"],
        changed=row["changed"],
        latest=row["revision"],
        version=row["version"],
        deleted=row["deleted"],
        revision=revision,
        samples=tuple(samples),
    )

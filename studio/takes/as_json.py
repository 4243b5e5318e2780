"""How takes look to API and page: the figures of a recent one, and all that is known of one that was kept."""

from __future__ import annotations

from dataclasses import replace

from studio.errors import NotFound
from studio.library import Library, StoredTake
from studio.library.records import OWN_CLIP
from studio.speech.request import MAX_INPUT
from studio.takes.record import Take, TurnTime

EXCERPT = 280
"""Characters of a text that lists show."""


def recent_json(take: Take) -> dict[str, object]:
    """A take that is not in the library (yet): its figures; nobody knows its words any more."""
    return take.as_json() | {
        "stored": False,
        "starred": False,
        "voice_id": None,
        "voice_revision": None,
        "excerpt": "",
        "seconds": round(take.audio_s, 3),
        "audio": None,
    }


def stored_json(take: StoredTake, library: Library) -> dict[str, object]:
    """A take of the library as lists show it; ``audio`` is None where there is none or its file is gone. Blocking."""
    timings, audio = dict(take.timings), _audio_json(take, library)
    figures = Take(
        id=take.id,
        state=take.state,  # type: ignore[arg-type]  # as it was written
        voice=take.label,
        seed=take.seed,
        created=take.created,
        finish_reason=take.finish_reason,
        frames=take.frames,
        error=take.error,
    )
    figures = replace(
        figures,
        queue_ms=timings.get("queue_ms"),
        first_audio_ms=timings.get("first_audio_ms"),
        generation_s=timings.get("generation_s"),
        audio_s=timings.get("audio_s") or take.seconds,
        turns=tuple(TurnTime(**turn) for turn in timings.get("turns", ())),
        resumed_at=timings.get("resumed_at"),
        continues=timings.get("continues"),
        mends=timings.get("mends"),
        can_continue=bool(timings.get("can_continue")) and audio is not None,
    )
    return figures.as_json() | {
        "stored": True,
        "starred": take.starred,
        "voice_id": take.voice_id,
        "voice_revision": take.revision,
        "excerpt": take.text[:EXCERPT] + ("…" if len(take.text) > EXCERPT else ""),
        "seconds": round(take.seconds, 3),
        "audio": audio,
    }


def whole_json(take: StoredTake, library: Library) -> dict[str, object]:
    """All that is known; ``request`` says it again, and is None where a clip was spoken with, which is not kept."""
    return stored_json(take, library) | {
        "text": take.text,
        "parameters": take.parameters,
        "request": request_again(take, library),
    }


def request_again(take: StoredTake, library: Library) -> dict[str, object] | None:
    """The body of a request that says it again; None where a clip was spoken with. Blocking.

    In the words that were read, if they fit into a request: another version may read a number otherwise.
    """
    wanted = {name: value for name, value in take.parameters.items() if value is not None}
    read = wanted.pop("read_as", take.text)
    for asked in ("normalize", "dictionary"):  # what came of them is what was read
        wanted.pop(asked, None)
    is_short = len(read) <= MAX_INPUT
    wanted.pop("voice_ids", None)
    if "cast" in wanted:
        wanted["cast"] = {name: address_now(take, each, library) for name, each in wanted["cast"].items()}
    else:
        wanted["voice"] = take.voice
    if "voice" in wanted:
        wanted["voice"] = address_now(take, wanted["voice"], library)
    if wanted.get("voice") == OWN_CLIP:
        return None
    return {
        "input": read if is_short else take.text,
        "normalize": not is_short,
        "dictionary": not is_short,
        "seed": take.seed,
    } | wanted


def _audio_json(take: StoredTake, library: Library) -> dict[str, object] | None:
    if take.audio is None or not library.files.path(take.audio).exists():
        return None
    return {
        "media_type": take.media_type,
        "sample_rate": take.sample_rate,
        "size": take.size,
        "sha256": take.audio,
    }


def address_now(take: StoredTake, address: str, library: Library) -> str:
    """Of the revision that spoke, under the name that the voice has today; ``address`` is one of the take's.

    Of a voice that is gone it has the id, which finds nothing: by now the name may be another voice's.
    """
    voice_id = take.parameters.get("voice_ids", {}).get(address, take.voice_id)
    name, _, revision = address.rpartition("@")
    if voice_id is None or not name:
        return address
    try:
        name = library.voices.get(voice_id).slug
    except NotFound:
        name = voice_id
    return f"{name}@{revision}"

"""Takes as JSON for the API and the page: in lists, and in detail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from speechtext.word_times import Timed
from studio.errors import NotFound
from studio.library import Library
from studio.library.records import OWN_CLIP
from studio.library.take import Take, TakeKind
from studio.speech.request import MAX_INPUT
from studio.speech.word_times import Unit, as_json

EXCERPT = 280
"""Characters of the text shown in lists."""


def listed_json(take: Take, library: Library | None) -> dict[str, object]:
    """A take as shown in lists; ``audio`` is None without audio, or if its file is gone. Blocking.

    ``library``: where the take is stored; None for an unstored take, whose audio is in memory.
    """
    audio = _audio_json(take, library)
    return replace(take, can_continue=take.can_continue and audio is not None).as_json() | {
        "stored": library is not None,
        "starred": take.starred,
        "voice_id": take.voice_id,
        "voice_revision": take.revision,
        "excerpt": _excerpt(take),
        "seconds": round(take.seconds, 3),
        "audio": audio,
    }


def whole_json(take: Take, library: Library, is_stored: bool = True) -> dict[str, object]:
    """All details; ``request`` generates the take again, and is None if that needs a clip, which is not stored."""
    return listed_json(take, library if is_stored else None) | {
        "text": take.text,
        "parameters": take.parameters,
        "request": request_again(take, library),
    }


def removal_json(kind: TakeKind, take: Take) -> dict[str, object]:
    """A take that the retention removes next."""
    return {"kind": kind, "id": take.id, "created": int(take.created), "excerpt": _excerpt(take)}


def timestamps_json(kind: str, take: Take, unit: Unit, times: Sequence[Timed]) -> dict[str, object]:
    """The times of a take's words or sentences."""
    return {"object": kind, "id": take.id, "text": take.text, "of": unit, "timestamps": as_json(times)}


def request_again(take: Take, library: Library) -> dict[str, object] | None:
    """The body of a request that generates the take again; None if it used an uploaded clip. Blocking.

    Contains the text as it was read, if that fits into a request: another version may read numbers differently.
    """
    request = {name: value for name, value in take.parameters.items() if value is not None}
    text = request.pop("read_as", take.text)
    for field in ("normalize", "dictionary", "voice_ids"):  # the effect of the first two is already in the text
        request.pop(field, None)
    fits = len(text) <= MAX_INPUT
    if "cast" in request:
        request["cast"] = {name: current_address(take, voice, library) for name, voice in request["cast"].items()}
    else:
        request["voice"] = take.voice
    if "voice" in request:
        request["voice"] = current_address(take, request["voice"], library)
    if request.get("voice") == OWN_CLIP:
        return None
    spoken = {"input": text if fits else take.text, "normalize": not fits, "dictionary": not fits}
    return spoken | {"seed": take.seed} | request


def _excerpt(take: Take) -> str:
    return take.text[:EXCERPT] + ("…" if len(take.text) > EXCERPT else "")


def _audio_json(take: Take, library: Library | None) -> dict[str, object] | None:
    if not take.audio or (library and not library.files.path(take.audio).exists()):
        return None
    facts = {"media_type": take.media_type, "sample_rate": take.sample_rate, "size": take.size}
    return facts | {"sha256": take.audio}


def current_address(take: Take, address: str, library: Library) -> str:
    """The voice in the revision that was used, under its present name; ``address`` is the take's own reference.

    A deleted voice is named by its id, which finds nothing: another voice may have its name now.
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

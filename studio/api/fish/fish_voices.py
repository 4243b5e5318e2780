"""Voices in Fish Audio's form, and new voices from clips, which are cut, cleaned and transcribed if necessary."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from studio.api.fish_names import fish_id
from studio.audio.read import MAX_SECONDS
from studio.errors import InvalidClip, InvalidRequest, NameTaken
from studio.library import Cut, Library, NewSample, Voice, VoiceFields
from studio.library.checks import MAX_SAMPLES
from studio.library.client_files import Upload
from studio.library.voices.names import MAX_NAME, RESERVED, fold
from studio.voices.clip_service import ClipService

_REFUSED = re.compile(r"[/\\@\x00-\x1f]+")
"""Characters that titles may contain, but voice names may not."""
_TOO_LONG = (
    f"a recording lasts more than {MAX_SECONDS:g} s; only a part of it can be used, and no recogniser is installed to "
    f"transcribe that part: send at most {MAX_SECONDS:g} s"
)
_NO_WORDS = "texts is missing: this model needs the words of each recording, and no recogniser is installed"
MAX_SAME = 1000
"""Voices with the same title, numbered from the second on."""


def fish_voice(voice: Voice, author: str, studio: str) -> dict[str, Any]:
    """The voice object of Fish Audio's API, with all fields that clients need. ``studio``: address of the studio."""
    return {
        "_id": fish_id(voice.id),
        "type": "tts",
        "title": voice.name,
        "description": voice.description,
        "cover_image": "",
        "train_mode": "fast",
        "state": "trained",
        "tags": list(voice.tags),
        "samples": [
            {
                "title": voice.name,
                "text": sample.text,
                "task_id": sample.id,
                "audio": f"{studio}/v1/voices/{voice.id}/samples/{sample.id}/audio",
            }
            for sample in voice.samples
        ],
        "created_at": _time(voice.created),
        "updated_at": _time(voice.changed),
        "languages": [voice.language.partition("-")[0]] if voice.language else [],
        "visibility": "public" if voice.bundled else "private",
        "lock_visibility": False,
        "like_count": 0,
        "mark_count": 0,
        "shared_count": 0,
        "task_count": 0,
        "unliked": False,
        "liked": voice.favourite,
        "marked": voice.favourite,
        "author": {"_id": author, "nickname": "Fish Voice Studio", "avatar": ""},
    }


def _time(unix: float) -> str:
    return datetime.fromtimestamp(unix, UTC).isoformat()


@dataclass(frozen=True, slots=True)
class FishVoices:
    """Creates voices from requests of Fish Audio's clients."""

    library: Library
    clips: ClipService

    async def samples(self, files: list[Upload], texts: list[str], is_cleaned: bool, caller: str) -> list[NewSample]:
        """The samples of a new voice: its recordings with their transcripts.

        Raises InvalidRequest and the errors of the clip service.
        """
        if not files:
            raise InvalidRequest("voices is missing: send at least one recording", "voices")
        if len(files) > MAX_SAMPLES:
            raise InvalidRequest(f"there are {len(files)} recordings; at most {MAX_SAMPLES} are allowed", "voices")
        pairs = zip(files, match_texts(texts, len(files)), strict=True)
        is_cleaned = is_cleaned and self.clips.denoiser.is_there
        return [await self._sample(file.data, text, is_cleaned, caller) for file, text in pairs]

    async def _sample(self, data: bytes, text: str, is_cleaned: bool, caller: str) -> NewSample:
        intake = await self.clips.suggest(caller, data, text, Cut(), "voices")
        cut = intake.cut
        is_heard = cut != Cut() or not text.strip()
        if is_heard:
            missing = InvalidClip(_TOO_LONG, "voices") if text.strip() else InvalidRequest(_NO_WORDS, "texts")
            text = await self.clips.words(caller, intake.clip, "texts", missing)
        if is_cleaned:
            data, cut = await self.clips.clean(caller, intake.clip), Cut()
        if is_heard or is_cleaned:
            intake = await self.clips.judge(caller, data, text, cut, "voices")
        return intake.sample(text)

    def create(
        self, owner: str, title: str, description: str, tags: tuple[str, ...], samples: list[NewSample]
    ) -> Voice:
        """Create a voice; a second one with the same title is named "title 2". Blocking.

        Raises InvalidRequest, NameTaken.
        """
        voices = self.library.seen_by(owner).voices
        for name in candidate_names(title):
            if not voices.exists(name):
                try:
                    return voices.create(VoiceFields(name=name, description=description, tags=tags), samples)
                except NameTaken:  # by a concurrent request
                    continue
        raise NameTaken(f"there are already {MAX_SAME} voices with this title", "title")


def candidate_names(title: str) -> list[str]:
    """Possible names of a voice with this title, best first. Raises InvalidRequest for a blank title."""
    name = " ".join(_REFUSED.sub(" ", title).split())[: MAX_NAME - 5]
    if not name:
        raise InvalidRequest("title is missing or blank", "title")
    first = [] if fold(name) in RESERVED else [name]
    return [*first, *(f"{name} {number}" for number in range(2, MAX_SAME + 1))]


def match_texts(texts: list[str], files: int) -> list[str]:
    """The transcript of each file: one text for each file, or one text for all, separated by commas; blank: not sent.

    A single file gets the whole text, including commas. Raises InvalidRequest.
    """
    if not texts:
        return [""] * files
    if len(texts) == files:
        return texts
    parts = [part.strip() for part in texts[0].split(",")]
    if len(texts) == 1 and len(parts) == files:
        return parts
    raise InvalidRequest(f"there are {files} recordings and {len(texts)} texts; send one text for each", "texts")


def split_tags(texts: list[str]) -> tuple[str, ...]:
    """Tags from texts that each contain one or more, separated by commas."""
    return tuple(tag.strip() for text in texts for tag in text.split(",") if tag.strip())


def title_matches(voice: Voice, title: str) -> bool:
    """Whether a voice's name contains this title, ignoring case."""
    return fold(title) in fold(voice.name)


def all_voices(library: Library, **filters: Any) -> list[Voice]:
    """All voices that match the filters, in the order of the library's pages. Blocking."""
    voices: list[Voice] = []
    while page := library.voices.page(after=voices[-1].id if voices else None, **filters):
        voices += page
    return voices

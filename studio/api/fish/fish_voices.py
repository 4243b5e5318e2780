"""Voices in Fish Audio's form, and a new one from its clips: cut, cleaned and written down where that is needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
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
"""What names of voices cannot have, and titles can."""
_TOO_LONG = (
    f"a recording lasts more than {MAX_SECONDS:g} s, of which only a part can be used, and there is no recogniser here "
    f"to tell which words that part has: send at most {MAX_SECONDS:g} s"
)
_NO_WORDS = "texts is missing: this model needs the words of each recording, and there is no recogniser here"
MAX_SAME = 1000
"""Voices of one title, numbered from the second on."""


def fish_voice(voice: Voice, author: str, studio: str) -> dict[str, Any]:
    """The voice object of Fish Audio's API; every field that its strictest client needs. ``studio``: its address."""
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
    """Makes voices of what Fish Audio's clients send."""

    library: Library
    clips: ClipService

    async def samples(self, files: list[Upload], texts: list[str], is_cleaned: bool, caller: str) -> list[NewSample]:
        """The samples of a new voice: its recordings, each with its words.

        Raises InvalidRequest, and what the clip service does.
        """
        if not files:
            raise InvalidRequest("voices is missing: send at least one recording", "voices")
        if len(files) > MAX_SAMPLES:
            raise InvalidRequest(f"there are {len(files)} recordings; at most {MAX_SAMPLES} are allowed", "voices")
        words = words_of(texts, len(files))
        is_cleaned = is_cleaned and self.clips.denoiser.is_there
        return [
            await self._sample(file.data, text, is_cleaned, caller) for file, text in zip(files, words, strict=True)
        ]

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

    def create(self, title: str, description: str, tags: tuple[str, ...], samples: list[NewSample]) -> Voice:
        """A voice of this title; the second of one title is called "title 2". Blocking.

        Raises InvalidRequest, NameTaken.
        """
        for name in names_for(title):
            if not self.library.voices.exists(name):
                try:
                    return self.library.voices.create(
                        VoiceFields(name=name, description=description, tags=tags), samples
                    )
                except NameTaken:  # by another caller, meanwhile
                    continue
        raise NameTaken(f"there are {MAX_SAME} voices of this title", "title")


def names_for(title: str) -> list[str]:
    """Names that a voice of this title may have, the best one first. Raises InvalidRequest for a blank title."""
    name = " ".join(_REFUSED.sub(" ", title).split())[: MAX_NAME - 5]
    if not name:
        raise InvalidRequest("title is missing or blank", "title")
    first = [] if fold(name) in RESERVED else [name]
    return [*first, *(f"{name} {number}" for number in range(2, MAX_SAME + 1))]


def words_of(texts: list[str], files: int) -> list[str]:
    """The words of each file: as many texts as files, or one with them all, separated by commas; blank: not sent.

    One file has the whole text, commas too. Raises InvalidRequest.
    """
    if not texts:
        return [""] * files
    if len(texts) == files:
        return texts
    parts = [part.strip() for part in texts[0].split(",")]
    if len(texts) == 1 and len(parts) == files:
        return parts
    raise InvalidRequest(f"there are {files} recordings and {len(texts)} texts; send one text for each", "texts")


def tags_of(texts: list[str]) -> tuple[str, ...]:
    """Tags that come one by one, or several in a text, separated by commas."""
    return tuple(tag.strip() for text in texts for tag in text.split(",") if tag.strip())


def is_titled(voice: Voice, title: str) -> bool:
    """Whether a voice's name has this in it, in any case."""
    return fold(title) in fold(voice.name)


def all_voices(library: Library, **wanted: Any) -> list[Voice]:
    """Every voice that has what is asked for, in the order of the library's pages. Blocking."""
    voices: list[Voice] = []
    find = partial(library.voices.page, **wanted)
    while page := find(after=voices[-1].id if voices else None):
        voices += page
    return voices

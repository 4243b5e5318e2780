"""The voices that come with the studio: a folder of NAME.wav and NAME.txt, put into the library once each."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

from studio.errors import InvalidRequest, NameTaken
from studio.intake import take_in
from studio.library import Library, VoiceDraft

log = logging.getLogger(__name__)

EVENT = "voice.bundled"


def import_bundled(library: Library, folder: Path) -> None:
    """Put in those voices of the folder that have never been there. Blocking.

    One that somebody has deleted stays deleted, and one that shares its name with a voice of the library's
    owner is left out. A clip without words, or words without a clip, is none.
    """
    known = {entry.details.get("source") for entry in library.audit.entries(event=EVENT)}
    for clip in sorted(folder.glob("*.wav")):
        words = clip.with_suffix(".txt")
        if not words.is_file():
            continue
        text, data = words.read_text("utf-8").strip(), clip.read_bytes()
        source = hashlib.sha256(text.encode() + b"\0" + data).hexdigest()
        if source in known:
            continue
        draft = VoiceDraft(clip.stem.replace("_", " ").replace("-", " ").title(), bundled=True)
        try:
            library.voices.create(draft, [take_in(data, text).sample(text)], EVENT, source=source)
        except NameTaken:
            continue
        except InvalidRequest as refusal:
            log.warning("the bundled voice %s cannot be used: %s", clip.name, refusal)

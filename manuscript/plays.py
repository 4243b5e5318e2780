"""Brings the names of speakers in plays into one form: in capitals, with a full stop, above or before their words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from manuscript.passages import Passage

LEAST_LINES = 6
"""Lines of speakers with two lines or more from which a text is a play: headings in capitals hardly ever recur."""
_WORDS = 4  # of a name
_ALONE = re.compile(r"(?!(?:ACT|SCENE|CHAPTER|PART|THE END|CURTAIN|[CDILMVX]+)\b)[^\W\d_][\w '’.-]{1,39}?[.:]?")
_ITALIC = re.compile(r"([_*]{1,2})(?=[^\W\d_])([A-Z][\w '’.-]{1,39}?)(?:\.\1|\1\.)[ \t]+(?=\S)")


def with_names_above(passages: Sequence[Passage]) -> Sequence[Passage]:
    """Join names that are paragraphs of their own with the words below them."""
    names = [_name(passage) for passage in passages]
    speakers = _speakers(name for name in names if name)
    if not speakers:
        return passages
    joined: list[Passage] = []
    pending: Passage | None = None
    for passage, name in zip(passages, names, strict=True):
        if name in speakers and pending is None:
            pending = replace(passage, text=f"{name}.", chapter="", is_title=False)
        elif pending is not None and not passage.chapter and name not in speakers:
            joined.append(replace(passage, text=f"{pending.text}\n{passage.text}"))
            pending = None
        else:
            joined += [each for each in (pending, passage) if each is not None]
            pending = None
    return [*joined, *([pending] if pending else [])]


def with_italic_names(paragraphs: Sequence[str]) -> Sequence[str]:
    """Write the names in italics with which paragraphs begin in capitals: "_Filch._ Sir" as "FILCH. Sir"."""
    names = [name if (name := _ITALIC.match(text)) and len(name[2].split()) <= _WORDS else None for text in paragraphs]
    speakers = _speakers(name[2] for name in names if name)
    return [
        f"{name[2].upper().replace('.', '')}. {text[name.end() :]}" if name and name[2] in speakers else text
        for text, name in zip(paragraphs, names, strict=True)
    ]


def _name(passage: Passage) -> str:
    """The name that a paragraph consists of, even if it looks like the title below a heading; blank if it does not."""
    text = passage.text.strip()
    is_name = (
        passage.chapter in ("", passage.text)
        and text.isupper()
        and len(text.split()) <= _WORDS
        and _ALONE.fullmatch(text)
    )
    return text.replace(".", "").rstrip(":") if is_name else ""


def _speakers(names: Iterable[str]) -> set[str]:
    """The names of a play that occur twice or more; none if there are too few of their lines."""
    counts = Counter(names)
    speakers = {name for name, count in counts.items() if count > 1}
    return speakers if sum(counts[name] for name in speakers) >= LEAST_LINES else set()

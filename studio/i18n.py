"""What the page says, in every language that it has: a file of assets/page/words each, by key."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from starlette.requests import HTTPConnection

from studio.paths import ASSETS

Phrase = str | dict[str, str]
"""Words, with {names} where something is put in; where they depend on a count, by the plural forms of Intl."""

ENGLISH = "en"
COOKIE = "studio_language"
"""Set by the page where somebody chose a language in Settings."""

WORDS = ASSETS / "page" / "words"

_MARKED = re.compile(rb"\{\{([\w.-]+)\}\}")


def marked(key: str) -> str:
    """Stands for a phrase in markup and in Gradio's fields, until the page is sent in somebody's language."""
    return f"{{{{{key}}}}}"


@dataclass(frozen=True)
class Phrases:
    """``said``: by language and key; each language has every key."""

    said: dict[str, dict[str, Phrase]]

    @classmethod
    def read(cls, folder: Path) -> Phrases:
        """What a language lacks is said in English there. Raises OSError, and ValueError for malformed JSON."""
        texts = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
        return cls({language: texts[ENGLISH] | said for language, said in texts.items()})

    def language_of(self, wishes: str, chosen: str = "") -> str:
        """The language to speak to somebody. wishes: an Accept-Language header; chosen: in Settings."""
        if chosen in self.said:
            return chosen
        weighed = [(_weight(wish), wish.partition(";")[0].strip().lower()) for wish in wishes.split(",")]
        for weight, wish in sorted(weighed, key=lambda pair: -pair[0]):
            language = self._by_tag.get(wish) or self._by_tag.get(wish.partition("-")[0])
            if language and weight > 0:
                return language
        return ENGLISH

    @cached_property
    def _by_tag(self) -> dict[str, str]:
        """Languages by their tags in lower case, with and without their region: zh too is zh-CN."""
        short = {language.partition("-")[0].lower(): language for language in self.said}
        return short | {language.lower(): language for language in self.said}

    def language_for(self, reader: HTTPConnection) -> str:
        """The language that somebody's browser asks for, or that they chose."""
        return self.language_of(reader.headers.get("accept-language", ""), reader.cookies.get(COOKIE, ""))

    def in_each(self, markup: str) -> dict[str, str]:
        """A page without scripts in every language; {{language}} in it is the language's own tag."""

        def filled(said: dict[str, Phrase], language: str) -> str:
            known = {key: phrase for key, phrase in said.items() if isinstance(phrase, str)} | {"language": language}
            return re.sub(_MARKED.pattern.decode(), lambda match: known.get(match[1], match[0]), markup)

        return {language: filled(said, language) for language, said in self.said.items()}

    def fill(self, page: bytes, language: str, **more: str) -> bytes:
        """Put the phrases into a page of Gradio's, whose JSON may stand in markup. ``more``: further keys."""
        said = self.said[language] | more

        def filled(match: re.Match[bytes]) -> bytes:
            phrase = said.get(match[1].decode())
            return _in_json(phrase).encode() if isinstance(phrase, str) else match[0]

        return _MARKED.sub(filled, page)


@cache
def page_phrases() -> Phrases:
    """Those of this studio's page, read once."""
    return Phrases.read(WORDS)


def _weight(wish: str) -> float:
    match = re.search(r";\s*q=([^;]*)", wish)
    try:
        return float(match[1]) if match else 1.0
    except ValueError:
        return 0.0


def _in_json(words: str) -> str:
    """As part of a JSON string inside a script element."""
    text = json.dumps(words, ensure_ascii=False)[1:-1]
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("'", "\\u0027")

"""The page's phrases by language and key, from one file per language in assets/page/words."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from starlette.requests import HTTPConnection

from studio import ASSETS

Phrase = str | dict[str, str]
"""Text with {names} as placeholders; a phrase that depends on a count has one text for each plural form of Intl."""

ENGLISH = "en"
COOKIE = "studio_language"
"""Set by the page when a language is chosen in Settings."""

WORDS = ASSETS / "page" / "words"

_MARKED = re.compile(r"\{\{([\w.-]+)\}\}")
_MARKED_IN_BYTES = re.compile(_MARKED.pattern.encode())


def marked(key: str) -> str:
    """Placeholder for a phrase in markup and Gradio fields, replaced when the page is sent."""
    return f"{{{{{key}}}}}"


@dataclass(frozen=True)
class Phrases:
    """``texts``: phrases by language and key; each language has every key."""

    texts: dict[str, dict[str, Phrase]]

    @classmethod
    def read(cls, folder: Path) -> Phrases:
        """Missing phrases of a language are in English. Raises OSError; ValueError for malformed JSON."""
        texts = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
        return cls({language: texts[ENGLISH] | phrases for language, phrases in texts.items()})

    def language_of(self, accept_language: str, chosen: str = "") -> str:
        """The language to use. ``accept_language``: the header; ``chosen``: the language chosen in Settings."""
        if chosen in self.texts:
            return chosen
        weighted = [(_weight(tag), tag.partition(";")[0].strip().lower()) for tag in accept_language.split(",")]
        for weight, tag in sorted(weighted, key=lambda pair: -pair[0]):
            language = self._by_tag.get(tag) or self._by_tag.get(tag.partition("-")[0])
            if language and weight > 0:
                return language
        return ENGLISH

    @cached_property
    def _by_tag(self) -> dict[str, str]:
        """Languages by lower-case tag, with and without region: zh means zh-CN."""
        short = {language.partition("-")[0].lower(): language for language in self.texts}
        return short | {language.lower(): language for language in self.texts}

    def language_for(self, reader: HTTPConnection) -> str:
        """The language that the reader chose, or that the browser requests."""
        return self.language_of(reader.headers.get("accept-language", ""), reader.cookies.get(COOKIE, ""))

    def translations(self, markup: str) -> dict[str, str]:
        """Markup without scripts, in every language; {{language}} becomes the language's tag."""

        def filled(phrases: dict[str, Phrase], language: str) -> str:
            texts = phrases | {"language": language}
            return _MARKED.sub(lambda mark: text if isinstance(text := texts.get(mark[1]), str) else mark[0], markup)

        return {language: filled(phrases, language) for language, phrases in self.texts.items()}

    def fill(self, page: bytes, language: str, **more: str) -> bytes:
        """Put the phrases into a page of Gradio's, which has JSON within its markup. ``more``: additional keys."""
        phrases = self.texts[language] | more

        def filled(match: re.Match[bytes]) -> bytes:
            phrase = phrases.get(match[1].decode())
            return _in_json(phrase).encode() if isinstance(phrase, str) else match[0]

        return _MARKED_IN_BYTES.sub(filled, page)


@cache
def page_phrases() -> Phrases:
    """The phrases of this studio's page, read once."""
    return Phrases.read(WORDS)


def _weight(entry: str) -> float:
    match = re.search(r";\s*q=([^;]*)", entry)
    try:
        return float(match[1]) if match else 1.0
    except ValueError:
        return 0.0


def _in_json(words: str) -> str:
    """Escape text for a JSON string inside a script element."""
    text = json.dumps(words, ensure_ascii=False)[1:-1]
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("'", "\\u0027")

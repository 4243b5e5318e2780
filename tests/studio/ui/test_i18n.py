"""The page's phrases: each language complete and in order, every phrase used, and the browser's preferred language."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

from studio import ROOT
from studio.i18n import Phrases
from studio.settings import Settings
from studio.ui.page import AREAS
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve

PAGE = ROOT / "assets" / "page"
FILES = {path.stem: json.loads(path.read_text("utf-8")) for path in (PAGE / "words").glob("*.json")}
ENGLISH = FILES["en"]
MARK = re.compile(r"\{\{([\w.-]+)\}\}")


def forms(phrase: str | dict[str, str]) -> list[str]:
    return [phrase] if isinstance(phrase, str) else list(phrase.values())


def shape(phrase: str | dict[str, str]) -> tuple[set[str], list[str]]:
    """The {names} to insert, and the markup."""
    plurals = forms(phrase)
    return {name for form in plurals for name in re.findall(r"\{(\w+)\}", form)}, sorted(
        re.findall(r"<[^>]+>", plurals[-1])
    )


def used() -> tuple[set[str], list[str]]:
    """Keys in markup and in Gradio's fields, and patterns of those in the scripts, where ${…} may be anything."""
    markup = "".join(path.read_text("utf-8") for path in PAGE.rglob("*.html"))
    fields = (ROOT / "studio" / "ui" / "page.py").read_text("utf-8")
    keys = re.findall(r'marked\("([\w.-]+)"\)', fields)
    explained = re.findall(r'(?:_slider|_label_and_info)\("([\w.-]+)"', fields)
    marked = {*MARK.findall(markup), *keys, *explained, *(f"{key}.info" for key in explained)}
    sources = [*PAGE.rglob("*.js"), *(ROOT / "studio").rglob("*.py")]
    scripts = "".join(path.read_text("utf-8") for path in sources)
    whole = re.findall(r'"([a-z]\w*\.[\w.-]+)"', scripts)
    templates = [
        re.split(r"\$\{[^}]*\}", template) for template in re.findall(r"`([a-z]\w*\.[^`\s]*\$\{[^`]*)`", scripts)
    ]
    return marked, [re.escape(key) for key in whole] + [r"[\w.-]*".join(map(re.escape, parts)) for parts in templates]


@pytest.mark.parametrize("language", sorted(FILES.keys() - {"en"}))
def test_languages_have_all_phrases_of_english(language: str) -> None:
    phrases = FILES[language]
    assert list(phrases) == list(ENGLISH)  # in the same order too: they are compared side by side
    assert [key for key in ENGLISH if shape(phrases[key]) != shape(ENGLISH[key])] == []
    assert [key for key in ENGLISH if not all(form.strip() for form in forms(phrases[key]))] == []


def test_every_phrase_is_used_and_every_placeholder_has_one() -> None:
    marked, patterns = used()
    pattern = re.compile("|".join(patterns))
    assert marked - ENGLISH.keys() - {"script", "language"} == set()
    assert [key for key in ENGLISH if key not in marked and not pattern.fullmatch(key)] == []


def test_markup_phrases_need_no_escaping_and_have_no_plural() -> None:
    """Phrases also fit into attributes, and those inserted by the server have no plural."""
    marked, _ = used()
    for phrases in FILES.values():
        assert [key for key in phrases if any('"' in form or "&" in form for form in forms(phrases[key]))] == []
        assert [key for key in marked & phrases.keys() if not isinstance(phrases[key], str)] == []


@pytest.mark.parametrize(
    ("wishes", "chosen", "language"),
    [
        ("de-AT,de;q=0.9,en;q=0.8", "", "de"),
        ("fr,ja;q=0.5,de;q=0.7", "", "de"),
        ("zh-Hans-CN", "", "zh-CN"),
        ("zh", "", "zh-CN"),
        ("ja;q=0,de;q=x,*", "", "en"),
        ("", "", "en"),
        ("de", "ja", "ja"),
        ("de", "../x", "de"),
    ],
)
def test_language_is_the_most_preferred_available_one(wishes: str, chosen: str, language: str) -> None:
    assert Phrases.read(PAGE / "words").language_of(wishes, chosen) == language


def test_a_phrase_is_inserted_unchanged_in_any_context() -> None:
    phrases = Phrases({"en": {"a.b": "It's <b>5</b> & \\ more", "a.many": {"other": "x"}}})
    filled = phrases.fill(b'{"html": "<p>{{a.b}}</p> {{a.many}} {{a.c}} {{s}}"}', "en", s="/page.js")
    assert b"<b>" not in filled and b"'" not in filled
    assert json.loads(filled)["html"] == "<p>It's <b>5</b> & \\ more</p> {{a.many}} {{a.c}} /page.js"


def test_page_is_served_in_the_language_of_its_reader(tmp_path: Path) -> None:
    settings = Settings(model=str(tmp_path), home=str(tmp_path / "home"))
    with serve(settings, FakeEngine.start, page=True) as studio, studio.client() as client:
        for headers, language in (
            ({"Accept-Language": "de-CH"}, "de"),
            ({"Cookie": "studio_language=ja"}, "ja"),
            ({}, "en"),
        ):
            answer = client.get("/", headers=headers)
            phrases = FILES[language]
            assert f'<html lang="{language}"' in re.sub(r"\s+", " ", answer.text)
            assert set(MARK.findall(answer.text)) == set()
            assert phrases["speak.script"] in answer.text
            assert (
                unescape(re.findall('name="description" content="(.*?)"', answer.text)[0])
                == phrases["shell.description"]
            )
            assert {"Accept-Language", "Cookie"} <= {header.strip() for header in answer.headers["vary"].split(",")}
            script = re.findall(r'(/page/\w+/page[\w.-]*\.js)\\?"', answer.text)[0]
            assert phrases["player.speaking"] in client.get(script).text
            assert MARK.findall(client.get("/config", headers=headers).text) == []
    assert all(f"area-{area}" in answer.text for area in AREAS)


def test_every_language_can_be_chosen_in_settings() -> None:
    markup = (PAGE / "settings" / "settings.html").read_text("utf-8")
    assert set(re.findall(r'<option value="([\w-]+)" lang="\1"', markup)) == FILES.keys()

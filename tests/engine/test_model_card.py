"""A checkpoint's model card: stated values are read, missing ones get defaults, invalid ones are refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine import CheckpointError, ModelCard

ROOT = Path(__file__).resolve().parents[2]


def test_checkpoint_without_a_card_has_no_requirements(tmp_path: Path) -> None:
    assert ModelCard.read(tmp_path) == ModelCard()
    assert not ModelCard().normalize and not ModelCard().demo


def test_unknown_fields_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(json.dumps({"normalize": True, "colour": "blue"}))
    assert ModelCard.read(tmp_path).normalize


def test_demo_flag_is_read_from_the_card(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(json.dumps({"demo": True}))
    assert ModelCard.read(tmp_path) == ModelCard(demo=True)


@pytest.mark.parametrize("wrong", ["yes", 1, None, {}])
def test_an_invalid_flag_is_refused_with_its_field_and_values(tmp_path: Path, wrong: object) -> None:
    (tmp_path / "card.json").write_text(json.dumps({"demo": wrong}))
    with pytest.raises(CheckpointError, match=r"card\.json: demo must be true or false, not "):
        ModelCard.read(tmp_path)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"normalize": "yes"}', '{"normalize": 1}', '{"tags": "whisper"}', '{"languages": [1]}']
)
def test_unreadable_card_is_refused_with_its_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "card.json").write_text(text)
    with pytest.raises(CheckpointError, match=r"card\.json"):
        ModelCard.read(tmp_path)


@pytest.mark.parametrize(
    ("header", "licence", "languages"),
    [
        ("license: apache-2.0\nlanguage:\n- en\n- zh\ntags:\n- tts", "apache-2.0", ("en", "zh")),
        ('license: other\nlicense_name: "fish-audio"\nlanguage: [ja, multilingual, "de"]', "fish-audio", ("ja", "de")),
        ("pipeline_tag: text-to-speech", "", ()),
    ],
)
def test_the_header_of_a_readme_gives_licence_and_languages(
    tmp_path: Path, header: str, licence: str, languages: tuple[str, ...]
) -> None:
    (tmp_path / "README.md").write_text(f"---\n{header}\n---\nlicense: none\nlanguage: xx\n")
    assert ModelCard.read(tmp_path) == ModelCard(licence=licence, languages=languages)
    (tmp_path / "card.json").write_text(json.dumps({"languages": ["fr"]}))
    assert ModelCard.read(tmp_path) == ModelCard(licence=licence, languages=("fr",))
    (tmp_path / "README.md").write_text("license: apache-2.0")
    assert ModelCard.read(tmp_path).licence == ""


def test_the_bundled_models_card_lists_its_languages_and_tags() -> None:
    card = ModelCard.read(ROOT / "assets/fry")
    assert card.normalize and card.demo and card.languages == ("en",)
    assert card.tags is not None and "whisper" in card.tags

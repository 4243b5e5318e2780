"""Figures of annotated novels: read in the corpus' published layout, laid on the import, counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks import casting
from longform.chat_endpoint import ChatEndpoint
from manuscript import Document, NewCharacter, Passage
from tests.longform.fake_chat import serving

CORPUS = Path(__file__).with_name("casting")


FLOORS = {  # speakers and voices right: about two points below the figures of docs/benchmarks.md
    "chinese": (85, 82),
    "english": (80, 80),
    "french": (90, 84),
    "german": (76, 73),
    "spanish": (92, 89),
}


def test_each_language_keeps_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    casting.main([str(CORPUS)])
    lines = capsys.readouterr().out.splitlines()
    header = next(line for line in lines if line.startswith("novel | ")).split(" | ")
    rows = [dict(zip(header, line.split(" | "), strict=True)) for line in lines if line.startswith("all of ")]
    assert [row["novel"] for row in rows] == [f"all of {language}" for language in FLOORS]
    for row, (speaker, voice) in zip(rows, FLOORS.values(), strict=True):
        assert float(row["found"].split()[0]) >= 99, row
        assert float(row["speaker"].split()[0]) >= speaker, row
        assert float(row["voice"].split()[0]) >= voice, row


def test_chat_endpoint_is_asked_about_the_open_lines_only() -> None:
    novel = casting.read_novel(CORPUS / "german" / "Kessin")
    speakers = {novel.text[start:end]: each.speaker for each in novel.quotations for start, end in each.spans}

    def answer(content: Any) -> object:
        asked = [line for line in content["scene"] if "n" in line]
        assert asked and all("speaker" not in line for line in asked)
        found = {line["n"]: speakers.get(line["text"].partition("«")[0] + "«", "") for line in asked}
        return {"lines": [{"n": number, "speaker": name, "tags": []} for number, name in found.items()]}

    with serving() as (fake, url):
        fake.answer = answer
        before, after = casting.measure(novel, ChatEndpoint(url, "tiny"))
    assert fake.requests and fake.requests[0]["model"] == "tiny"
    assert "tiny" in after.novel and "lines answered" in after.novel
    assert before.right < after.right
    assert after.right - after.sure_right >= after.quotations - after.sure - 2  # Friedrich is not in the cast


def test_folder_without_novels_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        casting.main([str(tmp_path)])
    assert "quotation_info.csv" in capsys.readouterr().err


def test_a_decision_counts_one_key_and_decides_its_scene_again() -> None:
    texts = ["“Where is it?”", "“Here.”", "“Are you sure?”", "“No.”", "“Oh.”"]
    passages = tuple(Passage(text, speaker="", confidence=0.3, continues=False) for text in texts)
    cast = (NewCharacter("Anna", gender="female"), NewCharacter("Ben", gender="male"))
    people = ["Anna", "Ben", "Anna", "Ben", "Anna"]
    lines: list[tuple[int | None, str]] = list(enumerate(people))
    names = {"Anna": "Anna", "Ben": "Ben"}
    assert casting.keys_until_right(Document(passages, True, cast=cast), lines, names, names) in (2, 3)

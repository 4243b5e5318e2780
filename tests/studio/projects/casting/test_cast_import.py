"""A novel's characters over HTTP: listed with voices, and heard in them."""

from __future__ import annotations

from typing import Any

from studio.projects.casting.cast import proposed_voices
from studio.projects.casting.characters import Character
from tests.studio.answers import assert_envelope
from tests.studio.projects.test_projects import PROJECTS, parts_of

NOVEL = (
    "“Come in,” said Eleanor. “She is waiting.”\n\n"
    "Mr Thornton wiped his boots. “Is she angry?” he asked.\n\n"
    "“Very.”\n\n"
    "“Then I shall wait, too,” said Mr Thornton."
)


def test_characters_are_listed_and_nothing_is_kept(steered: Any) -> None:
    served, _ = steered()
    with served.client() as client:
        answer = client.post(f"{PROJECTS}/characters", json={"input": NOVEL}).json()
        assert client.get(PROJECTS).json()["data"] == []
    names = {entry["name"]: entry for entry in answer["data"]}
    assert {name: entry["lines"] for name, entry in names.items()} == {"Eleanor": 3, "Mr Thornton": 2}
    assert names["Mr Thornton"]["gender"] == "male"
    assert {entry["voice"] for entry in names.values()} <= {"anna", "bert"}


def test_speech_has_the_voice_of_its_speaker_and_the_rest_the_narrators(steered: Any) -> None:
    served, _ = steered()
    with served.client() as client:
        body = {"input": NOVEL, "speakers": True, "cast": {"Mr Thornton": "bert"}, "voice": "anna"}
        project = client.post(PROJECTS, json=body).json()
    parts = [(part["voice"], part["text"]) for part in parts_of(served, project)]
    assert [text for voice, text in parts if voice == "bert"] == ["“Is she angry?”", "“Then I shall wait, too,”"]
    assert " ".join(text for _, text in parts).split() == NOVEL.split(), "every word is in one part, in order"


def test_a_file_and_an_unreadable_one(steered: Any) -> None:
    served, _ = steered()
    with served.client() as client:
        at = f"{PROJECTS}/characters"
        sent = client.post(at, files={"file": ("book.txt", "\n\n".join([NOVEL] * 2000).encode())}).json()["data"]
        assert sent[0]["name"] == "Eleanor" and sent[0]["lines"] >= 6000
        assert client.post(at, json={"items": [{"input": "One."}]}).json()["data"] == []
        assert_envelope(client.post(at, files={"file": ("book.pdf", b"%PDF-")}), 400, "file")
        assert_envelope(client.post(at, json={"input": NOVEL, "voice": "nobody"}), 400, "voice")


def test_voices_differ_as_long_as_there_are_others(steered: Any) -> None:
    served, _ = steered()
    voices = served.app.state.studio.speech.voices.library.voices.page()
    people = [Character(name, (name,)) for name in ("A", "B", "C")]
    proposals = [entry.voice for entry in proposed_voices(people, voices, "anna")]
    assert proposals[0] == "bert" and set(proposals) == {"anna", "bert"}
    assert [entry.voice for entry in proposed_voices(people, [], None)] == [None, None, None]

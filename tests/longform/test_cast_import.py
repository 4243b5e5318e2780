"""A novel's characters over HTTP: listed with proposed voices, and imported with their lines."""

from __future__ import annotations

import json
from typing import Any

from longform.voice_proposals import proposed_voices, roles_of
from manuscript.passages import NewCharacter
from studio.library.voice import Voice
from tests.longform.test_projects import PROJECTS, parts_of
from tests.studio.answers import assert_envelope

NOVEL = (
    "“Come in,” said Eleanor. “She is waiting.”\n\n"
    "Mr Thornton wiped his boots. “Is she angry?” he asked.\n\n"
    "“Very.”\n\n"
    "“Then I shall wait, too,” said Mr Thornton."
)


def test_listing_characters_stores_nothing(steered: Any) -> None:
    served, _ = steered()
    with served.client() as client:
        answer = client.post(f"{PROJECTS}/characters", json={"input": NOVEL}).json()
        assert client.get(PROJECTS).json()["data"] == []
    names = {entry["name"]: entry for entry in answer["data"]}
    assert {name: entry["lines"] for name, entry in names.items()} == {"Eleanor": 3, "Mr Thornton": 2}
    assert names["Mr Thornton"]["gender"] == "male"
    assert {entry["voice"] for entry in names.values()} <= {"anna", "bert"}
    assert names["Mr Thornton"]["sample"] == {"text": "“Then I shall wait, too,”"}
    longer = f"{NOVEL}\n\nThe kitchen was dark.\n\n“Somebody is here, and he waits for us.”"
    with served.client() as client:
        listed = client.post(f"{PROJECTS}/characters", json={"input": longer}).json()["data"]
    assert sum(one["lines"] for one in listed) == 6 and "Somebody" not in str([one["sample"] for one in listed])


def test_casts_that_share_two_people_with_a_text_are_offered_as_earlier_books(steered: Any) -> None:
    served, _ = steered()
    with served.client() as client:
        body = {
            "input": NOVEL,
            "speakers": True,
            "title": "First",
            "people": [{"name": "Nell", "aliases": ["Eleanor"]}],
        }
        first = client.post(PROJECTS, json=body).json()["id"]
        client.post(PROJECTS, json={"input": "“No,” said Eleanor.", "speakers": True})
        listed = client.post(f"{PROJECTS}/characters", json={"input": NOVEL}).json()
        assert listed["earlier"] == [{"project": first, "title": "First", "shared": 2}]
        people = [{"name": "Mr Thornton", "voice": "anna"}]
        kept = client.post(f"{PROJECTS}/characters", json={"input": NOVEL, "people": people}).json()["data"]
        assert {one["name"]: one["voice"] for one in kept}["Mr Thornton"] == "anna"
        client.delete(f"{PROJECTS}/{first}")
        assert client.post(f"{PROJECTS}/characters", json={"input": NOVEL}).json()["earlier"] == []


PLAY = "Thaddeus: Is anyone there?\n\nSiobhan: Nobody.\n\nCaptain Reyes: Then we go.\n\nThey go."


def test_names_of_a_script_are_listed_and_become_characters(steered: Any) -> None:
    served, _ = steered()
    with served.client() as client:
        letter = "Note: come in.\n\n" + "It rained all day. " * 9 + "\n\nIt rained on.\n\nIt stopped."
        are_scripts = [
            client.post(f"{PROJECTS}/preview", json={"input": text}).json()["script"]
            for text in (PLAY, PLAY.replace("\n\n", "\n"), letter, NOVEL, "Note: come in.", "ROMEO. Ay.\n\nJULIET. No.")
        ]
        assert are_scripts == [True, True, False, False, False, True]
        answer = client.post(f"{PROJECTS}/characters", json={"input": PLAY}).json()["data"]
        assert [(entry["name"], entry["lines"]) for entry in answer] == [
            ("Thaddeus", 1), ("Siobhan", 1), ("Captain Reyes", 1),
        ]  # fmt: skip
        assert client.post(f"{PROJECTS}/characters", json={"input": letter}).json()["data"] == []
        project = client.post(PROJECTS, json={"input": PLAY, "speakers": True, "cast": {"siobhan": "bert"}}).json()
        cast = client.get(f"{PROJECTS}/{project['id']}/cast").json()["data"]
    assert [(one["name"], one["voice"]) for one in cast] == [
        ("Thaddeus", None), ("Siobhan", "bert"), ("Captain Reyes", None),
    ]  # fmt: skip
    assert [(part["text"], part["voice"]) for part in parts_of(served, project)] == [
        ("Is anyone there?", None), ("Nobody.", "bert"), ("Then we go.", None), ("They go.", None),
    ]  # fmt: skip


def test_names_in_capitals_with_a_full_stop_are_the_speakers_of_a_play(steered: Any) -> None:
    play = (
        "ACT I. SCENE II.\n\nEnter OLD MAN.\n\nOLD MAN.\nNobody is here.\nNobody.\n\n"
        "[They all leave.]\n\nANNE. Wait!\n\nOLD MAN.\n(turning) No."
    )
    letter = "NASA. It is an agency.\n\nIt rained.\n\nI was late.\n\nP. Smith wrote."
    sonnets = "XVII.\nWho will believe?\n\nXVIII.\nShall I?\n\nXIX.\nDevouring Time."
    served, _ = steered()
    with served.client() as client:
        for prose in (letter, sonnets):
            assert client.post(f"{PROJECTS}/characters", json={"input": prose}).json()["data"] == []
        body = {"input": play, "speakers": True, "cast": {"old man": "bert"}, "split_by": "paragraph"}
        project = client.post(PROJECTS, json=body).json()
        cast = client.get(f"{PROJECTS}/{project['id']}/cast").json()["data"]
    assert [(one["name"], one["voice"]) for one in cast] == [("OLD MAN", "bert"), ("ANNE", None)]
    names = {None: None} | {one["id"]: one["name"] for one in cast}
    assert [(names[part["character"]], part["text"]) for part in parts_of(served, project)][-6:] == [
        (None, "Enter OLD MAN."), ("OLD MAN", "Nobody is here.\nNobody."), (None, "They all leave."),
        ("ANNE", "Wait!"), (None, "(turning)"), ("OLD MAN", "No."),
    ]  # fmt: skip


def test_stage_directions_of_a_script_are_read_by_the_narrator(steered: Any) -> None:
    play = (
        "GUARD: Halt.\n[He sets down his lantern.]\nWho goes?\nTOM: (low) Me.\n(They leave.)\n\nGUARD: [whisper]\nGone."
        "\n\nTOM: I come (running in) with news! (kneels) The war (of 1870) is over, (sighs) and lost (as known).\n\n"
        "Nobody (of rank) spoke. (Silence.) It rained."
    )
    served, _ = steered()
    with served.client() as client:
        body = {"input": play, "speakers": True, "cast": {"GUARD": "anna", "TOM": "bert"}, "split_by": "paragraph"}
        project = client.post(PROJECTS, json=body).json()
    assert [(part["voice"], part["text"]) for part in parts_of(served, project)] == [
        ("anna", "Halt."),
        (None, "He sets down his lantern."),
        ("anna", "Who goes?"),
        (None, "(low)"),
        ("bert", "Me."),
        (None, "They leave."),
        ("anna", "[whisper]\nGone."),
        ("bert", "I come"),
        (None, "(running in)"),
        ("bert", "with news!"),
        (None, "(kneels)"),
        ("bert", "The war (of 1870) is over,"),
        (None, "(sighs)"),
        ("bert", "and lost (as known)."),
        (None, "Nobody (of rank) spoke. (Silence.) It rained."),
    ]
    assert [part["pause"] for part in parts_of(served, project)] == [
        *[None] * 3,
        0.2,
        *[None] * 3,
        *[0.2] * 6,
        None,
        None,
    ]


def test_speech_has_its_speakers_voice_and_the_rest_the_narrators(steered: Any) -> None:
    served, _ = steered()
    with served.client() as client:
        body = {"input": NOVEL, "speakers": True, "cast": {"Mr Thornton": "bert"}, "voice": "anna"}
        project = client.post(PROJECTS, json=body).json()
    parts = [(part["voice"], part["text"]) for part in parts_of(served, project)]
    assert [text for voice, text in parts if voice == "bert"] == ["“Is she angry?”", "“Then I shall wait, too,”"]
    assert " ".join(text for _, text in parts).split() == NOVEL.split(), "every word is in one part, in order"


def test_characters_of_a_file_are_listed_and_an_unreadable_one_is_refused(steered: Any) -> None:
    served, _ = steered()
    with served.client() as client:
        at = f"{PROJECTS}/characters"
        sent = client.post(at, files={"file": ("book.txt", "\n\n".join([NOVEL] * 400).encode())}).json()["data"]
        assert sent[0]["name"] == "Eleanor" and sent[0]["lines"] >= 1200
        assert client.post(at, json={"items": [{"input": "One."}]}).json()["data"] == []
        assert_envelope(client.post(at, files={"file": ("book.pdf", b"%PDF-")}), 400, "file")
        assert_envelope(client.post(at, json={"input": NOVEL, "voice": "nobody"}), 400, "voice")


def voice(slug: str, gender: str) -> Voice:
    return Voice.model_construct(id=slug, slug=slug, name=slug, gender=gender)


def test_proposed_voices_match_the_gender_and_differ_from_narrator_and_neighbours() -> None:
    voices = [voice("nora", "female"), voice("clara", "female"), voice("dora", "female"), voice("otto", "male")]
    people = [NewCharacter("Ann", gender="female"), NewCharacter("Bea", gender="female"), NewCharacter("Cleo")]
    people += [
        NewCharacter("Dan", gender="male"),
        NewCharacter("Eve", gender="female"),
        NewCharacter("Fay", gender="female"),
    ]
    lines = ["Ann", "Bea"] * 9 + ["Cleo", "Dan"] * 3 + ["Eve", "Bea", "Eve"] + ["Fay", "Ann"]
    proposals = {
        role.character.name: role.character.voice for role in proposed_voices(roles_of(people, lines), voices, "nora")
    }
    assert {proposals["Ann"], proposals["Bea"]} == {"clara", "dora"}
    assert proposals["Dan"] == "otto" and "nora" not in proposals.values()
    assert proposals["Eve"] == proposals["Ann"], "only Bea speaks beside her"
    assert proposals["Fay"] == proposals["Bea"]
    assert [role.character.voice for role in proposed_voices(roles_of(people, lines), [], None)] == [None] * 6
    [cleo] = proposed_voices(roles_of([NewCharacter("Cleo")], ["Cleo"]), [voice("me", ""), *voices], None)
    assert cleo.character.voice == "nora", "a voice without a gender is often a clone of somebody"


def test_too_many_characters_are_refused_with_the_limit(steered: Any) -> None:
    served, _ = steered()
    crowd = "\n\n".join(f"N{chr(97 + n % 26)}{chr(97 + n // 26 % 26)}{chr(97 + n // 676)}: Yes." for n in range(2001))
    with served.client() as client:
        answer = client.post(PROJECTS, json={"input": crowd, "speakers": True})
        assert_envelope(answer, 400, "input")
        assert "cast has 2,001 people; the limit is 2,000" in answer.json()["error"]["message"]
        name = "“Yes,” said " + "A" * 3000 + ".\n\n“No,” said Ben."
        listed = client.post(f"{PROJECTS}/characters", json={"input": name}).json()["data"]
        assert [entry["name"] for entry in listed] == ["Ben"]
        open_quotes = "“One «two ‘three said Anna.\n\n" * 40 + "“No,” said Ben."
        project = client.post(PROJECTS, json={"input": open_quotes, "speakers": True}).json()
    assert " ".join(part["text"] for part in parts_of(served, project)).split() == open_quotes.split()


def test_people_are_merged_split_and_taken_from_an_earlier_book(steered: Any) -> None:
    novel = (
        "“Come in,” said Lizzy Hale.\n\n“Why?” said the painter.\n\n“It rains,” said Mrs. Ashby.\n\n"
        "“So it does,” said Basil.\n\n“Always,” said Mr. Reed.\n\n“Never,” said Reed."
    )
    people: list[dict[str, Any]] = [
        {"name": "Eliza", "aliases": ["Lizzy Hale", "Mrs. Ashby"], "gender": "female", "voice": "anna"},
        {"name": "Basil", "aliases": ["the painter"], "gender": "male", "voice": "bert"},
        {"name": "Mr. Reed"}, {"name": "Reed", "gender": "male"},
    ]  # fmt: skip
    served, _ = steered()
    with served.client() as client:
        body = {"input": novel, "speakers": True, "people": people}
        listed = client.post(f"{PROJECTS}/characters", json=body).json()["data"]
        assert {one["name"]: one["lines"] for one in listed} == {"Eliza": 2, "Basil": 2, "Mr. Reed": 1, "Reed": 1}
        project = client.post(PROJECTS, json=body).json()
        cast = client.get(f"{PROJECTS}/{project['id']}/cast").json()["data"]
        assert {one["name"]: (one["gender"], one["voice"]) for one in cast} == {
            "Eliza": ("female", "anna"), "Basil": ("male", "bert"), "Mr. Reed": ("male", None), "Reed": ("male", None),
        }  # fmt: skip
        names = ("name", "aliases", "gender", "voice", "narrator")
        again = body | {"people": [{name: one[name] for name in names} for one in cast]}
        sequel = client.post(PROJECTS, json=again).json()
        following = client.get(f"{PROJECTS}/{sequel['id']}/cast").json()["data"]
        assert [one["voice"] for one in following] == [one["voice"] for one in cast]
        unknown = client.post(PROJECTS, json=body | {"people": [{"name": "Ann", "voice": "nobody"}]})
        assert_envelope(unknown, 400)
        file = {"file": ("novel.txt", novel.encode())}
        form = client.post(PROJECTS, data={"speakers": "true", "people": "[1"}, files=file)
        assert_envelope(form, 400, "people")
        many = [{"name": f"Person {number}", "aliases": [f"Number {number}" + 60 * "x"]} for number in range(1000)]
        form = client.post(f"{PROJECTS}/preview", data={"people": json.dumps(many)}, files=file)
        assert form.status_code == 200, form.text

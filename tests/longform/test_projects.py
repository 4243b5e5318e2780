"""Projects over HTTP: created from documents, generated in the background, edited, visible only to their owner."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from studio.settings import read_keys
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.documents import docx, epub, page
from tests.studio.server import Served
from tests.waiting import wait_until

PROJECTS = "/v1/projects"
FRAME, RATE = 2048, 44_100
Steer = Callable[..., Steered]
Json = dict[str, Any]


def create_project(served: Served, **body: object) -> Json:
    with served.client() as client:
        answer = client.post(PROJECTS, json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()


def post_verb(served: Served, project: Json, verb: str, **body: object) -> Json:
    with served.client() as client:
        answer = client.post(f"{PROJECTS}/{project['id']}/{verb}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def parts_of(served: Served, project: Json, **query: str | int) -> list[Json]:
    with served.client() as client:
        return client.get(f"{PROJECTS}/{project['id']}/parts", params=query).json()["data"]


def change(served: Served, project: Json, part: Json, **body: object) -> httpx.Response:
    with served.client() as client:
        return client.patch(f"{PROJECTS}/{project['id']}/parts/{part['id']}", json=body)


def until(served: Served, project: Json, *states: str, **parts: int) -> Json:
    """Wait until the project has one of the states and these counts of parts by state; fails after a minute."""

    def is_reached(now: Json) -> bool:
        return (not states or now["state"] in states) and now["parts"] | parts == now["parts"]

    with served.client() as client:
        return wait_until(is_reached, lambda: client.get(f"{PROJECTS}/{project['id']}").json())


def test_items_take_null_as_absent_and_join_a_chapter_named_in_each(steered: Steer) -> None:
    served, _ = steered()
    absent: dict[str, str | None] = dict.fromkeys(("voice", "pause", "character", "scene", "continues"))
    rows = [("One.", None), ("Two.", "First"), ("Three.", "First"), ("Four.", None), ("Five.", "Second")]
    project = create_project(served, items=[{"input": text, "chapter": title} | absent for text, title in rows])
    assert [part["chapter"] for part in parts_of(served, project)] == ["", "First", "", "", "Second"]
    defaults: dict[str, None] = dict.fromkeys(("start", "notes", "split_by", "with_cover", "part_length"))
    assert create_project(served, input="One.", people=[{"name": "Ann", "gender": None}], **defaults)["title"] == "One."


def test_refusal_names_the_item_and_its_field(steered: Steer) -> None:
    served, _ = steered()
    first, people = {"input": "One."}, [{"name": "Ann", "aliases": ["A", 5]}]
    bodies: list[tuple[dict[str, Any], str]] = [
        ({"items": [first, first | {"pause": "long"}]}, "item 2, pause: Input should be a valid number"),
        ({"items": [first, first | {"voise": "anna"}]}, "item 2, voise: unknown field"),
        ({"items": [{"voice": "anna"}]}, "item 1, input: Field required"),
        ({"items": [first, 5]}, "item 2: Input should be an object"),
        ({"input": "One.", "people": people}, "people, item 1, aliases, item 2: Input should be a valid string"),
        ({"input": "One.", "cast": {"Ann": 5}}, "cast.Ann: Input should be a valid string"),
    ]
    with served.client() as client:
        for body, message in bodies:
            refused = client.post(PROJECTS, json=body)
            assert_envelope(refused, 400, next(name for name in body if name != "input"))
            assert refused.json()["error"]["message"].startswith(message)


def test_book_is_generated_part_by_part(steered: Steer) -> None:
    served, engine = steered()
    book = epub(
        {"a.xhtml": page("<h1>One</h1><p>Hello you. Anna: no turn.</p><p>Bert: I am Bert.</p>")}, title="A Büch"
    )
    with served.client() as client:
        files = {"file": ("x.epub", book)}
        answer = client.post(
            PROJECTS, files=files, data={"voice": "anna", "cast": '{"Bo": "bert"}', "temperature": "0.5"}
        )
    assert answer.status_code == 201, answer.text
    project = answer.json()
    assert (project["title"], project["kind"], project["state"]) == ("A Büch", "epub", "new")
    assert project["parts"] == {"total": 3, "new": 3, "queued": 0, "speaking": 0, "done": 0, "stale": 0, "failed": 0}
    assert engine.utterances == []
    assert post_verb(served, project, "speak")["parts"]["done"] < 3
    done = until(served, project, "done")
    assert done["seconds"] == pytest.approx((1 + 5 + 3) * 6 * FRAME / RATE, abs=0.01)
    parts = parts_of(served, project)
    assert [(part["text"], part["chapter"], part["voice"]) for part in parts] == [
        ("One", "One", None), ("Hello you. Anna: no turn.", "", None), ("I am Bert.", "", "Bert"),
    ]  # fmt: skip
    assert [part["takes"][0]["voice"] for part in parts] == ["anna@1", "anna@1", "bert@1"]
    assert {utterance.sampling.temperature for utterance in engine.utterances} == {0.5}


def test_project_has_the_title_of_its_document_or_file(steered: Steer) -> None:
    served, _ = steered()
    named = "<dc:title>The real one</dc:title>"
    heading = '<w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr><w:r><w:t>Chapter 1</w:t></w:r></w:p>'
    files = {
        "My  novel.docx": (docx(heading), "My novel"),
        "x.docx": (docx(heading, named), "The real one"),
        "notes.v2.txt": (b"Hello.", "notes.v2"),
        f"{'n' * 300}.txt": (b"Hello.", "n" * 200),
    }
    with served.client() as client:
        for name, (data, title) in files.items():
            assert client.post(PROJECTS, files={"file": (name, data)}).json()["title"] == title
        answer = client.post(PROJECTS, files={"file": ("x.txt", b"Hello.")}, data={"title": "Mine"})
        assert answer.json()["title"] == "Mine"
        pasted = create_project(served, input="Hello.\nYou.")
        assert (pasted["title"], pasted["skipped"]) == ("Hello.", [])


def test_failing_row_is_tried_twice_without_stopping_others(steered: Steer) -> None:
    served, engine = steered()
    with served.client() as client:
        client.patch("/v1/voices/anna", json={"name": "Aunt May"}).raise_for_status()
    table = "text,voice,pause\nOne two.,Aunt May@1,0\nThree.,nobody,\nFour.,bert,2.5\n"
    project = create_project(served, input=table, kind="csv", start=True)
    now = until(served, project, "incomplete")
    assert (now["parts"]["done"], now["parts"]["failed"]) == (2, 1)
    bad = parts_of(served, project)[1]
    assert (bad["state"], bad["attempts"]) == ("failed", 2) and "no voice 'nobody'" in bad["error"]
    assert change(served, project, bad, voice="bert").json()["state"] == "new"
    post_verb(served, project, "speak")
    until(served, project, "done")
    assert len(engine.utterances) == 3
    assert [part["voice"] for part in parts_of(served, project)] == ["anna@1", "bert", "bert"]


def test_renamed_voice_keeps_its_projects(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        client.patch("/v1/voices/anna", json={"name": "Aunt May"}).raise_for_status()
        people = [{"name": "Eve", "voice": "aunt may@1"}]
        about = {"speakers": True, "people": people, "cast": {"Bo": "Aunt May"}, "voice": " AUNT  MAY "}
        project = create_project(served, input="Eve: Hello.\n\nBo: Bye.\n\nAunt May: No.", **about)
        at = f"{PROJECTS}/{project['id']}"
        assert project["settings"]["voice"] == "anna"
        assert {part["voice"] for part in parts_of(served, project)} == {"anna@1", "anna"}
        client.patch(at, json={"voice": "bert"}).raise_for_status()
        assert client.patch(at, json={"voice": "Aunt May@1"}).json()["settings"]["voice"] == "anna@1"
        first = parts_of(served, project)[0]
        assert change(served, project, first, voice="Aunt May").json()["voice"] == "anna"
        added = client.post(f"{at}/parts", json={"text": "More.", "after": None, "voice": "Aunt May"})
        character = client.post(f"{at}/cast", json={"name": "Zoë", "voice": "Aunt May"}).json()
        assert (added.json()["voice"], character["voice"]) == ("anna", "anna")
        edited = client.patch(f"{at}/cast/{character['id']}", json={"voice": "Aunt May@1"}).json()
        client.patch(f"{at}/parts", json={"ids": [first["id"]], "voice": "Aunt May@1"}).raise_for_status()
        assert (edited["voice"], parts_of(served, project)[1]["voice"]) == ("anna@1", "anna@1")

        unknown = create_project(served, input="text,voice\nOne.,Nobody Yet", kind="csv")
        client.patch("/v1/voices/anna", json={"name": "Nobody Yet"}).raise_for_status()
        refused = client.patch("/v1/voices/anna", json={"name": "May Parker"})  # that part would not find it
        assert_envelope(refused, 400, "name")
        [part] = parts_of(served, unknown)
        assert change(served, unknown, part, voice="Nobody Yet").json()["voice"] == "anna"
        client.patch("/v1/voices/anna", json={"name": "May Parker"}).raise_for_status()


def test_unknown_voice_is_refused_and_nothing_is_generated(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        for body in ({"voice": "nobody"}, {"cast": {"Anna": "nobody"}}, {"voice": "anna@9"}):
            refused = client.post(PROJECTS, json={"input": "Hi."} | body)
            assert_envelope(refused, 400, "voice")
            assert refused.json()["error"]["code"] == "voice_not_found"
        assert client.get(PROJECTS).json()["data"] == []
        project = create_project(served, input="Hi.", voice="alloy")
        assert_envelope(client.patch(f"{PROJECTS}/{project['id']}", json={"voice": "nobody"}), 400, "voice")
        assert client.get(f"{PROJECTS}/{project['id']}").json()["settings"]["voice"] == "alloy"
    assert_envelope(change(served, project, parts_of(served, project)[0], voice="nobody"), 400, "voice")


def test_part_keeps_its_take_if_a_further_one_fails(steered: Steer) -> None:
    served, engine = steered()
    engine.spoilt = ["silent"]
    project = create_project(served, items=[{"input": "One two."}], start=True)
    until(served, project, "done")
    [part] = parts_of(served, project)
    assert (part["state"], part["attempts"], part["error"]) == ("done", 2, None)
    engine.spoilt = ["silent"] * 2
    post_verb(served, project, "speak", parts=[part["id"]])
    until(served, project, "done")
    [kept] = parts_of(served, project)
    assert (kept["state"], kept["chosen"], kept["attempts"]) == ("done", part["chosen"], 2)
    assert "silent" in kept["error"]
    with served.client() as client:
        assert client.get(f"{PROJECTS}/{project['id']}/audio").status_code == 200

    change(served, project, part, text="Three four.").raise_for_status()
    engine.spoilt = ["silent"] * 2
    post_verb(served, project, "speak")
    until(served, project, "incomplete")
    assert [part["state"] for part in parts_of(served, project)] == ["failed"]
    change(served, project, part, take=part["chosen"]).raise_for_status()  # the take of another text
    assert [part["state"] for part in parts_of(served, project)] == ["failed"]
    assert change(served, project, part, text="One two.").json()["state"] == "done"
    post_verb(served, project, "speak", parts=[part["id"]])
    until(served, project, "done")
    [again] = parts_of(served, project)
    assert again["chosen"] != part["chosen"] and again["error"] is None


def test_part_is_stale_only_while_its_text_or_voice_is_changed(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "One."}, {"input": "Two."}], voice="anna", start=True)
    until(served, project, "done")
    first, _ = parts_of(served, project)
    assert change(served, project, first, text="Another.").json()["state"] == "stale"
    assert [part["state"] for part in parts_of(served, project)] == ["stale", "done"]
    assert change(served, project, first, text="One.").json()["state"] == "done"
    with served.client() as client:
        changed = client.patch(f"{PROJECTS}/{project['id']}", json={"voice": "bert", "title": "Both"}).json()
        assert changed["title"] == "Both" and changed["parts"]["stale"] == 2
        assert client.patch(f"{PROJECTS}/{project['id']}", json={"voice": "anna"}).json()["state"] == "done"
        assert client.patch("/v1/voices/anna", json={"slug": "hanna"}).json()["error"]["param"] == "slug"  # it is used
        client.patch("/v1/voices/anna", json={"name": "Hanna"}).raise_for_status()
        assert client.get(f"{PROJECTS}/{project['id']}").json()["state"] == "done"
        pauses = client.patch(f"{PROJECTS}/{project['id']}", json={"pause": 2, "chapter_pause": None}).json()
    assert pauses["state"] == "done" and pauses["settings"]["pause"] == 2


def test_restoring_the_text_or_voice_chooses_the_earlier_take_again(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "One."}, {"input": "Two."}], voice="anna", start=True)
    until(served, project, "done")
    first, _ = parts_of(served, project)
    url = f"{PROJECTS}/{project['id']}"
    change(served, project, first, text="Another.")
    post_verb(served, project, "speak")
    until(served, project, "done")
    newer = parts_of(served, project)[0]["chosen"]
    assert newer != first["chosen"]
    back = change(served, project, first, text="One.").json()
    assert (back["state"], back["chosen"]) == ("done", first["chosen"])
    chosen = change(served, project, first, take=newer).json()
    assert (chosen["state"], chosen["chosen"]) == ("stale", newer), "a person's choice stays"
    assert change(served, project, first, pause=1).json()["chosen"] == newer
    with served.client() as client:
        client.patch(url, json={"voice": "bert"}).raise_for_status()
        post_verb(served, project, "speak")
        until(served, project, "done")
        assert client.patch(url, json={"voice": "anna"}).json()["parts"]["done"] == 2, "settings do the same"
        part = parts_of(served, project)[0]
        assert part["chosen"] == first["chosen"]
        assert client.patch(url, json={"voice": "bert"}).json()["state"] == "done"
        assert client.get(f"{url}/audio").status_code == 200


def test_part_is_regenerated_with_another_seed_and_any_take_can_be_chosen(steered: Steer) -> None:
    served, _ = steered()
    project = create_project(served, items=[{"input": "One."}, {"input": "Two."}], seed=7, start=True)
    until(served, project, "done")
    first, second = parts_of(served, project)
    assert [take["seed"] for part in (first, second) for take in part["takes"]] == [7, 7]
    post_verb(served, project, "speak", parts=[first["id"]])
    until(served, project, "done")
    again = parts_of(served, project)[0]
    new, old = again["takes"]
    assert again["chosen"] == new["id"] and old["seed"] == 7 != new["seed"]
    assert change(served, project, again, take=old["id"]).json()["chosen"] == old["id"]
    with served.client() as client:
        url = f"{PROJECTS}/{project['id']}/takes"
        sounds = [client.get(f"{url}/{take['id']}/audio") for take in (old, new)]
        assert sounds[0].content != sounds[1].content and sounds[0].headers["content-type"] == "audio/wav"
        part = client.get(f"{url}/{old['id']}/audio", headers={"Range": "bytes=4-9"})
        assert (part.status_code, part.content) == (206, sounds[0].content[4:10])
    assert_envelope(change(served, project, again, take="other"), 404, "take")

    def spoken_again(times: int) -> list[str]:
        for _ in range(times):
            post_verb(served, project, "speak", parts=[first["id"]])
            until(served, project, "done")
        return [take["id"] for take in parts_of(served, project)[0]["takes"]]

    takes = spoken_again(9)
    assert len(takes) == 8
    change(served, project, first, take=takes[-1])
    assert takes[-1] in spoken_again(2), "others are tried, and it may be wanted again"


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The SQL statements run on every library opened from now on."""
    statements_run: list[str] = []
    connect = sqlite3.connect

    def traced(*values: Any, **named: Any) -> sqlite3.Connection:
        connection = connect(*values, **named)
        connection.set_trace_callback(statements_run.append)
        return connection

    monkeypatch.setattr(sqlite3, "connect", traced)
    return statements_run


def test_parts_requested_repeatedly_are_looked_up_once(steered: Steer, statements: list[str]) -> None:
    served, _ = steered(project_rows=0)
    project = create_project(served, items=[{"input": "One."}, {"input": "Two."}, {"input": "Three."}])
    ids = [part["id"] for part in parts_of(served, project)]
    statements.clear()
    assert post_verb(served, project, "speak", parts=ids[:2] * 10_000)["parts"]["queued"] == 2
    assert 0 < len(statements) < 100
    with served.client() as client:
        url = f"{PROJECTS}/{project['id']}/speak"
        assert_envelope(client.post(url, json={"parts": ids[:1] * 20_001}), 400, "parts")
        assert_envelope(client.post(url, json={"parts": [ids[2], "x"]}), 404, "part")
    assert [part["state"] for part in parts_of(served, project)] == ["queued", "queued", "new"]


def test_project_is_paused_resumed_and_cancelled(steered: Steer) -> None:
    served, engine = steered(max_rows=2)
    engine.later_frames_gate.clear()
    project = create_project(served, items=[{"input": f"Part {n}."} for n in range(4)], start=True)
    until(served, project, speaking=1, queued=3)  # one of the two places stays free
    served.until(running=1)
    assert post_verb(served, project, "pause")["state"] == "paused"
    engine.later_frames_gate.set()
    until(served, project, "paused", done=1, queued=3)
    engine.later_frames_gate.clear()
    assert post_verb(served, project, "resume")["state"] == "running"
    now = until(served, project, speaking=1, queued=2)
    served.until(running=1)
    assert now["eta_s"] is not None
    cancelled = post_verb(served, project, "cancel")
    assert (cancelled["state"], cancelled["parts"]["new"], cancelled["eta_s"]) == ("incomplete", 3, None)
    served.until(running=0)
    engine.later_frames_gate.set()
    post_verb(served, project, "speak", parts="all")
    until(served, project, "done")


def test_direct_requests_precede_queued_parts(steered: Steer) -> None:
    served, engine = steered(max_rows=2)
    engine.first_frame_gate.clear()
    project = create_project(served, items=[{"input": f"Part {n}."} for n in range(3)], start=True)
    until(served, project, speaking=1, queued=2)
    served.until(running=1)  # the engine has the first part; a request sent earlier would precede it too
    with ThreadPoolExecutor(1) as pool, served.client() as client:
        mine = pool.submit(client.post, "/v1/audio/speech", json={"input": "I ask."})
        served.until(running=2)
        engine.first_frame_gate.set()
        assert mine.result().status_code == 200
    until(served, project, "done")
    assert engine.utterances[1].text == "I ask."


def test_zero_project_rows_generate_no_parts(steered: Steer) -> None:
    served, engine = steered(project_rows=0)
    project = create_project(served, items=[{"input": "One."}], start=True)
    with served.client() as client:
        assert client.post("/v1/audio/speech", json={"input": "Mine."}).status_code == 200
    assert until(served, project, "running", queued=1)
    assert [utterance.text for utterance in engine.utterances] == ["Mine."]


def test_parts_are_exempt_from_limits_and_not_listed_as_takes(steered: Steer) -> None:
    served, _ = steered(max_per_caller=1, requests_per_minute=1)
    project = create_project(served, items=[{"input": f"Part {n}."} for n in range(3)], start=True)
    until(served, project, "done")
    with served.client() as client:
        assert client.post("/v1/audio/speech", json={"input": "Mine."}).status_code == 200
        assert [take["excerpt"] for take in client.get("/v1/takes").json()["data"]] == ["Mine."]


def test_unknown_project_to_continue_a_list_after_is_refused_by_the_name_of_its_parameter(steered: Steer) -> None:
    with steered()[0].client() as client:
        assert_envelope(client.get(PROJECTS, params={"after": "x"}), 404, "after")


def test_a_caller_sees_only_its_own_projects(steered: Steer) -> None:
    served, _ = steered(api_keys=read_keys("one,two"))
    one, two = (served.client(headers={"Authorization": f"Bearer {name}"}) for name in ("one", "two"))
    with one, two:
        project = one.post(PROJECTS, json={"input": "Mine."}).json()
        [part] = one.get(f"{PROJECTS}/{project['id']}/parts").json()["data"]
        assert [row["id"] for row in one.get(PROJECTS).json()["data"]] == [project["id"]]
        assert two.get(PROJECTS).json()["data"] == []
        at = f"{PROJECTS}/{project['id']}"
        for path in ("", "/parts", "/timeline", "/audio", "/zip", "/subtitles"):
            assert_envelope(two.get(at + path), 404)
        for verb in ("speak", "pause", "resume", "cancel"):
            assert_envelope(two.post(f"{at}/{verb}", json={}), 404)
        assert_envelope(two.patch(f"{at}/parts/{part['id']}", json={"text": "x"}), 404)
        assert_envelope(two.patch(at, json={"title": "x"}), 404)
        assert_envelope(two.delete(at), 404)
        assert one.get(at).json()["title"] == "Mine."
        assert one.delete(at).json()["deleted"] and one.get(PROJECTS).json()["data"] == []


def test_deleted_project_stops_generating_and_is_paused_when_restored(steered: Steer) -> None:
    served, engine = steered()
    engine.first_frame_gate.clear()
    project = create_project(served, items=[{"input": f"Part {n}."} for n in range(4)], start=True)
    until(served, project, speaking=1)
    served.until(running=1)
    at = f"{PROJECTS}/{project['id']}"
    with served.client() as client:
        assert_envelope(client.post(f"{at}/restore"), 404, "project")
        gone = client.delete(at).json()
        assert (gone["deleted"], gone["undo_seconds"]) == (True, 7 * 86_400)
        engine.first_frame_gate.set()
        other = create_project(served, items=[{"input": "Another."}], start=True)
        until(served, other, "done")
        assert client.get("/v1/queue").json()["running"] == 0
        assert [row["id"] for row in client.get(PROJECTS).json()["data"]] == [other["id"]]
        for answer in (client.get(at), client.get(f"{at}/parts"), client.post(f"{at}/speak", json={"parts": "all"})):
            assert_envelope(answer, 404, "project")
        assert_envelope(client.delete(at), 404, "project")
        texts = [utterance.text for utterance in engine.utterances]
        assert texts == ["Part 0.", "Another."]
        assert client.post(f"{at}/restore").json()["state"] == "paused"
        client.post(f"{at}/resume").raise_for_status()
        until(served, project, "done", done=4)


def test_stale_parts_can_be_listed_and_generated_alone(steered: Steer) -> None:
    served, engine = steered()
    project = create_project(served, items=[{"input": "One."}, {"input": "Two."}, {"input": "Three."}])
    first, second, _ = parts_of(served, project)
    post_verb(served, project, "speak", parts=[first["id"], second["id"]])
    until(served, project, "incomplete", done=2)
    change(served, project, second, text="Two again.").raise_for_status()
    with served.client() as client:
        stale = client.get(f"{PROJECTS}/{project['id']}/parts", params={"state": "stale", "limit": 1}).json()
        assert [part["text"] for part in stale["data"]] == ["Two again."]
        assert (stale["total"], stale["has_more"]) == (1, False)
        assert_envelope(client.get(f"{PROJECTS}/{project['id']}/parts", params={"state": "old"}), 400, "state")
    assert parts_of(served, project, state="failed") == []
    post_verb(served, project, "speak", parts="stale")
    until(served, project, "incomplete", done=2, new=1)
    assert [utterance.text for utterance in engine.utterances] == ["One.", "Two.", "Two again."]


def test_import_does_not_query_the_library_for_each_name(steered: Steer, statements: list[str]) -> None:
    served, _ = steered(project_rows=0)
    lines = [f"Name{number}: Hi.\n\n" for number in range(2000)]
    cast = {f"Name{number}": "bert" for number in range(1000)}
    statements.clear()
    project = create_project(served, input="".join(["ANNA: Hello.\n\n", *lines]), cast=cast)
    assert 0 < sum(statement.startswith("begin") for statement in statements) < 50
    voices = [part["voice"] for part in parts_of(served, project, limit=200)]
    assert voices[:3] == ["ANNA", "bert", "bert"]


def test_invalid_project_fields_are_refused_by_name(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        for body, param in (
            ({}, "input"),
            ({"input": "a", "items": [{"input": "b"}]}, "input"),
            ({"items": []}, "items"),
            ({"items": [{"input": " "}]}, "items"),
            ({"input": " "}, "input"),
            ({"input": "x", "kind": "csv"}, "input"),
            ({"input": "x", "pause": 99}, "pause"),
            ({"input": "x", "speeed": 1}, "speeed"),
            ({"input": "x", "part_length": 5}, "part_length"),
            ({"input": "x", "cast": {str(number): "anna" for number in range(1001)}}, "cast"),
        ):
            assert_envelope(client.post(PROJECTS, json=body), 400, param)
        assert_envelope(client.post(PROJECTS, files={"file": ("x.docx", b"x")}), 400, "file")
        assert_envelope(client.post(PROJECTS, files={"other": ("x.txt", b"x")}), 400, "file")
        assert_envelope(client.post(PROJECTS, files={"file": ("x.txt", b"x")}, data={"cast": "{"}), 400, "cast")
        big = client.post(PROJECTS, files={"file": ("x.txt", b"x" * (33 << 20))})
        assert_envelope(big, 413)
    project = create_project(served, input="One.")
    [part] = parts_of(served, project)
    assert_envelope(change(served, project, part, text=" "), 400, "text")
    with served.client() as client:
        assert_envelope(client.patch(f"{PROJECTS}/{project['id']}", json={"title": "x" * 201}), 400, "title")
    assert_envelope(change(served, project, part, pause=31), 400, "pause")
    assert_envelope(change(served, project, {"id": "part_x"}, text="x"), 404, "part")
    with served.client() as client:
        assert_envelope(client.post(f"{PROJECTS}/{project['id']}/speak", json={"parts": ["x"]}), 404, "part")
        assert_envelope(client.get(f"{PROJECTS}/{project['id']}/audio"), 409)


def test_a_request_whose_answer_was_lost_creates_no_second_project(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client, ThreadPoolExecutor() as senders:
        preview = client.post(f"{PROJECTS}/preview", json={"input": "One.\n\nTwo."}).json()["id"]

        def create(title: str) -> str:
            body = {"preview": preview, "title": title, "opening_credits": "{title}", "start": True}
            return str(client.post(PROJECTS, json=body).raise_for_status().json()["id"])

        [first] = set(senders.map(create, ["Book"] * 3))
        other = create("Another")
        assert {one["id"] for one in client.get(PROJECTS).json()["data"]} == {first, other}
        assert len(parts_of(served, {"id": first})) == 2
        client.delete(f"{PROJECTS}/{first}").raise_for_status()
        assert create("Book") not in (first, other)
        for _ in range(4):  # the preview is forgotten
            client.post(f"{PROJECTS}/preview", json={"input": "Three."}).raise_for_status()
        assert create("Another") == other


def test_encoding_can_be_chosen(steered: Steer) -> None:
    served, _ = steered()
    text = "שלום עולם"
    with served.client() as client:

        def preview(kind: str = "txt", **fields: str) -> httpx.Response:
            file = {"file": (f"a.{kind}", text.encode("cp1255"))}
            return client.post(f"{PROJECTS}/preview", files=file, data=fields)

        assert_envelope(preview(), 400, "file")
        read = preview(encoding="windows-1255").raise_for_status().json()
        assert (read["encoding"], read["skipped"], read["encodings"]["cp1255"]) == ("cp1255", [], "Windows-1255")
        project = client.post(PROJECTS, json={"preview": read["id"]}).raise_for_status().json()
        assert [part["text"] for part in parts_of(served, project)] == [text]
        refused = [preview(encoding="klingon"), preview(encoding="utf-8"), preview("epub", encoding="cp1255")]
        refused.append(client.post(PROJECTS, json={"input": text, "encoding": "cp1255"}))
        for answer in refused:
            assert_envelope(answer, 400, "encoding")

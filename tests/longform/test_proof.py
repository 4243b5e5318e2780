"""The check of a project's audio over HTTP: transcribed once, stored by take, cancelled, regenerated, reported."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from longform.proof import proof_runs
from studio.settings import read_keys
from tests.longform.script import RECOGNISER, Script, scripted
from tests.longform.test_projects import PROJECTS, Json, Steer, change, create_project, parts_of, post_verb, until
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.server import Served
from tests.waiting import wait_until, wait_until_true


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    """Replaces the real recogniser; the faults it reports count as real."""
    return scripted(monkeypatch)


def spoken_project(served: Served, *texts: str, **body: object) -> Json:
    """A project whose parts all have audio."""
    project = create_project(served, items=[{"input": text} for text in texts], voice="anna", start=True, **body)
    return until(served, project, "done")


def proof(served: Served, project: Json, method: str = "GET", path: str = "", **body: object) -> Json:
    with served.client() as client:
        answer = client.request(method, f"{PROJECTS}/{project['id']}/proof{path}", json=body or None)
    assert answer.status_code < 300, answer.text
    return answer.json()


def until_checked(served: Served, project: Json, *states: str) -> Json:
    def is_over(now: Json) -> bool:
        return now["state"] not in ("waiting", "running") and now["state"] in states

    return wait_until(is_over, lambda: proof(served, project))


def run_check(served: Served, project: Json, **body: object) -> Json:
    with served.client() as client:
        answer = client.post(f"{PROJECTS}/{project['id']}/proof", json=body)
    assert answer.status_code == 202, answer.text
    return until_checked(served, project, "done")


def spots(served: Served, project: Json, query: str = "") -> list[Json]:
    return proof(served, project, path=f"/spots{query}")["data"]


def report(served: Served, project: Json, kind: str) -> str:
    with served.client() as client:
        return client.get(f"{PROJECTS}/{project['id']}/proof/report?format={kind}").text


def test_wrong_words_are_listed_by_weight_until_accepted(steered: Steer, script: Script) -> None:
    served, _ = steered(transcriber=RECOGNISER)
    project = spoken_project(
        served, "One two three. Four five six.", "He paid $5 for it.", "The end is near.", language="en"
    )
    script.texts = ["one two three four oh six", "he paid $5 for it", "the end is"]
    status = run_check(served, project)
    assert (status["parts"], status["checked"], status["words"], status["wrong"]) == (3, 3, 15, 2)
    assert status["wrong_per_1000"] == pytest.approx(133.33) and status["spots"]["cut_end"] == 1
    assert script.languages == ["en"] * 3
    first, second = spots(served, project)
    assert (first["kind"], first["position"], first["words"], first["heard"]) == ("cut_end", 2, "near", "")
    assert (second["before"], second["words"], second["after"]) == ("Four ", "five", " six.")
    assert (second["kind"], second["heard"], second["start"]) == ("changed", "oh", pytest.approx(4 / 3, abs=0.01))
    assert first["weight"] > second["weight"] and first["take"] == parts_of(served, project)[2]["chosen"]
    mine, theirs = (proof(served, project, "PATCH", f"/spots/{first['id']}", accepted=True) for _ in range(2))
    assert mine["accepted"] and mine["acceptance"] != theirs["acceptance"] > 0 == first["acceptance"]
    listed_again = {"accepted": False, "acceptance_before": mine["acceptance"]}
    with served.client() as client:
        late = client.patch(f"{PROJECTS}/{project['id']}/proof/spots/{first['id']}", json=listed_again)
        assert_envelope(late, 412, "acceptance_before")
    assert spots(served, project) == [second] and spots(served, project, "?accepted=true")[0]["id"] == first["id"]
    assert proof(served, project)["spots"]["cut_end"] == 0
    listed_again["acceptance_before"] = theirs["acceptance"]
    assert proof(served, project, "PATCH", f"/spots/{first['id']}", **listed_again) == first
    assert len(spots(served, project)) == 2
    assert spots(served, project, "?kind=changed") == [second] == spots(served, project, "?offset=1&limit=1")


def test_take_is_transcribed_once(steered: Steer, script: Script) -> None:
    served, _ = steered(transcriber=RECOGNISER)
    project = spoken_project(served, "One two.", "Three four.")
    script.texts = ["one two", "three for"]
    run_check(served, project)
    run_check(served, project)
    assert script.heard == ["one two", "three for"]
    [part, _] = parts_of(served, project)
    change(served, project, part, text="One two five.")
    now = proof(served, project)
    assert (now["parts"], now["checked"], now["changed"]) == (1, 1, 1), "the other has no audio of its text"
    assert "changed since they were checked, and not counted: 1;" in report(served, project, "txt")
    with served.client() as client:
        client.post(f"{PROJECTS}/{project['id']}/speak", json={})
    until(served, project, "done")
    script.texts = ["one two"]
    assert proof(served, project)["changed"] == 0
    assert run_check(served, project)["checked"] == 2
    assert [spot["words"] for spot in spots(served, project)] == ["five"]
    [spot] = spots(served, project)
    proof(served, project, "PATCH", f"/spots/{spot['id']}", accepted=True)
    script.texts = ["one two", "three four"]
    run_check(served, project, again=True)
    assert spots(served, project) == [], "what was accepted stays accepted"


def test_word_misheard_by_the_recogniser_is_not_listed(steered: Steer, script: Script) -> None:
    served, _ = steered(transcriber=RECOGNISER)
    project = spoken_project(served, "We met at the museum.")
    script.texts, script.chances = ["we met at the neseam"], 0.0
    assert run_check(served, project)["wrong"] == 0 and spots(served, project) == []


def test_words_spoken_twice_but_transcribed_once_are_listed(
    steered: Steer, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longform.proof.verification.repeated_spans", lambda pcm: [(0.5, 0.8)])
    served, _ = steered(transcriber=RECOGNISER)
    project = spoken_project(served, "We met at noon.")
    script.texts, script.doubled = ["we met at noon"], "met at met at"
    run_check(served, project)
    [spot] = spots(served, project)
    assert (spot["kind"], spot["heard"], spot["before"], spot["start"]) == ("repeated", "met at", "We met at ", 0.5)


def test_checked_parts_survive_a_recogniser_crash(steered: Steer, script: Script, tmp_path: Path) -> None:
    home = str(tmp_path)
    served, _ = steered(transcriber=RECOGNISER, home=home)
    project = spoken_project(served, "One two.", "Three four.", "Five six.")
    script.texts, script.dies_at = ["one two", "three four", "five six"], 2
    proof(served, project, "POST", again=False)
    failed = until_checked(served, project, "failed")
    assert failed["checked"] == 2 and "part 3" in failed["error"] and "out of memory" in failed["error"]
    again, _ = steered(transcriber=RECOGNISER, home=home)  # as after a restart
    assert (proof(again, project)["state"], proof(again, project)["checked"]) == ("idle", 2)
    script.dies_at = -1
    assert run_check(again, project)["checked"] == 3 and script.heard == ["one two", "three four", "five six"]


def test_unexpected_error_of_a_check_is_logged(
    steered: Steer, script: Script, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*arguments: object) -> None:
        raise IndexError("the ninth of eight")

    served, _ = steered(transcriber=RECOGNISER)
    project = spoken_project(served, "One two.")
    monkeypatch.setattr(proof_runs, "check_take", broken)
    proof(served, project, "POST", again=False)
    assert "the log has the reason" in until_checked(served, project, "failed")["error"]
    wait_until_true(lambda: f"the check of {project['id']} ended unexpectedly" in caplog.text)
    assert "the ninth of eight" in caplog.text


def test_cancelled_check_keeps_its_results(steered: Steer, script: Script) -> None:
    served, _ = steered(transcriber=RECOGNISER)
    project = spoken_project(served, "One two.", "Three four.")
    script.texts = ["one two", "three four"]
    script.ungated = 1
    script.gate.clear()
    proof(served, project, "POST", again=False)
    assert script.is_waiting.wait(60)
    now = proof(served, project, "DELETE")
    assert (now["state"], now["checked"]) == ("cancelled", 1)
    script.gate.set()
    assert run_check(served, project)["checked"] == 2 and script.heard == ["one two", "three four"]


def test_best_of_several_takes_is_chosen_and_the_previous_one_stays(steered: Steer, script: Script) -> None:
    served, engine = steered(transcriber=RECOGNISER)
    project = spoken_project(served, "One two three four.")
    [part] = parts_of(served, project)
    change(served, project, part, temperature=0.4)
    post_verb(served, project, "speak")
    until(served, project, "done")
    [part] = parts_of(served, project)
    script.texts = ["one two three"]
    run_check(served, project)
    script.texts = ["one", "one two three four"]
    improved = proof(served, project, "POST", "/regenerate", part=part["id"], tries=5)
    assert (improved["replaced"], improved["tries"], improved["weight"]) == (True, 2, 0)
    assert improved["weight_before"] > 0 and len(improved["part"]["takes"]) == 3
    assert improved["part"]["chosen"] == improved["part"]["takes"][0]["id"] != part["chosen"]
    assert improved["part"]["state"] == "done" and spots(served, project) == []
    assert len({utterance.sampling.seed for utterance in engine.utterances}) == 4
    assert [utterance.sampling.temperature for utterance in engine.utterances[1:]] == [0.4] * 3, "as directed"
    script.texts = ["one two", "two three"]
    kept = proof(served, project, "POST", "/regenerate", part=part["id"], tries=2)
    assert (kept["replaced"], kept["weight"], len(kept["part"]["takes"])) == (False, 0, 3), "none is as good"


def test_notes_are_listed_by_chapter_and_invalid_ones_are_refused(steered: Steer, script: Script) -> None:
    served, _ = steered(transcriber=RECOGNISER)
    items = [{"input": "One two.", "chapter": "A"}, {"input": "Three four.", "chapter": "B"}]
    project = until(served, create_project(served, items=items, start=True), "done")
    [one, two] = parts_of(served, project)
    note = proof(served, project, "POST", "/notes", take=two["chosen"], at=0.1, note="Too happy.")
    assert (note["kind"], note["heard"], note["words"]) == ("note", "Too happy.", "Three")
    assert spots(served, project, "?chapter=2") == [note] and spots(served, project, "?chapter=1") == []
    change(served, project, two, text="Other words.")
    assert spots(served, project) == [note], "a note stays when the text was changed"
    with served.client() as client:
        parts, at = (f"{PROJECTS}/{project['id']}/{path}" for path in ("parts", "proof"))
        for noted, wanted in ((True, [two["id"]]), (False, [one["id"]])):
            assert client.get(f"{parts}/ids", params={"noted": noted}).json()["data"] == wanted
        client.patch(f"{at}/spots/{note['id']}", json={"accepted": True})
        assert client.get(parts, params={"noted": True}).json()["total"] == 0
        assert_envelope(client.get(f"{at}/spots?chapter=3"), 404, "chapter")
        assert_envelope(client.post(f"{at}/notes", json={"take": two["chosen"], "at": 999}), 400, "at")
        assert_envelope(client.post(f"{at}/notes", json={"take": "none", "at": 0}), 404, "take")
        assert_envelope(
            client.post(f"{at}/notes", json={"take": one["chosen"], "at": 0, "note": "x" * 501}), 400, "note"
        )
        assert_envelope(client.patch(f"{at}/spots/none", json={"accepted": True}), 404, "spot")
        assert_envelope(client.post(f"{at}/regenerate", json={"part": two["id"]}), 412, "part")
        assert_envelope(client.post(f"{at}/regenerate", json={"part": two["id"], "tries": 9}), 400, "tries")


def test_a_note_stays_with_its_take_until_it_is_accepted(
    steered: Steer, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("longform.library.part_queue.MAX_TAKES", 1)
    served, _ = steered(transcriber=RECOGNISER)
    project = spoken_project(served, "One two three.")

    def again() -> list[str]:
        [part] = parts_of(served, project)
        post_verb(served, project, "speak", parts=[part["id"]])
        until(served, project, "done")
        return [take["id"] for take in parts_of(served, project)[0]["takes"]]

    [part] = parts_of(served, project)
    first = part["chosen"]
    note = proof(served, project, "POST", "/notes", take=first, at=0.1, note="Too happy.")
    assert (note["take_number"], note["chosen"]) == (1, True)
    [second, kept] = again()
    assert kept == first, "its take would have been deleted as too old"
    assert spots(served, project) == [note | {"chosen": False}]
    assert proof(served, project)["spots"]["note"] == 1 == len(parts_of(served, project, noted="true"))
    later = proof(served, project, "POST", "/notes", take=second, at=0.2)
    assert (later["take_number"], later["chosen"]) == (2, True)
    change(served, project, part, take=first)
    assert [(spot["take_number"], spot["chosen"]) for spot in spots(served, project)] == [(1, True), (2, False)]
    rows = proof(served, project, path="/report?format=json")["spots"]
    assert [(row["take"], row["chosen"]) for row in rows] == [(1, True), (2, False)]
    for spot in spots(served, project):
        proof(served, project, "PATCH", f"/spots/{spot['id']}", accepted=True)
    assert spots(served, project) == parts_of(served, project, noted="true") == []
    [third] = again()
    assert third not in (first, second)


def test_level_different_from_the_book_is_listed(steered: Steer, script: Script) -> None:
    served, _ = steered(transcriber=RECOGNISER)
    project = spoken_project(served, *["One two three."] * 9)
    files = served.app.state.studio.library.files
    take = served.app.state.studio.library.takes.get(parts_of(served, project)[4]["chosen"])
    path = files.path(take.audio)
    wav = path.read_bytes()
    quiet = (np.frombuffer(wav[44:], "<i2") // 4).astype("<i2").tobytes()
    path.chmod(0o600)
    path.write_bytes(wav[:44] + quiet)
    script.texts = ["one two three"] * 9
    run_check(served, project)
    [spot] = spots(served, project, "?kind=level")
    assert (spot["position"], spot["heard"]) == (4, "-12.0 dB")


def test_reports_are_available_in_all_formats_and_in_the_zip(steered: Steer, script: Script) -> None:
    served, _ = steered(transcriber=RECOGNISER)
    project = spoken_project(served, "One two three.", "The end.")
    at = f"{PROJECTS}/{project['id']}"
    with served.client() as client:
        before = zipfile.ZipFile(io.BytesIO(client.get(f"{at}/zip").content)).namelist()
        assert before == ["manifest.csv", "00001.wav", "00002.wav"]
        script.texts = ["one three", "the end"]
        run_check(served, project)
        rows = list(csv.DictReader(io.StringIO(client.get(f"{at}/proof/report").text)))
        assert [(row["part"], row["kind"], row["words"], row["sentence"]) for row in rows] == [
            ("1", "left_out", "two", "One two three.")
        ]
        whole = client.get(f"{at}/proof/report?format=json").json()
        assert whole["wrong"] == 1 and whole["spots"][0]["kind"] == "left_out"
        response = client.get(f"{at}/proof/report?format=txt")
        assert f'filename="{project["title"]} check.txt"' in response.headers["content-disposition"]
        text = response.text
        assert "wrong: 1 (200.0 per 1,000)" in text and "Part 1, 0.3 s: left out: “two”" in text
        archive = zipfile.ZipFile(io.BytesIO(client.get(f"{at}/zip").content))
        assert archive.namelist() == ["manifest.csv", "proof.csv", "proof.txt", "00001.wav", "00002.wav"]
        assert archive.read("proof.txt").decode() == text
        assert_envelope(client.get(f"{at}/proof/report?format=pdf"), 400, "format")


def test_silent_or_missing_audio_is_reported_without_transcription(steered: Steer, script: Script) -> None:
    served, _ = steered(transcriber=RECOGNISER)
    project = spoken_project(served, "One two.", "Three four.")
    library = served.app.state.studio.library
    first, second = (library.files.path(library.takes.get(part["chosen"]).audio) for part in parts_of(served, project))
    first.unlink()
    second.chmod(0o600)
    second.write_bytes(second.read_bytes()[:44] + bytes(88_200))
    assert run_check(served, project)["wrong"] == 4 and script.heard == []
    assert [spot["kind"] for spot in spots(served, project)] == ["no_speech"] * 2


def test_only_the_owner_may_check_a_project(steered: Callable[..., Steered], script: Script) -> None:
    served, _ = steered(api_keys=read_keys("first,second"))
    with served.client(headers={"Authorization": "Bearer first"}) as client:
        project = client.post(PROJECTS, json={"input": "One."}).json()
        assert client.get(f"{PROJECTS}/{project['id']}/proof").json()["recogniser"] is False
    with served.client(headers={"Authorization": "Bearer second"}) as client:
        for method, path in (("GET", ""), ("POST", ""), ("DELETE", ""), ("GET", "/spots"), ("GET", "/report")):
            body: Json | None = {} if method == "POST" else None
            answer = client.request(method, f"{PROJECTS}/{project['id']}/proof{path}", json=body)
            assert_envelope(answer, 404, "project")

"""Where speech starts, numbers are read as the model's card or the request says; a take keeps both texts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from engine import ModelCard
from tests.longform.test_projects import until
from tests.studio.answers import assert_envelope
from tests.studio.conftest import Steered
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served
from tests.studio.speech.test_socket import open_socket, send, sentence

SPEECH, READING = "/v1/audio/speech", "/v1/audio/speech/reading"
Steer = Callable[..., Steered]
WRITTEN, READ = "It is 5 pm. [sigh] Pay $3.50.", "It is five PM. [sigh] Pay three dollars and fifty cents."


def with_card(steer: Steer, **settings: object) -> Steered:
    """A studio whose model needs numbers written as words."""
    served, engine = steer(**settings)
    engine.info = replace(engine.info, card=ModelCard(normalize=True))
    return served, engine


def texts(engine: FakeEngine) -> list[str]:
    return [utterance.text for utterance in engine.utterances]


@pytest.mark.parametrize(("normalize", "spoken"), [(None, READ), (True, READ), (False, WRITTEN)])
def test_model_needing_normalisation_gets_it_unless_the_request_disables_it(
    steered: Steer, normalize: bool | None, spoken: str
) -> None:
    served, engine = with_card(steered)
    with served.client() as client:
        assert client.post(SPEECH, json={"input": WRITTEN, "normalize": normalize}).status_code == 200
    assert texts(engine) == [spoken]


@pytest.mark.parametrize(("normalize", "spoken"), [(None, WRITTEN), (True, READ)])
def test_model_without_a_card_gets_raw_text_unless_the_request_enables_normalisation(
    steered: Steer, normalize: bool | None, spoken: str
) -> None:
    served, engine = steered()
    with served.client() as client:
        client.post(SPEECH, json={"input": WRITTEN, "normalize": normalize})
    assert texts(engine) == [spoken]


def test_take_stores_typed_and_read_text_and_is_repeated_as_read(steered: Steer) -> None:
    served, engine = with_card(steered)
    with served.client() as client:
        first = client.post(SPEECH, json={"input": WRITTEN, "seed": 7, "response_format": "wav"})
        take = client.get(f"/v1/takes/{first.headers['x-request-id']}").json()
        assert (take["text"], take["parameters"]["read_as"]) == (WRITTEN, READ)
        again = client.post(SPEECH, json=take["request"])
    assert again.content == first.content and texts(engine) == [READ, READ]
    assert (take["request"]["input"], take["request"]["normalize"]) == (READ, False)


def test_reading_too_long_for_the_stored_request_is_redone_on_repeat(steered: Steer) -> None:
    served, _ = with_card(steered)
    text = "7777777 " * 800
    with served.client() as client:
        answer = client.post(SPEECH, json={"input": text, "max_new_tokens": 1})
        take = client.get(f"/v1/takes/{answer.headers['x-request-id']}").json()
        assert len(take["parameters"]["read_as"]) > 16_384
        assert (take["request"]["input"], take["request"]["normalize"]) == (text, True)
        assert client.post(SPEECH, json=take["request"]).status_code == 200


def test_reading_is_omitted_if_equal_to_the_text(steered: Steer) -> None:
    served, _ = with_card(steered)
    with served.client() as client:
        answer = client.post(SPEECH, json={"input": "Nothing to read."})
        take = client.get(f"/v1/takes/{answer.headers['x-request-id']}").json()
    assert take["parameters"]["read_as"] is None and take["request"]["input"] == "Nothing to read."


def test_normalised_dialogue_keeps_its_speakers_and_is_repeatable(steered: Steer) -> None:
    served, engine = with_card(steered)
    body = {"input": "At 5 pm\nR2 D2: Pay $5.\nAnna: 6 of us.", "cast": {"r2 d2": "bert"}, "seed": 3}
    with served.client() as client:
        first = client.post(SPEECH, json=body | {"response_format": "wav"})
        take = client.get(f"/v1/takes/{first.headers['x-request-id']}").json()
        again = client.post(SPEECH, json=take["request"])
    assert texts(engine)[:3] == ["At five PM", "Pay five dollars.", "Six of us."] == texts(engine)[3:]
    assert take["parameters"]["read_as"] == "At five PM\nR2 D2: Pay five dollars.\nAnna: Six of us."
    assert again.content == first.content


def test_batch_socket_and_project_normalise_alike(steered: Steer) -> None:
    served, engine = with_card(steered)
    items = [{"input": "At 5 pm"}, {"input": "At 6 pm", "normalize": False}]
    with served.client() as client:
        client.post(f"{SPEECH}/batch", json={"items": items, "normalize": True})
    with open_socket(served) as socket:
        send(socket, "session.config", normalize=True)
        send(socket, "input.text", text="At 7 pm")
        send(socket, "input.done")
        assert sentence(socket)[0]["sentence_text"] == "At 7 pm"
    assert sorted(texts(engine)) == ["At 6 pm", "At five PM", "At seven PM"]
    assert project_says(served, engine, None) == "At eight PM"
    assert project_says(served, engine, False) == "At 8 pm"


def project_says(served: Served, engine: FakeEngine, normalize: bool | None) -> str:
    count = len(engine.utterances)
    with served.client() as client:
        body = {"items": [{"input": "At 8 pm"}], "start": True, "normalize": normalize}
        project = client.post("/v1/projects", json=body).json()
        assert project["settings"]["normalize"] is normalize
    until(served, project, "done")
    return texts(engine)[count]


def test_changed_reading_makes_a_project_stale(steered: Steer) -> None:
    served, _ = with_card(steered)
    with served.client() as client:
        project = client.post("/v1/projects", json={"items": [{"input": "At 8 pm"}], "start": True}).json()
        assert until(served, project, "done")["parts"]["stale"] == 0
        changed = client.patch(f"/v1/projects/{project['id']}", json={"normalize": False}).json()
        assert changed["parts"]["stale"] == 1
        assert client.patch(f"/v1/projects/{project['id']}", json={"normalize": None}).json()["parts"]["stale"] == 0


def test_reading_is_returned_without_generating_speech(steered: Steer) -> None:
    served, engine = with_card(steered)
    with served.client() as client:
        reading = client.post(READING, json={"input": WRITTEN}).json()
        assert reading == {"object": "speech.reading", "text": READ, "changed": True, "language": "en"}
        reading = client.post(READING, json={"input": WRITTEN, "normalize": False}).json()
        assert (reading["text"], reading["changed"]) == (WRITTEN, False)
        reading = client.post(READING, json={"input": "Anna: 5 of us.\nBert: At 5 pm.", "cast": {}}).json()
        assert reading["text"] == "Anna: Five of us.\nBert: At five PM."
    assert not engine.utterances


def test_reading_shows_how_brackets_and_pasted_characters_are_read(steered: Steer) -> None:
    served, engine = steered()
    engine.info = replace(engine.info, card=ModelCard(normalize=True, tags=("whisper",)))
    text = "# Head\n[Whisper] Tom &amp; Jer\u00adry [1] cast [Fireball] **now** \\[whisper]."
    with served.client() as client:
        reading = client.post(READING, json={"input": text}).json()
        assert reading["text"] == "Head\n[whisper] Tom and Jerry cast Fireball now whisper." and reading["changed"]
        reading = client.post(READING, json={"input": text, "normalize": False}).json()
        assert reading["text"] == "# Head\n[whisper] Tom & Jerry 1 cast Fireball **now** whisper."
        again = client.post(READING, json={"input": reading["text"], "normalize": False}).json()
        assert not again["changed"]


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "input"),
        ({"input": " "}, "input"),
        ({"input": "a" * 16_385}, "input"),
        ({"input": "[pause:1s] …"}, "input"),
        ({"input": "5", "normalize": 7}, "normalize"),
    ],
)
def test_invalid_reading_requests_name_the_field(steered: Steer, body: dict[str, object], param: str) -> None:
    served, _ = steered()
    with served.client() as client:
        assert_envelope(client.post(READING, json=body), 400, param=param)


def test_reading_does_not_wait_for_the_engine(steered: Steer) -> None:
    """The reading is returned even while all rows are busy."""
    served, engine = with_card(steered, max_rows=1)
    engine.later_frames_gate.clear()
    with served.client() as client:
        with client.stream("POST", SPEECH, json={"input": "One two.", "response_format": "wav"}):
            assert client.post(READING, json={"input": "5 pm"}).json()["text"] == "Five PM"
        engine.later_frames_gate.set()


@pytest.mark.parametrize(
    ("text", "language"),
    [("The cat is on the mat.", "en"), ("Das ist nicht von mir.", "de"), ("你好，世界", "zh"), ("Hm.", None)],
)
def test_language_of_a_text_is_detected_if_clear(steered: Steer, text: str, language: str | None) -> None:
    served, _ = steered()
    with served.client() as client:
        assert client.post(READING, json={"input": text}).json()["language"] == language


def test_the_listing_contains_the_models_card(steered: Steer) -> None:
    served, engine = steered()
    engine.info = replace(engine.info, card=ModelCard(True, ("en",), ("whisper",), demo=True))
    with served.client() as client:
        model = client.get("/v1/models").json()["data"][0]
    assert (model["languages"], model["tags"], model["normalize"]) == (["en"], ["whisper"], True)
    assert model["demo"] is True

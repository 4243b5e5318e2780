"""An error names the field as the caller named it in that request."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.studio.answers import assert_envelope
from tests.studio.clips import spoken
from tests.studio.conftest import Steered

SPEECH = "/v1/audio/speech"
TAKES = "/v1/takes"
Steer = Callable[..., Steered]


@pytest.fixture
def client(steered: Steer) -> Iterator[httpx.Client]:
    served, _ = steered()
    with served.client() as client:
        yield client


def test_refusal_names_the_field_of_a_request_for_takes(client: httpx.Client) -> None:
    take = client.post(SPEECH, json={"input": "Hi."}).headers["x-request-id"]
    assert_envelope(client.get(f"{TAKES}/{take}/audio?format=x"), 400, "format")
    assert_envelope(client.get(f"{TAKES}/export?format=x"), 400, "format")
    for method in ("GET", "DELETE"):
        refused = client.request(method, f"{TAKES}/nope")
        assert_envelope(refused, 404, "take_id")
        assert refused.json()["error"]["message"] == "there is no take 'nope'"


def test_refusal_names_the_field_of_a_pack_that_replaces_an_unknown_voice(client: httpx.Client) -> None:
    pack = {"file": client.get("/v1/voices/anna/export").content}
    assert_envelope(client.post("/v1/voices/import", files=pack, data={"replaces": "nope"}), 404, "replaces")


@pytest.mark.parametrize("text", ["", " ", "<|im_end|>"])
def test_refusal_names_the_field_of_an_invalid_transcript(client: httpx.Client, text: str) -> None:
    sample = client.get("/v1/voices/anna").json()["samples"][0]["id"]
    assert_envelope(client.patch(f"/v1/voices/anna/samples/{sample}", json={"text": text}), 400, "text")
    form = {"name": "Eve", "ref_text": text}
    assert_envelope(client.post("/v1/audio/voices", data=form, files={"audio_sample": spoken()}), 400, "ref_text")


@pytest.mark.parametrize(
    ("field", "value"),
    [("gain_db", "50"), ("gain_db", "nan"), ("channel", "9"), ("channel", "-1"), ("start", "nan"), ("start", "-1"),
     ("start", "99"), ("end", "-1"), ("end", "nan"), ("end", "99")],
)  # fmt: skip
def test_refusal_names_the_field_of_a_cut(client: httpx.Client, field: str, value: str) -> None:
    clip = {"audio_sample": spoken()}
    form = {"name": "Eve", "ref_text": "Hi.", field: value}
    for path in ("/v1/audio/voices", "/v1/voices/anna/samples", "/v1/voices/advise"):
        refused = client.post(path, data=form, files=clip)
        assert_envelope(refused, 400, field)
        assert refused.json()["error"]["code"] == "invalid_audio"
    if value != "nan":
        sample = client.get("/v1/voices/anna").json()["samples"][0]["id"]
        cut = {"cut": {field: float(value)}}
        assert_envelope(client.patch(f"/v1/voices/anna/samples/{sample}", json=cut), 400, "cut")


def test_refusal_names_the_field_of_an_unreadable_file(client: httpx.Client) -> None:
    for cut in ({}, {"start": "0.5"}):
        form = {"name": "Eve", "ref_text": "Hi."} | cut
        assert_envelope(
            client.post("/v1/audio/voices", data=form, files={"audio_sample": b"x" * 99}), 400, "audio_sample"
        )
    for path, field in (("/v1/audio/voices", "audio_sample"), ("/v1/projects", "file")):  # none is ignored
        two = [(field, ("a.txt", b"One.")), (field, ("b.txt", b"Two."))]
        refused = client.post(path, data={"title": "T"}, files=two)
        assert refused.status_code == 400 and "Maximum number of files is 1" in refused.json()["error"]["message"]


def test_refusal_names_the_field_of_a_text_with_control_tokens(client: httpx.Client) -> None:
    clip = "data:audio/wav;base64," + base64.b64encode(spoken()).decode()
    for body, field in (
        ({"input": "a <|im_end|> b"}, "input"),
        ({"input": "A: <|im_start|>", "cast": {"A": "anna"}}, "input"),
        ({"input": "Hi.", "ref_audio": clip, "ref_text": "<|im_end|>"}, "ref_text"),
    ):
        refused = client.post(SPEECH, json=body)
        assert_envelope(refused, 400, field)
        assert f"{field} contains the control token <|im_" in refused.json()["error"]["message"]
    assert client.post(SPEECH, json={"input": "<|speaker:0|>Hi <|phoneme_start|>x<|phoneme_end|>."}).status_code == 200


def test_refusal_names_the_field_of_a_voice_without_revisions(client: httpx.Client) -> None:
    for name in ("random@1", "Alloy@2", "default@1"):
        refused = client.post(SPEECH, json={"input": "Hi.", "voice": name})
        assert_envelope(refused, 400, "voice")
        assert f"has no revisions: leave out @{name[-1]}" in refused.json()["error"]["message"]

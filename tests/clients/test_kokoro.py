"""Clients of Kokoro-FastAPI, Speaches and LocalAI: they find all voices, and get speech with the times of its words."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace

from tests.studio.conftest import Steered
from tests.studio.server import Served
from tests.studio.sounds import decoded

Steer = Callable[..., Steered]
CAPTIONED = "/dev/captioned_speech"


def test_captions_come_with_the_file_whole_or_in_lines(steered: Steer) -> None:
    served, engine = steered()
    body = {"model": "kokoro", "input": "One two.", "voice": "anna", "seed": 1, "return_timestamps": True}
    with served.client() as client:
        file = client.post("/v1/audio/speech", json=body).content
        whole = client.post(CAPTIONED, json=body | {"stream": False}).json()
        lines = [json.loads(line) for line in client.post(CAPTIONED, json=body).text.splitlines()]
        refused = client.post(CAPTIONED, json=body | {"voice": "nobody"})
        engine.info = replace(engine.info, cannot_align="it has no attention")
        assert client.post(CAPTIONED, json=body).status_code == 501
    assert base64.b64decode(whole["audio"]) == b"".join(base64.b64decode(line["audio"]) for line in lines) == file
    assert decoded(file, "mp3")[1].size and {line["audio_format"] for line in [whole, *lines]} == {"audio/mpeg"}
    words = lines[-1]["timestamps"]
    assert whole["timestamps"] == words and [word["word"] for word in words] == ["One", "two"]
    assert 0 <= words[0]["start_time"] <= words[0]["end_time"] <= words[1]["end_time"]
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "voice"


def test_captions_that_nobody_reads_free_their_row(steered: Steer) -> None:
    served, engine = steered()
    engine.later_frames_gate.clear()
    for stream in (True, False):
        served.hang_up(CAPTIONED, {"input": "a b c", "stream": stream}, running=1)


def test_wyoming_openai_takes_the_studio_for_kokoro_fastapi_and_finds_all_voices(studio: Served) -> None:
    """Its requests, in their order, because it needs a later Python than the studio."""
    with studio.client() as client:
        assert client.get("/v1/readyz").status_code == 404  # LocalAI, whose voices it does not request
        assert client.get("/health").text != "OK"  # Speaches
        assert client.get("/v1/test").json() == {"status": "ok"}
        names = [voice["name"] for voice in client.get("/v1/audio/voices").json()["voices"]]
        assert len(names) == len(set(names)) == 3  # with random
        assert len(client.get("/v1/models/tts-1").json()["voices"]) == 3
        assert client.get("/readyz").status_code == 200

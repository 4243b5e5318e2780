"""Versions of Python SDKs that others pin: OpenAI's previous major one, and two of Fish Audio's, of which Home
Assistant has one. Installed once, outside the environment, into pytest's cache."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.clients.test_node import cached
from tests.environment import PROXIES
from tests.studio.clips import WORDS, spoken
from tests.studio.conftest import Steered
from tests.studio.server import Served

PACKAGES = {
    "now": ("openai==2.54.0", "distro>=1.7,<2", "sniffio>=1.3,<2", "fish-audio-sdk==1.1.0"),
    "before": ("fish-audio-sdk==2025.6.3",),
}
"""Two folders, because they have two versions of a package; with dependencies that the environment may lack."""

OPENAI = """
import json, sys
import openai
client = openai.OpenAI(base_url=sys.argv[1] + "/v1", api_key="any", max_retries=0)
short = {"max_new_tokens": 10, "seed": 5}
told = {"version": openai.__version__}
whole = client.audio.speech.create(model="tts-1", voice="alloy", input="Hello.", extra_body=short)
told["type"] = whole.response.headers["content-type"]
request = dict(model="tts-1", voice="alloy", input="Hello.", response_format="pcm", extra_body=short)
with client.audio.speech.with_streaming_response.create(**request) as answer:
    streamed = b"".join(answer.iter_bytes(500))
told["same"] = streamed == client.audio.speech.create(**request).content
with client.audio.speech.with_streaming_response.create(stream_format="sse", **request) as answer:
    told["events"] = [line for line in answer.iter_lines() if line.startswith("event: ")]
try:
    client.audio.speech.create(model="tts-1", voice="nobody", input="Hello.")
except openai.BadRequestError as error:
    told["refused"] = [error.code, error.param, error.request_id]
print(json.dumps(told))
"""

OLD = """
import json, sys
from fish_audio_sdk import Session, TTSRequest, WebSocketSession
from fish_audio_sdk.exceptions import HttpCodeErr
url, clip, words = sys.argv[1:]
session = Session("any", base_url=url)
seen = {"whole": len(b"".join(session.tts(TTSRequest(text="Hello."))))}
model = session.create_model(title="Old voice", voices=[open(clip, "rb").read()], texts=[words])
seen["title"] = session.get_model(model.id).title
seen["credit"] = float(session.get_api_credit().credit) > 0
session.delete_model(model.id)
try:
    session.get_model(model.id)
except HttpCodeErr as error:
    seen["gone"] = error.status
live = WebSocketSession("any", base_url=url)
pieces = iter(("Hello ", "there. How ", "are you?"))
audio = b"".join(live.tts(TTSRequest(text="", format="wav"), pieces))
seen["live"], seen["files"] = len(audio), audio.count(b"RIFF")
print(json.dumps(seen))
"""

PINNED = """
import json, sys
from fishaudio import FishAudio
url, clip, words = sys.argv[1:]
client = FishAudio(api_key="any", base_url=url)
seen = {"whole": len(client.tts.convert(text="Hello.", format="mp3"))}
seen["voices"] = len(client.voices.list(page_size=10).items)
seen["user"] = client.account.get_credits().user_id == client.account.get_credits().user_id
audio = b"".join(client.tts.stream_websocket(iter(("Hello ", "there.")), format="wav"))
seen["live"], seen["files"] = len(audio), audio.count(b"RIFF")
print(json.dumps(seen))
"""


@pytest.fixture(scope="module")
def sdks(pytestconfig: pytest.Config) -> Path:
    folder, is_installed = cached(pytestconfig, (sys.version_info[:2], PACKAGES))
    if is_installed:
        return folder
    how = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile"]
    pip = [sys.executable, "-m", "pip", "install", "--upgrade", *how]
    environment = os.environ | PROXIES
    for name, packages in PACKAGES.items():
        command = [*pip, "--target", str(folder / name), *packages]
        subprocess.run(command, check=True, timeout=300, env=environment)
    (folder / "clip.wav").write_bytes(spoken())
    return folder


def run(script: str, sdks: Path, name: str, url: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", script, url, str(sdks / "clip.wav"), WORDS],
        env=os.environ | {"PYTHONPATH": str(sdks / name)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


def test_openais_previous_sdk_generates_streams_and_reports_refusals(studio: Served, sdks: Path) -> None:
    results = run(OPENAI, sdks, "now", studio.url)
    assert results["version"] == "2.54.0"
    assert results["type"] == "audio/mpeg"
    assert results["same"]
    assert results["events"][0] == "event: speech.audio.delta" and results["events"][-1] == "event: speech.audio.done"
    assert results["refused"][:2] == ["voice_not_found", "voice"] and results["refused"][2].startswith("req_")


@pytest.mark.parametrize(
    ("name", "script", "expected"),
    [
        ("before", OLD, {"title": "Old voice", "credit": True, "gone": 404, "files": 1}),
        ("now", PINNED, {"voices": 2, "user": True, "files": 1}),
    ],
)
def test_an_older_sdk_of_fish_audio_speaks_and_streams(
    steered: Callable[..., Steered], sdks: Path, name: str, script: str, expected: dict[str, object]
) -> None:
    seen = run(script, sdks, name, steered()[0].url)
    assert seen.pop("whole") and seen.pop("live") and seen == expected

"""Versions of Fish Audio's Python SDK that others pin: Home Assistant's, and the last one before its new package."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.environment import PROXIES
from tests.studio.clips import WORDS, spoken
from tests.studio.conftest import Steered

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


@pytest.mark.parametrize(
    ("version", "script", "expected"),
    [
        ("2025.6.3", OLD, {"title": "Old voice", "credit": True, "gone": 404, "files": 1}),
        ("1.1.0", PINNED, {"voices": 2, "user": True, "files": 1}),
    ],
)
def test_an_older_sdk_speaks_and_streams(
    steered: Callable[..., Steered], tmp_path: Path, version: str, script: str, expected: dict[str, object]
) -> None:
    how = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile", "--target", str(tmp_path / "sdk")]
    command = [sys.executable, "-m", "pip", "install", *how, f"fish-audio-sdk=={version}"]
    subprocess.run(command, check=True, timeout=300, env=os.environ | PROXIES)
    (tmp_path / "clip.wav").write_bytes(spoken())
    done = subprocess.run(
        [sys.executable, "-c", script, steered()[0].url, str(tmp_path / "clip.wav"), WORDS],
        env=os.environ | {"PYTHONPATH": str(tmp_path / "sdk")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout.splitlines()[-1])
    assert seen.pop("whole") and seen.pop("live") and seen == expected

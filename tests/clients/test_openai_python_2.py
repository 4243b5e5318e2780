"""The previous major version of OpenAI's Python SDK, still widely used; installed separately, once per run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.environment import PROXIES
from tests.studio.server import Served

VERSION = "2.54.0"
ASIDE = (f"openai=={VERSION}", "distro>=1.7,<2", "sniffio>=1.3,<2")
"""With its dependencies that the environment of the later version may lack."""

SCRIPT = """
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


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("openai")
    how = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-compile", "--target", str(folder)]
    command = [sys.executable, "-m", "pip", "install", *how, *ASIDE]
    subprocess.run(command, check=True, timeout=300, env=os.environ | PROXIES)
    return folder


def test_sdk_generates_streams_receives_events_and_reports_refusals(studio: Served, library: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, studio.url],
        env=os.environ | {"PYTHONPATH": str(library)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["version"] == VERSION
    assert results["type"] == "audio/mpeg"
    assert results["same"]
    assert results["events"][0] == "event: speech.audio.delta" and results["events"][-1] == "event: speech.audio.done"
    assert results["refused"][:2] == ["voice_not_found", "voice"] and results["refused"][2].startswith("req_")

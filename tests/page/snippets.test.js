// A request as programs: they send exactly that request, whatever its text contains.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";

import { SNIPPETS } from "../../assets/page/api/snippets.js";

const BASE = "http://127.0.0.1:7860";
const AWKWARD = `It's "so" \\ $HOME \`x\` 😀\nnew line`;
const REQUEST = { input: AWKWARD, voice: "clara", response_format: "wav", temperature: 0.8, top_p: 0.9, top_k: 30, seed: 5 };
const LARGE = { ...REQUEST, seed: "1152921504606970433" }; // as the page keeps it
const CLIP = { ...REQUEST, voice: undefined, ref_audio: "data:audio/wav;base64,AAAA", ref_text: "Its words" };

for (const [name, write] of Object.entries(SNIPPETS)) {
  test(`${name}: it contains the studio's address, a placeholder for a key if needed, and never a recording`, () => {
    assert.ok(write(REQUEST, BASE, false).includes(BASE));
    assert.ok(write(REQUEST, BASE, true).includes("YOUR_KEY"));
    assert.ok(!write(REQUEST, BASE, false).includes("YOUR_KEY"));
    assert.ok(!write(CLIP, BASE, false).includes("AAAA"));
  });
}

test("the shell passes exactly that request to curl", () => {
  const script = SNIPPETS.curl(REQUEST, BASE, true).replace(/^curl /, "printf '%s\\0' ");
  const words = execFileSync("sh", ["-c", script], { encoding: "utf8" }).split("\0");
  assert.deepEqual(JSON.parse(words[words.indexOf("-d") + 1]), REQUEST);
  assert.ok(SNIPPETS.curl(LARGE, BASE, true).includes(`"seed": ${LARGE.seed}\n`), "as a number");
  assert.ok(words.includes("Authorization: Bearer YOUR_KEY"));
});

test("JavaScript sends exactly that request", async () => {
  const sent = [];
  const fetched = (url, options) => {
    sent.push([url, JSON.parse(options.body)]);
    return new Response("RIFF");
  };
  const AsyncFunction = (async () => {}).constructor;
  await AsyncFunction("fetch", SNIPPETS.JavaScript(REQUEST, BASE, false))(fetched);
  await AsyncFunction("fetch", SNIPPETS.JavaScript(LARGE, BASE, false))((_, { body }) => fetched(`"seed":${LARGE.seed}}`, { body: String(body.endsWith(`"seed":${LARGE.seed}}`)) }));
  assert.deepEqual(sent.pop(), [`"seed":${LARGE.seed}}`, true]);
  assert.deepEqual(sent, [[`${BASE}/v1/audio/speech`, REQUEST]]);
});

test("a dialogue keeps its turns and voices in every protocol", () => {
  const cast = { Anna: "clara", Ben: "rory" };
  const dialogue = { input: "Anna: Hello.\nBen: Good\nevening.", cast, response_format: "wav" };
  const written = (kind) => SNIPPETS[kind](dialogue, BASE, false);
  assert.match(written("gradio_client"), /script="Anna: [^]*api_name="\/dialogue"/);
  assert.match(written("Python, Fish SDK"), /text="<\|speaker:0\|>Hello.<\|speaker:1\|>Good evening.",\n +reference_id=\["clara","rory"\],/);
  assert.match(written("Python, ElevenLabs SDK"), /DialogueInput\(voice_id="clara", text="Hello."\),\n +DialogueInput\(voice_id="rory", text="Good evening."\),/);
  assert.match(written("Python, OpenAI SDK"), /voice="alloy",[^]*"cast": \{"Anna":"clara","Ben":"rory"\},/);
  assert.match(written("Agents, MCP"), /"cast": \{\n +"Anna": "clara",/);
});

test("an agent's settings and its call are JSON", () => {
  const [settings, call] = SNIPPETS["Agents, MCP"](REQUEST, BASE, true).split("\n\n").map((part) => JSON.parse(part.slice(part.indexOf("{"))));
  assert.deepEqual(settings.mcpServers.voice, { type: "http", url: `${BASE}/mcp`, headers: { Authorization: "Bearer YOUR_KEY" } });
  assert.deepEqual(call, { name: "speak", arguments: { text: AWKWARD, voice: "clara", seed: 5, format: "wav" } });
});

// A truncated take: which request generates the rest.

import assert from "node:assert/strict";
import test from "node:test";

globalThis.document = /** @type {any} */ ({ querySelector: () => null });
globalThis.window = /** @type {any} */ ({ location: { origin: "http://studio", href: "http://studio/" } });
const { generateTake } = await import("../../assets/page/takes/generate.js");
const { Take } = await import("../../assets/page/takes/take.js");

function cutTake() {
  const cut = new Take({ number: 1, request: { input: "Hello", voice: "clara", max_new_tokens: 65 }, voiceName: "Clara", settings: {} });
  return Object.assign(cut, { id: "t1", seed: "7", canContinue: true });
}

test("only a truncated take is continued, by its id; others are generated", async () => {
  const requests = [];
  globalThis.fetch = async (url, options) => {
    requests.push([new URL(url, "http://studio").pathname, JSON.parse(options.body)]);
    return new Response(JSON.stringify({ error: { message: "no" } }), { status: 409 });
  };
  const listener = { begun: () => {}, heard: () => {}, kept: () => {} };
  const cut = cutTake();
  for (const take of [new Take({ ...cut.continued, number: 2 }), new Take({ number: 3, request: { input: "Hello", voice: "clara" }, voiceName: "Clara", settings: {} })]) await assert.rejects(generateTake(take, null, listener));
  assert.deepEqual(requests, [
    ["/v1/takes/t1/continue", { response_format: "wav" }],
    ["/v1/audio/speech", { input: "Hello", voice: "clara" }],
  ]);
});

// A request that is refused for its key waits for the sign-in, then is sent once more.

import assert from "node:assert/strict";
import test from "node:test";

import { Refusal } from "../../assets/page/client/refusal.js";
import { ask, askForKeysBy, json, readJson } from "../../assets/page/client/requests.js";

globalThis.window = /** @type {any} */ ({ location: { origin: "http://studio", href: "http://studio/" } });

/** Has a studio answer that knows no key until it is signed in to; returns what it was sent. */
function studio(context) {
  const state = { isSignedIn: false, /** @type {string[]} */ sent: [] };
  context.mock.method(globalThis, "fetch", async (url, { method = "GET", body = "" } = {}) => {
    state.sent.push(`${method} ${url} ${body}`.trim());
    return state.isSignedIn ? Response.json({ done: true }) : Response.json({ error: { message: "Send a key." } }, { status: 401 });
  });
  return state;
}

test("all that are refused while the key is asked for are sent once more", async (context) => {
  const server = studio(context);
  const { promise, resolve } = Promise.withResolvers();
  askForKeysBy(() => promise);
  const answers = [ask("/v1/part", json("PATCH", { text: "new" })), readJson("/v1/queue")];
  await new Promise(setImmediate);
  assert.equal(server.sent.length, 2);
  server.isSignedIn = true;
  resolve(true);
  assert.deepEqual(await Promise.all(answers), [{ done: true }, { done: true }]);
  assert.deepEqual(server.sent.slice(2), server.sent.slice(0, 2));
  assert.match(server.sent[2], /^PATCH .*\/v1\/part {"text":"new"}$/);
});

test("it fails if no key is given, or if the given one is refused too", async (context) => {
  const server = studio(context);
  for (const isGiven of [false, true]) {
    askForKeysBy(async () => isGiven);
    await assert.rejects(ask("/v1/part"), (problem) => problem instanceof Refusal && problem.status === 401 && /not signed in/.test(problem.why));
    assert.equal(await readJson("/v1/queue"), null);
  }
  assert.equal(server.sent.length, 2 + 4);
});

test("whether a request changes something is known to the one who asks", async (context) => {
  studio(context);
  /** @type {boolean[]} */
  const kinds = [];
  askForKeysBy(async (isRead) => (kinds.push(isRead), false));
  await readJson("/v1/queue");
  await readJson("/v1/part", json("PATCH"));
  assert.deepEqual(kinds, [true, false]);
});

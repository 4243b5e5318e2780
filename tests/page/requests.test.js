// A request refused for its key waits for the sign-in, then is sent once more.

import assert from "node:assert/strict";
import test from "node:test";

import { changePart, undoChange } from "../../assets/page/client/projects.js";
import { Refusal } from "../../assets/page/client/refusal.js";
import { ask, askForKeysBy, form, json, readJson, seedOf } from "../../assets/page/client/requests.js";
import { signOut } from "../../assets/page/client/system.js";

globalThis.window = /** @type {any} */ ({ location: { origin: "http://studio", href: "http://studio/" } });

/** Mocks a studio that refuses requests until isSignedIn is set; returns its state with the requests sent to it. */
function studio(context) {
  const state = { isSignedIn: false, /** @type {string[]} */ sent: [] };
  context.mock.method(globalThis, "fetch", async (url, { method = "GET", body = "" } = {}) => {
    state.sent.push(`${method} ${url} ${body}`.trim());
    return state.isSignedIn ? Response.json({ done: true }) : Response.json({ error: { message: "Send a key." } }, { status: 401 });
  });
  return state;
}

test("requests refused while the page asks for a key are sent again once it is given", async (context) => {
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

test("a request fails if no key is given, or if the given one is also refused", async (context) => {
  const server = studio(context);
  for (const isGiven of [false, true]) {
    askForKeysBy(async () => isGiven);
    await assert.rejects(ask("/v1/part"), (problem) => problem instanceof Refusal && problem.status === 401 && /not signed in/.test(problem.why));
    assert.equal(await readJson("/v1/queue"), null);
  }
  assert.equal(server.sent.length, 2 + 4);
});

test("a chosen file that has changed since is not taken for a studio that does not respond", async (context) => {
  context.mock.method(globalThis, "fetch", async () => Promise.reject(new TypeError("Failed to fetch")));
  const file = new Blob(["id,text"]);
  const sent = ask("/v1/projects/preview", form({ file }));
  await assert.rejects(sent, ({ isLost }) => isLost);
  context.mock.method(Blob.prototype, "arrayBuffer", async () => Promise.reject(new DOMException("", "NotReadableError")));
  await assert.rejects(ask("/v1/projects/preview", form({ file })), ({ isLost, why }) => !isLost && /has changed since it was chosen/.test(why));
});

test("a change sent as the page was left counts as lost once it is returned to, where the browser never answers it", async (context) => {
  const page = new EventTarget();
  globalThis.addEventListener = page.addEventListener.bind(page);
  context.mock.method(globalThis, "fetch", () => new Promise(() => {}));
  const sent = changePart("proj_1", "part_1", { text: "new" });
  await new Promise(setImmediate);
  page.dispatchEvent(Object.assign(new Event("pageshow"), { persisted: true }));
  await assert.rejects(sent, ({ isLost }) => isLost);
});

test("the function that asks for keys learns whether the request only reads", async (context) => {
  studio(context);
  /** @type {boolean[]} */
  const kinds = [];
  askForKeysBy(async (isRead) => (kinds.push(isRead), false));
  await readJson("/v1/queue");
  await readJson("/v1/part", json("PATCH"));
  assert.deepEqual(kinds, [true, false]);
});

test("keys are still asked for after a sign-out that did not reach the studio", async (context) => {
  context.mock.method(globalThis, "fetch", async () => Promise.reject(new TypeError("Failed to fetch")));
  let count = 0;
  askForKeysBy(async () => (count += 1) < 0);
  await assert.rejects(signOut(), ({ isLost }) => isLost);
  studio(context);
  assert.deepEqual([await readJson("/v1/queue"), count], [null, 1]);
});

test("a seed that JavaScript would round is read as its digits, and sent as the number", async (context) => {
  const [text, large] = [String.raw`"seed":1152921504606970433 and \"seed\": \"1152921504606970433\"`, "1152921504606970433"];
  const body = `{"seed":${large},"defaults":{"seed": ${large}},"least":{"seed":9007199254740991},"text":${JSON.stringify(text)}}`;
  context.mock.method(globalThis, "fetch", async () => new Response(body));
  const read = await ask("/v1/voices/clara");
  assert.deepEqual(read, { seed: large, defaults: { seed: large }, least: { seed: 9007199254740991 }, text });
  assert.equal(json("PATCH", read).body, body.replace('": ', '":'));
  assert.deepEqual(["0", "9007199254740991", large].map(seedOf), [0, 9007199254740991, large]);
});

test("the undo of a change of many parts sends the rest of what it replaced once", async (context) => {
  const sent = [];
  context.mock.method(globalThis, "fetch", async (_, { body }) => (sent.push(JSON.parse(body)), Response.json({ undone: 500, left: ["part"] })));
  const parts = Array.from({ length: 501 }, (_, number) => number);
  assert.deepEqual(await undoChange("proj_1", { parts, followed: ["a line"], characters: ["a person"] }), { undone: 1000, left: ["part", "part"] });
  const [first, second] = sent;
  assert.deepEqual([first.parts.length, first.followed, first.characters, second], [500, ["a line"], ["a person"], { parts: [500] }]);
});

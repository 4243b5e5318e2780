// The request body built from the page's fields.

import assert from "node:assert/strict";
import test from "node:test";

import { keepByTab, keptByTab } from "../../assets/page/lib/by-tab.js";
import { Refusal } from "../../assets/page/client/refusal.js";
import { Fields } from "../../assets/page/speak/fields.js";
import { buildRequest, expectedSeconds } from "../../assets/page/speak/request.js";
import { presets, setUsual } from "../../assets/page/speak/sampling-presets.js";

const FIELDS = {
  text: "Two words",
  source: "bundled",
  voice: "clara",
  clip: null,
  clipText: "",
  temperature: 0.8,
  topP: 0.9,
  topK: 30,
  speed: 1,
  cutAfter: 0,
  seed: null,
};

test("fields without effect are left out", async () => {
  assert.deepEqual(await buildRequest(FIELDS, 21.5), {
    input: "Two words",
    response_format: "wav",
    temperature: 0.8,
    top_p: 0.9,
    top_k: 30,
    voice: "clara",
  });
});

test("what nobody has changed follows the loaded model, and the deliveries lie around its sampling", async () => {
  const [s2, qwen] = [{ temperature: 0.8, top_p: 0.9, top_k: 30 }, { temperature: 0.9, top_p: 1, top_k: 50 }];
  let shown = ["Two words", "bundled", "clara", "", 0.8, 0.9, 30, 1, 0, null];
  const page = /** @type {any} */ (globalThis);
  page.addEventListener = () => {};
  page.document = { addEventListener: page.addEventListener, getElementById: () => ({ click: () => (shown = fields.refill(...shown)) }) };
  const fields = new Fields();
  try {
    fields.changed(...shown);
    assert.deepEqual(presets().lively, { temperature: 1, topP: 0.95, topK: 60 });
    fields.follow(qwen);
    assert.deepEqual(shown.slice(4, 7), [0.9, 1, 50]);
    assert.equal((await buildRequest(fields.values, 12.5)).top_k, 50);
    assert.deepEqual(presets(), {
      steady: { temperature: 0.7, topP: 0.9, topK: 33 },
      natural: { temperature: 0.9, topP: 1, topK: 50 },
      lively: { temperature: 1.1, topP: 1, topK: 100 },
    });
    fields.fill({ temperature: 0.5 });
    fields.follow(s2);
    assert.deepEqual(shown.slice(4, 7), [0.5, 0.9, 30], "what somebody has chosen stays");
  } finally {
    delete page.addEventListener;
    delete page.document;
    setUsual(s2);
  }
});

test("the draft is restored without the voices, never overwritten before, and gives way to what was typed", async (context) => {
  const page = /** @type {any} */ (globalThis);
  context.mock.timers.enable({ apis: ["setTimeout"] });
  context.mock.method(globalThis, "fetch", () => Promise.reject(new TypeError("the connection broke")));
  page.window = { location: { origin: "http://studio", href: "http://studio/" } };
  page.addEventListener = () => {};
  page.Element = class {
    matches = () => true;
    append() {}
  };
  try {
    for (const isTyped of [false, true]) {
      keepByTab("1", { text: "The draft", voice: "bert" });
      let shown = ["The sample", "bundled", "clara", "", 0.8, 0.9, 30, 1, 0, null];
      const heard = {};
      const made = () => Object.assign(new page.Element(), { setAttribute() {}, dataset: {} });
      page.document = { addEventListener: (type, does) => (heard[type] = does), createElement: made, querySelector: () => null, getElementById: () => ({ click: () => (shown = fields.refill(...shown)) }) };
      const fields = new Fields();
      if (isTyped) {
        heard.input({ target: new page.Element() });
        shown[0] = "Typed";
      }
      fields.changed(...shown);
      context.mock.timers.tick(300);
      assert.equal(keptByTab("1", {}).text, "The draft", "nothing is kept before the draft is restored");
      await fields.restore();
      fields.changed(...shown);
      context.mock.timers.tick(300);
      assert.equal(shown[0], isTyped ? "Typed" : "The draft");
      assert.deepEqual([keptByTab("1", {}).text, keptByTab("1", {}).voice], [shown[0], "bert"]);
      context.mock.method(globalThis, "fetch", async () => Response.json({ voices: [{ id: "clara", name: "Clara" }, { id: "bert", name: "Bert" }], first_choice: "clara" }));
      context.mock.timers.tick(2000);
      await new Promise(setImmediate);
      assert.equal(shown[2].value, "bert", "the voices are asked for again");
      context.mock.method(globalThis, "fetch", () => Promise.reject(new TypeError("the connection broke")));
    }
  } finally {
    for (const name of ["addEventListener", "document", "Element", "window"]) delete page[name];
  }
});

test("speed, length and seed are sent if they have an effect", async () => {
  const request = await buildRequest({ ...FIELDS, speed: 1.5, cutAfter: 2, seed: 7 }, 21.5);
  assert.deepEqual([request.speed, request.max_new_tokens, request.seed], [1.5, 43, 7]);
  assert.equal((await buildRequest({ ...FIELDS, cutAfter: 0.001 }, 21.5)).max_new_tokens, 1);
  assert.equal((await buildRequest({ ...FIELDS, seed: 0 }, 21.5)).seed, 0);
});

for (const [what, changes] of Object.entries({
  "nothing to say": { text: "  \n" },
  "no clip": { source: "clip" },
  "could not generate this": { seed: 1.7 },
  "The transcript is missing": { source: "clip", clip: new Blob(["a"]), clipText: " " },
})) {
  test(`the refusal is readable: ${what}`, async () => {
    await assert.rejects(buildRequest({ ...FIELDS, ...changes }, 21.5), (problem) => {
      assert.ok(problem instanceof Refusal);
      assert.match(problem.what, new RegExp(what));
      return Boolean(problem.why && problem.advice);
    });
  });
}

test("the length of speech is estimated from letters; tags are not spoken, and some writing systems are denser", () => {
  assert.equal(expectedSeconds("a".repeat(150)), 10);
  assert.equal(expectedSeconds(`[whispering]${"a".repeat(150)}`), 10);
  assert.equal(expectedSeconds("走".repeat(45)), 10);
  assert.equal(expectedSeconds(""), 0);
});

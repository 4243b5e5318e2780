// The request body built from the page's fields.

import assert from "node:assert/strict";
import test from "node:test";

import { Refusal } from "../../assets/page/client/refusal.js";
import { buildRequest, expectedSeconds } from "../../assets/page/speak/request.js";

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

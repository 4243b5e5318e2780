// What the page says of a demo model, and of the machine for S2 Pro.

import assert from "node:assert/strict";
import test from "node:test";

import { demoLine, gpuWords, modelWords } from "../../assets/page/shell/demo-words.js";

const GIB = 2 ** 30;
const gpu = (/** @type {number} */ gib) => ({ name: "A card", memory_bytes: gib * GIB });

test("the line names the languages that the model says it speaks, and none where it does not say", () => {
  assert.equal(demoLine(["en"]), "This is a small demo model: English only, with synthetic voices; it cannot copy a real voice.");
  assert.match(demoLine(["en", "de"]), /: English and German only, /);
  assert.match(demoLine([]), /model with synthetic voices/);
});

test("the model is told with its size", () => {
  assert.match(modelWords("fry", 24_600_000), /^fry is a demo with 25 million parameters/);
});

test("a GPU is told with its memory, and whether that is enough", () => {
  assert.equal(gpuWords(gpu(23.6)), "A card, 24 GiB: enough.");
  assert.equal(gpuWords(gpu(15.6)), "A card, 16 GiB: enough with STUDIO_MAX_ROWS=4.");
  assert.equal(gpuWords(gpu(8)), "A card, 8 GiB: not enough.");
  assert.equal(gpuWords(gpu(70), true), "A card, 70 GiB, allocated for each take: enough.");
  assert.match(gpuWords(null), /^No usable GPU/);
});

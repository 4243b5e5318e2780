// What the page says of how a script will be read.

import assert from "node:assert/strict";
import test from "node:test";

import { readingLine } from "../../assets/page/speak/reading-line.js";

const READ = { text: "It is five PM.", changed: true };

test("a script that is read as it is written needs no line", () => {
  assert.equal(readingLine({ text: "Hello.", changed: false }, false), null);
  assert.equal(readingLine({ text: "Hello.", changed: false }, true), null);
  assert.equal(readingLine(null, false), null);
});

test("what will be read is shown, with the way to leave it", () => {
  assert.deepEqual(readingLine(READ, false), { lead: "Will be read as:", words: "It is five PM.", other: "Speak as written" });
});

test("who speaks as written is told so, with the way back", () => {
  const line = readingLine(READ, true);
  assert.equal(line?.words, "");
  assert.equal(line?.other, "Read them as words");
});

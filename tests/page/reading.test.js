// The line about how a script will be read.

import assert from "node:assert/strict";
import test from "node:test";

import { readingLine } from "../../assets/page/speak/reading-line.js";

const READ = { text: "It is five PM.", changed: true };

test("a script read as written needs no line", () => {
  assert.equal(readingLine({ text: "Hello.", changed: false }, false), null);
  assert.equal(readingLine({ text: "Hello.", changed: false }, true), null);
  assert.equal(readingLine(null, false), null);
});

test("the text that will be read is shown, with a way to turn it off", () => {
  assert.deepEqual(readingLine(READ, false), { lead: "Will be read as:", words: "It is five PM.", other: "Speak as written" });
});

test("after it is turned off, the line offers to turn it on again", () => {
  const line = readingLine(READ, true);
  assert.equal(line?.words, "");
  assert.equal(line?.other, "Read them as words");
});

// The line about how a script will be read.

import assert from "node:assert/strict";
import test from "node:test";

import { piecesOf, readingLine } from "../../assets/page/speak/reading-line.js";

const READ = { text: "It is five PM.", changed: true };

test("a script read as written needs no line", () => {
  assert.equal(readingLine("Hello.", { text: "Hello.", changed: false }, false), null);
  assert.equal(readingLine("Hello.", { text: "Hello.", changed: false }, true), null);
  assert.equal(readingLine("", null, false), null);
});

test("the text that will be read is shown with its changes marked, and a way to turn it off", () => {
  const pieces = [{ text: "It is", isNew: false }, { text: " five PM.", isNew: true }];
  assert.deepEqual(readingLine("It is 5 pm.", READ, false), { lead: "Will be read as:", pieces, other: "Speak as written" });
});

test("of a long text only the changes are shown, and what is around them", () => {
  const long = "so it was ".repeat(20);
  const shown = (script, reading) => piecesOf(script, reading).map(({ text, isNew }) => (isNew ? `[${text.trim()}]` : text.trim())).join(" ");
  const script = `In 1974 it cost $49, they say, ${long}at 5 pm. ${long}`;
  const reading = `In nineteen seventy-four it cost forty-nine dollars, they say, ${long}at five PM. ${long}`;
  assert.equal(shown(script, reading), "In [nineteen seventy-four] it cost [forty-nine dollars,] they say, so it was so … it was so it was at [five PM.] so it was so it was …");
  assert.equal(shown("它在1974年发生", "它在一九七四年发生"), "它在 [一九七四] 年发生");
  assert.equal(shown("Hello \u200b there", "Hello there"), "Hello [there]"); // something invisible was left out
});

test("after it is turned off, the line offers to turn it on again", () => {
  const line = readingLine("It is 5 pm.", READ, true);
  assert.deepEqual(line?.pieces, []);
  assert.equal(line?.other, "Read them as words");
});

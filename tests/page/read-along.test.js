// A text and when its words are heard.

import assert from "node:assert/strict";
import test from "node:test";

import { placed } from "../../assets/page/player/words.js";

const times = (...words) => words.map((text, i) => ({ text, start: i, end: i + 1 }));
const told = (text, ...words) => placed(text, times(...words)).map((piece) => (piece.start === undefined ? piece.text : [piece.text, piece.start]));

test("words stand where they were typed, each once, and all between them stays", () => {
  assert.deepEqual(told("“An apple, an egg.” [pause:1s] An end", "An", "apple", "an", "egg", "An", "end"), [
    "“", ["An", 0], " ", ["apple", 1], ", ", ["an", 2], " ", ["egg", 3], ".” [pause:1s] ", ["An", 4], " ", ["end", 5],
  ]);
  assert.deepEqual(told("Cut off here", "Cut"), [["Cut", 0], " off here"]);
});

test("a text without times has no pieces, and a word that is not there is left out", () => {
  assert.deepEqual(placed("Hello", []), []);
  assert.deepEqual(told("a b", "a", "x", "b"), [["a", 0], " ", ["b", 2]]);
});

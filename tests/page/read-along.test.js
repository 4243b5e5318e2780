// A text and when its words are heard.

import assert from "node:assert/strict";
import test from "node:test";

import { bySentence, placed } from "../../assets/page/player/words.js";

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

test("pieces come by sentences: what stands before the first word of one is of the one before", () => {
  const pieces = placed("One. [sigh] Two, three! Four", times("One", "Two", "three", "Four"));
  const groups = (...starts) => bySentence(pieces, starts.map((start) => ({ start }))).map((group) => group.map(({ text }) => text).join(""));
  assert.deepEqual(groups(0, 1, 3), ["One. [sigh] ", "Two, three! ", "Four"]);
  assert.deepEqual(groups(), ["One. [sigh] Two, three! Four"]);
  assert.deepEqual(bySentence([], [{ start: 0 }]), []);
  assert.deepEqual(pieces.map(({ at }) => at), [0, 3, 12, 15, 17, 22, 24]);
});

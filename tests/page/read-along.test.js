// A text and the times of its words.

import assert from "node:assert/strict";
import test from "node:test";

import { bySentence, joined, placed, replaced, sameWordAt, wordsOf } from "../../assets/page/player/words.js";

const times = (...words) => words.map((text, i) => ({ text, start: i, end: i + 1 }));
const placedWords = (text, ...words) => placed(text, times(...words)).map((piece) => (piece.start === undefined ? piece.text : [piece.text, piece.start]));

test("each word is placed once, where it was typed, and all text in between is kept", () => {
  assert.deepEqual(placedWords("“An apple, an egg.” [pause:1s] An end", "An", "apple", "an", "egg", "An", "end"), [
    "“", ["An", 0], " ", ["apple", 1], ", ", ["an", 2], " ", ["egg", 3], ".” [pause:1s] ", ["An", 4], " ", ["end", 5],
  ]);
  assert.deepEqual(placedWords("Cut off here", "Cut"), [["Cut", 0], " off here"]);
});

test("a text without times has no pieces, and a word missing from the text is left out", () => {
  assert.deepEqual(placed("Hello", []), []);
  assert.deepEqual(placedWords("a b", "a", "x", "b"), [["a", 0], " ", ["b", 2]]);
});

test("pieces are grouped by sentence, with the tags and quotation marks before its first word", () => {
  const pieces = placed("One. [sigh] Two, three! Four", times("One", "Two", "three", "Four"));
  const groups = (...starts) => bySentence(pieces, starts.map((start) => ({ start }))).map((group) => group.map(({ text }) => text).join(""));
  assert.deepEqual(groups(0, 1, 3), ["One. ", "[sigh] Two, three! ", "Four"]);
  assert.deepEqual(groups(), ["One. [sigh] Two, three! Four"]);
  assert.deepEqual(bySentence([], [{ start: 0 }]), []);
  assert.deepEqual(pieces.map(({ at }) => at), [0, 3, 12, 15, 17, 22, 24]);
});

test("a sentence for editing includes its quotation marks, but not the speaker of the next turn", () => {
  const text = "Sie rief: „Nein.“ [whisper] „Doch.“\nAnna: Two.";
  const pieces = placed(text, times("Sie", "rief", "Nein", "Doch", "Two"));
  const sentences = bySentence(pieces, [0, 3, 4].map((start) => ({ start }))).map(wordsOf);
  assert.deepEqual(sentences.map((sentence) => sentence.text), ["Sie rief: „Nein.“", "[whisper] „Doch.“", "Two."]);
  for (const { at, text: words } of sentences) assert.equal(text.slice(at, at + words.length), words);
});

test("an edit replaces only what differs, but at least one character", () => {
  const check = (before, after) => {
    const { start, end, replacement } = replaced(before, after);
    assert.equal(before.slice(0, start) + replacement + before.slice(end), after);
    assert.ok(end > start);
    return replacement;
  };
  assert.equal(check("Three four.", "Three hundred."), "hundred");
  assert.equal(check("A b.", "A b. C."), ". C.");
  assert.equal(check("A b.", "New A b."), "New A");
  assert.equal(check("🎉 a", "🎈 a"), "🎈");
  assert.equal(check("One.", ""), "");
});

test("the same word is found in another take, even around differing words", () => {
  const slow = (...words) => words.map((text, i) => ({ text, start: 2 * i, end: 2 * i + 2 }));
  assert.equal(sameWordAt(times("a", "b", "c"), slow("a", "b", "c"), 1.5), 3);
  assert.equal(sameWordAt(times("a", "x", "c"), slow("a", "y", "z", "c"), 2.5), 7);
  assert.equal(sameWordAt(times("a", "x", "c"), slow("a", "y", "z", "c"), 1), 2);
  assert.equal(sameWordAt(times("a"), [], 0.5), 0.5);
  assert.equal(sameWordAt([{ text: "a", start: 0, end: 1 }, { text: "b", start: 3, end: 4 }], times("a", "b"), 2), 1, "in a longer pause");
});

test("line breaks are joined with the spaces around them, in linear time", { timeout: 5000 }, () => {
  assert.equal(joined("One \n\n  two  three\n", "\n"), "One\ntwo  three\n");
  assert.equal(joined(" ".repeat(200_000), " ").length, 200_000);
});

// The reading view: how parts become paragraphs, and which character has which mark.

import assert from "node:assert/strict";
import test from "node:test";

import { marksOf } from "../../assets/page/cast/people.js";
import { paragraphsOf } from "../../assets/page/longform/prose.js";

const part = (text, more = {}) => ({ text, chapter: "", continues: null, ...more });
const texts = (parts) => paragraphsOf(parts).map(({ pieces }) => pieces.map(({ text }) => text));

test("a part that continues joins the paragraph before it, and a part may have several paragraphs", () => {
  const parts = [part("I", { chapter: "I" }), part("“Come,”"), part("he said.", { continues: true }), part("It rained.\n\nNobody came.", { continues: false })];
  assert.deepEqual(texts(parts), [["I"], ["“Come,”", "he said."], ["It rained."], ["Nobody came."]]);
  assert.deepEqual(paragraphsOf(parts).map(({ isTitle }) => isTitle), [true, false, false, false]);
  assert.deepEqual(texts([part("Mid-sentence.", { continues: true })]), [["Mid-sentence."]]);
});

test("the ten that speak most have marks of their own, and the silent none", () => {
  const characters = Array.from({ length: 13 }, (_, i) => ({ id: `c${i}`, lines: i }));
  const marks = marksOf(characters);
  assert.equal(marks.get("c12"), 0);
  assert.deepEqual([marks.get("c3"), marks.get("c2"), marks.get("c1")], [9, 10, 10]);
  assert.equal(marks.has("c0"), false);
});

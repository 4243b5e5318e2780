// The page's texts about a demo model.

import assert from "node:assert/strict";
import test from "node:test";

import { demoLine, modelWords } from "../../assets/page/shell/demo-words.js";

test("the line names the languages stated by the model, or none if it states none", () => {
  assert.equal(demoLine(["en"]), "This is a small demo model: English only, with synthetic voices; it cannot copy a real voice.");
  assert.match(demoLine(["en", "de"]), /: English and German only, /);
  assert.match(demoLine([]), /model with synthetic voices/);
});

test("the model's name is shown with its size", () => {
  assert.match(modelWords("fry", 24_600_000), /^fry is a demo with 25 million parameters/);
});

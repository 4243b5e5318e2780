// The models dialog: its texts about a model, and when it examines the machine again.

import assert from "node:assert/strict";
import test from "node:test";

import { fitWords, languageWords, speedWords } from "../../assets/page/models/model-card.js";
import { hasEndedSince } from "../../assets/page/models/models-dialog.js";

const GIB = 2 ** 30;

test("a speed is given as faster or slower than real time", () => {
  assert.equal(speedWords(0.5), "2.0 times as fast as real time");
  assert.equal(speedWords(32), "takes 32 times as long as the speech");
  assert.equal(speedWords(null), "not known for this device");
});

test("the text says whether a model fits, and what would help", () => {
  const need = (weights, fits, gib) => ({ weights, fits, memory_bytes: gib * GIB });
  assert.equal(fitWords({ fits: true, weights: "int8", needs: [] }), "fits, as int8");
  assert.equal(fitWords({ fits: false, needs: [need("bf16", false, 20), need("int8", true, 9)] }), "fits only with STUDIO_WEIGHTS=int8");
  assert.match(fitWords({ fits: false, needs: [need("bf16", false, 20), need("int6", false, 7)], free_bytes: 4 * GIB }), /needs at least 7.0 GiB, 4.0 GiB available/);
  assert.equal(fitWords({ error: "config.json is missing" }), "config.json is missing");
});

test("languages are named, with a note if there are more", () => {
  assert.equal(languageWords({ languages: ["en", "de"], more_languages: false }), "English and German");
  assert.equal(languageWords({ languages: ["en"], more_languages: true }), "English, and many more");
  assert.equal(languageWords({ languages: [] }), "not stated");
});

test("the list is fetched again once a download or a switch has ended", () => {
  const state = (running, target = null, status = "ready") => ({ downloads: { a: { running } }, switching_to: target, status });
  assert.equal(hasEndedSince({}, state(true)), false);
  assert.equal(hasEndedSince(state(true), state(true)), false);
  assert.equal(hasEndedSince(state(true), state(false)), true);
  assert.equal(hasEndedSince(state(false, "a"), state(false, "a", "starting")), false);
  assert.equal(hasEndedSince(state(false, "a"), state(false)), true);
});

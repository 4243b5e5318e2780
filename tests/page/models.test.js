// The models dialog: its texts about a model, and when it examines the machine again.

import assert from "node:assert/strict";
import test from "node:test";

import { fitWords, languageWords, recommended, speedWords } from "../../assets/page/models/model-card.js";
import { hasEndedSince } from "../../assets/page/models/models-dialog.js";

const GIB = 2 ** 30;

test("a speed is given as the time that ten minutes take", () => {
  assert.equal(speedWords(0.5), "10 minutes of speech take about 5 min 0 s");
  assert.equal(speedWords(32), "10 minutes of speech take about 5 h 20 min");
  assert.equal(speedWords(null), "not known for this device");
});

test("the text says whether a model fits, and what would help", () => {
  const need = (weights, fits, gib) => ({ weights, fits, memory_bytes: gib * GIB });
  assert.equal(fitWords({ fits: true, weights: "int8", needs: [] }), "fits in memory");
  assert.equal(fitWords({ fits: false, needs: [need("bf16", false, 20), need("int8", true, 9)] }), "fits only with STUDIO_WEIGHTS=int8");
  assert.match(fitWords({ fits: false, needs: [need("bf16", false, 20), need("int6", false, 7)], free_bytes: 4 * GIB }), /needs at least 7.5 GB, 4.3 GB available/);
  assert.equal(fitWords({ error: "config.json is missing" }), "config.json is missing");
});

test("one model is recommended: the largest that is faster than speech, else the fastest", () => {
  const model = (name, factor, more = {}) => ({ name, clones: true, fits: true, path: null, repo: name, weights: "a", needs: [{ dtype: "a", real_time_factor: factor }], ...more });
  const names = (...models) => recommended(models)?.name;
  assert.equal(names(model("demo", 0.1, { clones: false }), model("small", 0.3), model("large", 0.8), model("huge", 3)), "large");
  assert.equal(names(model("small", 9), model("large", 30)), "small");
  assert.equal(names(model("free", 9, { licence: "Apache-2.0" }), model("unfree", 8, { licence: "CC-BY-NC-4.0" })), "free");
  assert.equal(names(model("small", 0.3), model("large", 0.8, { fits: false })), "small");
  assert.equal(names(model("demo", 0.1, { clones: false })), undefined);
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

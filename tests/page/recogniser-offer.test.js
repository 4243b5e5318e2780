// The texts shown if no recogniser is set up: to the owner, to others, during the download, and after it has failed.

import assert from "node:assert/strict";
import test from "node:test";

import { wordsFor } from "../../assets/page/new-voice/recogniser-offer.js";

const OFFER = { name: null, installed: true, install: "pip install it", offered: { model: "a/b", licence: "MIT", bytes: 148e6 }, may_fetch: true, fetching: null, error: null };

test("size and licence are shown before the download, and the reason after it has failed", () => {
  assert.match(wordsFor(OFFER), /^No speech recogniser .* Whisper base \(a\/b on Hugging Face\) once: 148 MB, licence MIT\./);
  assert.match(wordsFor({ ...OFFER, error: "the disk is full" }), /^Download failed: the disk is full\. The studio can download/);
  assert.match(wordsFor({ ...OFFER, installed: false }), /install the package faster-whisper .*\(pip install it\)/);
});

test("only the owner gets an offer", () => {
  assert.equal(wordsFor({ ...OFFER, may_fetch: false }), "No speech recogniser is set up here. The owner of this studio can add one on this page.");
});

test("the download's progress is shown", () => {
  assert.equal(wordsFor({ ...OFFER, fetching: { bytes: 0, total: 0 } }), "Downloading …");
  assert.equal(wordsFor({ ...OFFER, fetching: { bytes: 43.4e6, total: 148e6 } }), "Downloading: 43 of 148 MB");
});

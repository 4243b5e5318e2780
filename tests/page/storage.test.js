// What a person left in the browser: none of it outlives a sign-out.

import assert from "node:assert/strict";
import { test } from "node:test";

class Store {
  getItem(name) {
    return this[name] ?? null;
  }

  setItem(name, value) {
    this[name] = value;
  }

  removeItem(name) {
    delete this[name];
  }
}

test("a sign-out removes every entry, whatever its name, and nothing of other programs", async () => {
  globalThis.localStorage = Object.assign(new Store(), { "of-another-program": "1" });
  globalThis.sessionStorage = new Store();
  const { forget, keepByTab, kept } = await import("../../assets/page/lib/storage.js");
  const { noteStop } = await import("../../assets/page/longform/stopped-at.js");
  noteStop("proj_1", { part: "part_1", seconds: 7 });
  keepByTab("draft", "Dear diary");
  assert.equal(kept("draft", null), "Dear diary");
  forget();
  assert.deepEqual(Object.keys({ ...globalThis.localStorage, ...globalThis.sessionStorage }), ["of-another-program", "voice-studio-left"]);
});

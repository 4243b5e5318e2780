// What a person left in the browser: none of it outlives a sign-out.

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
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
  const { forget, keepInTab, keptInTab, keep } = await import("../../assets/page/lib/storage.js");
  const { noteStop } = await import("../../assets/page/longform/stopped-at.js");
  noteStop("proj_1", { part: "part_1", seconds: 7 });
  for (const write of [keepInTab, keep]) write("draft", "Dear diary");
  assert.equal(keptInTab("draft", null), "Dear diary");
  const told = [];
  let isShown = false; // before, the page is not drawn
  globalThis.dispatchEvent = (event) => Boolean(told.push(event.type)) && !isShown;
  const set = Store.prototype.setItem;
  Store.prototype.setItem = () => {
    throw new DOMException("full", "QuotaExceededError");
  };
  keepInTab("draft", "Dear diary, again");
  told.length = 0;
  isShown = true;
  for (const write of [keepInTab, keep]) write("draft", "Dear diary, and again");
  assert.deepEqual(told, ["storagefull"], "it is told once, as soon as it is seen");
  Store.prototype.setItem = set;
  forget();
  assert.deepEqual(Object.keys({ ...globalThis.localStorage, ...globalThis.sessionStorage }), ["of-another-program", "voice-studio-/:left"]);
});

test("what another owner of a key left is forgotten, in the browser and in the tab", async () => {
  const { forgetOthers } = await import("../../assets/page/lib/storage.js");
  const left = (owner) => ({ "voice-studio-/:owner": JSON.stringify(owner), "voice-studio-/:1": "{}" });
  const names = () => [globalThis.localStorage, globalThis.sessionStorage].map((storage) => "voice-studio-/:1" in storage);
  const clear = () => [globalThis.localStorage, globalThis.sessionStorage].forEach((storage) => Object.keys(storage).forEach((name) => storage.removeItem(name)));
  const cookies = [["aa", "=bb", true], ["aa", "=aa", false], ["aa", "", false], ["aa", "_81=bb", true, "81"], ["aa", "=bb", false, "81"]];
  for (const [owner, now, isForgotten, port] of cookies) {
    globalThis.location = /** @type {any} */ ({ port });
    clear();
    for (const storage of [globalThis.localStorage, globalThis.sessionStorage]) Object.assign(storage, left(owner));
    globalThis.document = /** @type {any} */ ({ cookie: `other=1${now && `; studio_owner${now}`}` });
    assert.equal(forgetOthers(), isForgotten);
    assert.deepEqual(names(), [!isForgotten, !isForgotten]);
  }
});

test("studios under several paths of a host leave each other's entries, and the first finds those of before paths were stored", async () => {
  const opened = async (/** @type {string} */ pathname) => {
    globalThis.location = /** @type {any} */ ({ pathname });
    return import(`../../assets/page/lib/storage.js?${pathname}`);
  };
  globalThis.document = /** @type {any} */ ({ cookie: "studio_owner=aa" });
  globalThis.sessionStorage = new Store();
  globalThis.localStorage = Object.assign(new Store(), { "voice-studio-owner": '"bb"', "voice-studio-1": '"Of Ben"' });
  const trial = await opened("/trial/");
  assert.equal(trial.kept("1", null), null, "another owner's, who may have left it in another studio");
  trial.keep("1", "Of Anna, on trial");
  globalThis.document.cookie = "studio_owner=bb";
  const main = await opened("/");
  assert.deepEqual([main.kept("1", null), "voice-studio-1" in globalThis.localStorage], ["Of Ben", false]);
  assert.equal(trial.kept("1", null), "Of Anna, on trial", "Ben's sign-in to one studio leaves what Anna keeps in the other");
  main.forget();
  assert.deepEqual(Object.keys(globalThis.localStorage).sort(), ["voice-studio-/:left", "voice-studio-/trial/:1", "voice-studio-/trial/:owner"]);
});

test("a page that is returned to by Back, after somebody else has signed in, is loaded again and keeps nothing of the one before", async () => {
  const listeners = {};
  let loads = 0;
  Object.assign(globalThis, { addEventListener: (type, listener) => (listeners[type] = listener), localStorage: new Store(), sessionStorage: new Store() });
  globalThis.location = /** @type {any} */ ({ pathname: "/back/", reload: () => (loads += 1) });
  globalThis.document = /** @type {any} */ ({ cookie: "studio_owner=aa" });
  const { keep } = await import(`../../assets/page/lib/storage.js?/back/`);
  listeners.pageshow({ persisted: true });
  globalThis.document.cookie = "studio_owner=bb";
  listeners.pageshow({ persisted: false });
  keep("1", "Of Anna");
  assert.equal(loads, 0);
  listeners.pageshow({ persisted: true });
  keep("1", "Of Anna, again");
  assert.deepEqual([loads, globalThis.localStorage.getItem("voice-studio-/back/:1")], [1, '"Of Anna"']);
});

test("no two parts of the page keep something under the same name", () => {
  const names = globSync("assets/page/**/*.js").flatMap((file) => [...readFileSync(file, "utf8").matchAll(/^const [A-Z]+ = "([a-z-]+-\d)"/gm)].map(([, name]) => name));
  assert.ok(names.length > 10);
  assert.deepEqual(names.filter((name, i) => names.indexOf(name) !== i), []);
});

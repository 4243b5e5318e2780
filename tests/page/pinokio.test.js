// Pinokio's menu offers, in each state, what can be done then, and every entry is a script or an address.

import { existsSync } from "node:fs";
import { test } from "node:test";
import assert from "node:assert/strict";
import pinokio from "../../pinokio.js";

const ROOT = new URL("../../", import.meta.url);

/** The menu, with the default first. */
async function menu(/** @type {string} */ running, hasEnvironment = true, url = "") {
  const info = {
    running: (/** @type {string} */ script) => script === running,
    exists: (/** @type {string} */ path) => path === "pinokio/env" && hasEnvironment,
    local: () => (url ? { url } : {}),
  };
  const entries = await pinokio.menu({}, info);
  for (const { href } of entries) assert.ok(href === url || existsSync(new URL(href, ROOT)), href);
  assert.deepEqual(entries.map((entry) => Boolean(entry.default)).filter(Boolean), [true]);
  return entries.map((entry) => entry.text);
}

test("the menu installs, starts, opens and updates", async () => {
  assert.ok(existsSync(new URL(pinokio.icon, ROOT)));
  assert.deepEqual(await menu("", false), ["Install"]);
  assert.deepEqual(await menu("pinokio/install.json", false), ["Install"]);
  assert.deepEqual(await menu(""), ["Start", "Update"]);
  assert.deepEqual(await menu("pinokio/update.json"), ["Update"]);
  assert.deepEqual(await menu("pinokio/start.json"), ["Terminal"]);
  assert.deepEqual(await menu("pinokio/start.json", true, "http://127.0.0.1:7860"), ["Open", "Terminal"]);
});

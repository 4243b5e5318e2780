// Changes of a project that the studio has not saved: refused ones are kept or told, and others are sent again without them.

import assert from "node:assert/strict";
import test from "node:test";

import { keep, kept } from "../../assets/page/lib/storage.js";
import { Unsaved } from "../../assets/page/longform/unsaved.js";

const page = /** @type {any} */ (globalThis);
page.window = { location: { origin: "http://studio", href: "http://studio/" } };
page.document = new EventTarget();
page.addEventListener = () => {};

/** Opens a project that refuses changes of these fields, unless its texts are `good`; returns it, and all changes that were sent. */
function opened(context, refuses = /** @type {string[]} */ ([])) {
  const sent = [];
  context.mock.method(globalThis, "fetch", async (_, { body }) => {
    const changes = JSON.parse(body);
    sent.push(changes);
    const param = Object.keys(changes).find((name) => refuses.includes(name) && changes[name] !== "good");
    return param ? Response.json({ error: { message: `${param} is wrong`, param } }, { status: 400 }) : Response.json({ text: changes.text });
  });
  const leave = new AbortController();
  context.after(() => leave.abort());
  const texts = ["title", "author"].map((name) => `[data-part="${name}"]`);
  const root = Object.assign(new EventTarget(), { querySelector: (selector) => ({ matches: () => texts.includes(selector) }) });
  const unsaved = new Unsaved("proj_1", { root: /** @type {any} */ (root), fields: ["title"], signal: leave.signal });
  const told = [];
  unsaved.addEventListener("refused", ({ detail }) => told.push(detail.problem.param));
  return { unsaved, sent, told, changes: () => kept("unsaved-1", {}).proj_1?.[""]?.changes };
}

test("of changes sent later, only the refused ones are left out and told: a choice reverts, and a text is kept until it is changed", async (context) => {
  keep("unsaved-1", { proj_1: { "": { changes: { voice: "gone", title: "A title", author: "{x}" }, before: {} } } });
  const { unsaved, sent, told, changes } = opened(context, ["voice", "author"]);
  await unsaved.resend(true, () => true);
  assert.deepEqual(sent.map((one) => Object.keys(one).join()), ["voice,title,author", "title,author", "title"]);
  assert.deepEqual(changes(), { author: "{x}" });
  assert.equal(told.length, 1);
  assert.equal(unsaved.refusal?.param, "author");
  unsaved.note("", { speed: 2 }, { speed: 1 });
  await unsaved.save("");
  assert.deepEqual(sent.at(-1), { speed: 2 }, "a refused value is not sent again unchanged");
  unsaved.note("", { author: "good" }, { author: "" });
  await unsaved.save("");
  assert.deepEqual([sent.at(-1), changes(), unsaved.size], [{ author: "good" }, undefined, 0]);
});

test("a second window leaves alone what is being typed in the first", async (context) => {
  const first = opened(context);
  first.unsaved.note("part_1", { text: "Half a sen" }, { text: "" });
  const second = opened(context);
  const shown = [];
  second.unsaved.addEventListener("show", ({ detail }) => shown.push(detail.key));
  await second.unsaved.resend(true, () => true);
  assert.deepEqual([second.sent, second.unsaved.size, shown], [[], 0, ["part_1"]]);
  assert.deepEqual(kept("unsaved-1", {}).proj_1.part_1.changes, { text: "Half a sen" });
  first.unsaved.note("part_1", { text: "Half a sentence." }, { text: "" });
  await first.unsaved.save("part_1");
  assert.deepEqual(second.sent, [{ text: "Half a sentence.", text_before: "" }]);
});

// Changes of a project that the studio has not saved: refused ones are kept or told, and others are sent again without them.

import assert from "node:assert/strict";
import test from "node:test";

import { Drafts } from "../../assets/page/lib/drafts.js";
import { keep, keepInTab, kept } from "../../assets/page/lib/storage.js";
import { Unsaved } from "../../assets/page/longform/unsaved.js";

const page = /** @type {any} */ (globalThis);
page.window = { location: { origin: "http://studio", href: "http://studio/" } };
page.document = new EventTarget();
page.addEventListener = () => {};

/**
 * Opens a project that refuses changes of these fields, unless its texts are `good`, and of those that someone else has `changed` unless they are seen;
 * returns it, and all changes that were sent.
 */
async function opened(context, refuses = /** @type {string[]} */ ([]), changed = /** @type {Record<string, any>} */ ({})) {
  const sent = [];
  context.mock.method(globalThis, "fetch", async (_, { body }) => {
    const { before, ...changes } = JSON.parse(body);
    sent.push(changes);
    const other = Object.keys(changes).find((name) => name in changed && before[name] !== changed[name]);
    if (other) return Response.json({ error: { message: `${other} is different`, param: other } }, { status: 412 });
    const param = Object.keys(changes).find((name) => refuses.includes(name) && changes[name] !== "good");
    return param ? Response.json({ error: { message: `${param} is wrong`, param } }, { status: 400 }) : Response.json({ text: changes.text, title: `${changes.title} (saved)`, settings: {} });
  });
  const [drafts, leave] = [await Drafts.of("proj_1"), new AbortController()];
  const close = () => {
    leave.abort();
    drafts.close();
  };
  context.after(close);
  const texts = ["title", "author"].map((name) => `[data-part="${name}"]`);
  const root = Object.assign(new EventTarget(), { querySelector: (selector) => ({ matches: () => texts.includes(selector) }) });
  const unsaved = new Unsaved(drafts, { root: /** @type {any} */ (root), fields: { title: "title", "project-voice": "voice" }, signal: leave.signal });
  const told = [];
  unsaved.addEventListener("refused", ({ detail }) => told.push(detail.problem.param));
  return { unsaved, drafts, sent, told, close, changes: () => drafts.get("part", "")?.changes };
}

test("of changes sent later, only the refused ones are left out and told: a choice reverts, and a text is kept until it is changed", async (context) => {
  keep("unsaved-1", { proj_1: { "": { changes: { voice: "gone", title: "A title", author: "{x}" }, before: {} } } });
  const { unsaved, sent, told, changes } = await opened(context, ["voice", "author"]);
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

test("a window takes over what closed ones have left, and no window loses what another keeps", async (context) => {
  const [first, second] = [await opened(context), await opened(context)];
  first.unsaved.note("part_1", { text: "Half a sen" }, { text: "" }, 3);
  first.drafts.keep("title", "part_1", { typed: "Mine" });
  second.unsaved.write("part_1", "A new p", 3);
  second.drafts.keep("title", "part_1", { typed: "Theirs" });
  const third = await opened(context);
  await third.unsaved.resend(true, () => true);
  assert.deepEqual([third.sent, third.unsaved.size, third.drafts.all("title")], [[], 0, []], "both are still open");
  first.close();
  second.close();
  const fourth = await opened(context);
  const { changes, before, below, position } = fourth.unsaved.of("part_1") ?? {};
  assert.deepEqual([changes, before, below, position], [{ text: "Half a sen" }, { text: "" }, "A new p", 3]);
  assert.deepEqual(fourth.drafts.all("title"), [["part_1", { typed: "Theirs" }]]);
  await fourth.unsaved.resend(true, () => true);
  assert.deepEqual(fourth.sent, [{ text: "Half a sen", text_before: "" }]);
  fourth.unsaved.write("part_1", "");
  fourth.drafts.keep("title", "part_1", null);
  first.unsaved.note("part_1", { text: "Half a sen" }, { text: "" }); // an answer that comes late
  fourth.close();
  const fifth = await opened(context);
  assert.deepEqual([fifth.unsaved.size, fifth.drafts.all("title")], [0, [["part_1", { typed: "Mine" }]]]);
  fifth.drafts.keep("title", "part_1", null);
});

let tabs = 0;

/** Opens a tab that has this in its own storage: of its drafts' name and its script, which a reloaded tab and a copy of another one have. */
async function tabWith(context, name = /** @type {string | null} */ (null), script = /** @type {string | null} */ (null)) {
  keepInTab("tab-1", name);
  keepInTab("1", script);
  keepInTab("compare-1", null);
  const { openTab, keepByTab, keptByTab } = await import(`../../assets/page/lib/by-tab.js?${(tabs += 1)}`);
  const drafts = await openTab();
  const close = () => drafts.channel.close();
  context.after(close);
  return { drafts, keepByTab, close, shows: ["1", "compare-1"].map((what) => keptByTab(what, "")), script: () => drafts.get("tab", "1") };
}

test("each tab keeps its own script and comparison, a new one takes over the newest of closed tabs, and none is lost", async (context) => {
  keep("1", "Of an older page");
  const first = await tabWith(context);
  assert.deepEqual(first.shows, ["Of an older page", ""]);
  first.keepByTab("1", "A long script");
  first.keepByTab("compare-1", "Its rows");
  const second = await tabWith(context);
  assert.deepEqual(second.shows, ["A long script", "Its rows"], "it starts like an open one");
  second.keepByTab("1", "Short");
  second.keepByTab("compare-1", "Other rows");
  first.close();
  const again = await tabWith(context, first.drafts.name);
  assert.deepEqual(again.shows, ["A long script", "Its rows"], "after a reload");
  again.close();
  second.close();
  const third = await tabWith(context);
  assert.deepEqual(third.shows, ["Short", "Other rows"]);
  const fourth = await tabWith(context);
  assert.deepEqual(fourth.shows, ["A long script", "Its rows"]);
  const copy = await tabWith(context, fourth.drafts.name, "A long script");
  while (copy.drafts.name === fourth.drafts.name) await new Promise(setImmediate);
  copy.keepByTab("1", "A longer script");
  fourth.close();
  copy.close();
  assert.deepEqual([await tabWith(context), await tabWith(context)].map(({ script }) => script()), ["A longer script", "A long script"]);
});

test("of what many closed tabs have left, the newest is kept", async (context) => {
  const left = (/** @type {string[]} */ ...scripts) => keep("unsaved-1", Object.fromEntries(scripts.map((script, i) => [`tab/of ${i}`, { "tab/1": script }])));
  const waiting = () => Object.entries(kept("unsaved-1", {})).filter(([name]) => !name.endsWith(drafts.name)).map(([, { "tab/1": script }]) => script);
  left(...Array.from({ length: 30 }, (_, i) => `Script ${i}`));
  let { drafts } = await tabWith(context);
  assert.deepEqual([drafts.get("tab", "1"), waiting()], ["Script 29", Array.from({ length: 20 }, (_, i) => `Script ${i + 9}`)]);
  left("Old", "x".repeat(2_000_000), "Newer", "Newest");
  ({ drafts } = await tabWith(context));
  assert.deepEqual([drafts.get("tab", "1"), waiting()], ["Newest", ["Newer"]]);
});

test("a text of the project that someone else has changed is kept until one of both is chosen, and a choice reverts", async (context) => {
  const { unsaved, sent, changes } = await opened(context, [], { title: "Theirs", author: "Eve", speed: 2 });
  unsaved.note("", { title: "Mine", author: "Ann", speed: 3 }, { title: "Old", author: "", speed: 1 });
  await assert.rejects(unsaved.save(""), { status: 412 });
  assert.deepEqual(changes(), { title: "Mine", author: "Ann" });
  assert.deepEqual([unsaved.conflict[0], unsaved.conflict[1]?.param], ["title", "title"]);
  await unsaved.overwrite("", "Theirs", "title");
  assert.deepEqual([sent.at(-1), unsaved.conflict[0]], [{ title: "Mine" }, "author"]);
  page.document.activeElement = null;
  unsaved.see({ title: "Mine", settings: { author: "Eve" } });
  unsaved.note("", { author: "Anne" }); // typed once more, after it was told
  await assert.rejects(unsaved.save(""), { status: 412 });
  await unsaved.overwrite("", "Eve", "author");
  assert.deepEqual([sent.at(-1), unsaved.size], [{ author: "Anne" }, 0]);
  unsaved.note("", { author: "Mine again" }, { author: "Else" });
  await assert.rejects(unsaved.save(""), { status: 412 });
  unsaved.note("", { author: "Eve" }, { author: "Eve" });
  assert.equal(unsaved.size, 0, "the other text is used");
});

test("a change during a request is based on what was saved", async (context) => {
  const { unsaved, sent } = await opened(context);
  unsaved.note("", { title: "A" }, { title: "" });
  const first = unsaved.save("");
  while (!unsaved.of("")?.isSending) await null;
  unsaved.note("", { title: "B" }, { title: "" });
  await first;
  assert.equal(unsaved.of("")?.before.title, "A (saved)");
  await Promise.all([unsaved.save(""), unsaved.save("")]); // typed twice meanwhile
  assert.deepEqual(sent, [{ title: "A" }, { title: "B" }]);
});

test("a change is based on an earlier one that was saved, though the answer was lost", async (context) => {
  const { unsaved, sent } = await opened(context, [], { title: "Mine" });
  context.mock.method(globalThis, "fetch", async () => Promise.reject(new TypeError("the connection broke")), { times: 2 });
  unsaved.note("", { title: "Mine" }, { title: "Old" });
  await assert.rejects(unsaved.save(""), { isLost: true });
  unsaved.note("", { title: "Mine, more" }, { title: "Old" });
  await assert.rejects(unsaved.save(""), { isLost: true });
  page.document.activeElement = null;
  unsaved.see({ title: "Mine", settings: {} });
  await unsaved.resend(true, () => true);
  assert.deepEqual([sent, unsaved.size], [[{ title: "Mine, more" }], 0]);
});

test("a list that has the focus shows what is chosen now, which the next choice is based on", async (context) => {
  const { unsaved } = await opened(context);
  const field = (part, isList) => ({ dataset: { part }, matches: () => isList });
  unsaved.see({ title: "Old", settings: { voice: "alan" } });
  page.document.activeElement = field("project-voice", true);
  unsaved.see({ title: "Old", settings: { voice: null } });
  unsaved.note("", { voice: "boris" });
  page.document.activeElement = field("title", false);
  unsaved.see({ title: "Theirs", settings: { voice: null } });
  unsaved.note("", { title: "Mine" });
  assert.deepEqual(unsaved.of("")?.before, { voice: null, title: "Old" });
});

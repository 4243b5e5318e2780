// Arranging the parts of a project on a slow studio, after lost answers, and beside what others do; Undo of its steps.

import assert from "node:assert/strict";
import test from "node:test";

import { Drafts } from "../../assets/page/lib/drafts.js";
import { halves } from "../../assets/page/longform/parts/typed-on.js";

const page = /** @type {any} */ (globalThis);
const node = () => Object.assign(new EventTarget(), { append() {}, setAttribute() {}, matches: () => false, hidden: true, textContent: "", style: {} });
page.window = { location: { origin: "http://studio", href: "http://studio/" } };
page.document = Object.assign(new EventTarget(), { createElement: node, querySelector: () => null });
page.addEventListener = () => {};
page.Element = class {};
const { Arranging } = await import("../../assets/page/longform/parts/arranging.js");
const { Unsaved } = await import("../../assets/page/longform/unsaved.js");

/** Resolves after all promises that can be settled. */
function settled() {
  return new Promise((done) => {
    setImmediate(done);
  });
}

/** A studio with these texts as parts, whose ids are their first words. `isLosing`: it does what it is asked, but its answer to a change does not arrive; `isAway`: nothing can be read. */
class Studio {
  parts;
  isLosing = false;
  isAway = false;
  #trash = new Map();

  constructor(...texts) {
    this.parts = texts.map((text) => this.#part(text));
  }

  get texts() {
    return this.parts.map(({ text }) => text);
  }

  #part(text, id = text.split(/[ .]/)[0]) {
    return { id, text, position: 0 };
  }

  insert(at, text, id) {
    this.parts.splice(at, 0, this.#part(text, id));
    return this.parts[at];
  }

  /** @param {string} url @param {any} [options] */
  fetch(url, { method = "GET", body = "{}" } = {}) {
    for (const [i, part] of this.parts.entries()) part.position = i;
    const { pathname, searchParams } = new URL(url, "http://studio");
    const [, path, id, verb] = /proj_1\/(parts|undo)\/?([^/]*)\/?([^/]*)/.exec(pathname) ?? [];
    if (method === "GET" && this.isAway) return Promise.reject(new TypeError("no connection"));
    const [offset, limit] = ["offset", "limit"].map((name) => Number(searchParams.get(name)));
    const answer = path === "undo" ? {} : method === "GET" ? { data: (id === "ids" ? this.parts.map((part) => part.id) : structuredClone(this.parts)).slice(offset, offset + limit), total: this.parts.length } : this.#change(id, verb, JSON.parse(body));
    if (method !== "GET" && this.isLosing) return Promise.reject(new TypeError("the connection broke"));
    return Promise.resolve(Response.json(structuredClone(answer)));
  }

  #change(id, verb, { text, after, position, position_before: before, following, at, ids }) {
    const number = this.parts.findIndex((part) => part.id === id);
    const part = this.parts[number];
    if (verb === "move") {
      assert.ok([undefined, number].includes(before));
      this.parts.splice(position, 0, ...this.parts.splice(number, 1));
    } else if (verb === "split") {
      part.text = text.slice(0, at).trim();
      return { data: [part, this.insert(number + 1, text.slice(at).trim())] };
    } else if (verb === "merge") {
      const [second] = this.parts.splice(number + 1, 1);
      assert.equal(second.id, following);
      this.#trash.set(second.id, { second, undo: () => (part.text = part.text.slice(0, -second.text.length - 1)) });
      part.text = text ?? `${part.text} ${second.text}`;
    } else if (id === "delete") {
      for (const one of ids) this.#trash.set(one, { second: this.parts.find((other) => other.id === one), undo: () => {} });
      this.parts = this.parts.filter((one) => !ids.includes(one.id));
      return { undo_seconds: 60 };
    } else if (id === "restore") {
      for (const one of ids) {
        const { second, undo } = this.#trash.get(one);
        undo();
        this.parts.splice(second.position, 0, second);
      }
      return {};
    } else if (id) Object.assign(part, { text });
    else return this.insert(this.parts.findIndex((one) => one.id === after) + 1, text, `new ${this.parts.length}`);
    return part;
  }
}

/** Opens a project with these parts; row: one with a part's text and the cursor in it; undo: presses Ctrl+Z. */
function opened(context, ...texts) {
  context.mock.timers.enable({ apis: ["setTimeout"] });
  const studio = new Studio(...texts);
  context.mock.method(globalThis, "fetch", (url, options) => studio.fetch(url, options));
  const [drafts, leave] = [new Drafts("proj_1"), new AbortController()];
  context.after(() => {
    leave.abort();
    drafts.close();
  });
  const unsaved = new Unsaved(drafts, { root: /** @type {any} */ (new EventTarget()), fields: {}, signal: leave.signal });
  const rows = new Map();
  const row = (id, cursor = -1) => {
    const part = { ...studio.parts.find((one) => one.id === id), id, position: studio.parts.findIndex((one) => one.id === id) };
    const made = { part, cursor, text: { value: part.text, selectionStart: cursor }, tools: { say() {} }, entered: -1, enter: (at) => (made.entered = at), reword: (before, _, typed = _.text) => made.text.value === before && (made.text.value = typed) };
    rows.set(id, made);
    return made;
  };
  const found = [];
  const list = { outdate() {}, look: async () => studio.parts.forEach(({ id }) => rows.has(id) || row(id)), row: (id) => rows.get(id) };
  const arranging = new Arranging("proj_1", unsaved, { list: () => list, changed: () => {}, found: (part, { verb }) => found.push(`${verb} ${part.id}`) });
  const undo = () => page.document.dispatchEvent(Object.assign(new Event("keydown", { cancelable: true }), { key: "z", ctrlKey: true }));
  return { studio, unsaved, arranging, row, rows, found, undo };
}

test("a text edited during a split is divided where its earlier version was split", () => {
  for (const [typed, first, second] of [
    ["Start. One. Two.", "Start. One. ", "Two."],
    ["One. Two. End.", "One. ", "Two. End."],
    ["One. More. Two.", "One. More. ", "Two."],
    ["One. Zwei.", "One. ", "Zwei."],
    ["One 🙂. Two.", "One 🙂. ", "Two."],
    ["All else", "All else", ""],
    ["One. Two.", "One. ", "Two."],
  ]) assert.deepEqual(halves("One. Two.", typed, 5), [first, second], typed);
});

test("text typed during a split or merge is saved in the new parts, and the cursor stays in the same words", async (context) => {
  const { studio, unsaved, arranging, row, rows } = opened(context, "One two", "Three");
  for (const [verb, typed, cursor, texts] of /** @type {const} */ ([
    ["split", "One two more", 12, ["One", "two more", "Three"]],
    ["merge", "One, too", 8, ["One, too two more", "Three"]],
  ])) {
    const one = row("One", 3);
    const work = arranging.arrange(one.part, null, { verb, words: one.text.value, cursor: 3 });
    while (!studio.texts.includes(verb === "split" ? "two" : "One two more")) await null;
    one.text.value = typed;
    one.cursor = cursor;
    unsaved.note("One", { text: typed }, { text: one.part.text }, 0);
    await work;
    await settled();
    await settled();
    assert.deepEqual([studio.texts, unsaved.size], [texts, 0]);
  }
  assert.deepEqual([rows.get("One").text.value, rows.get("two").entered], ["One, too two more", 8]);
  const [one, three] = [row("One"), row("Three", 5)];
  const work = arranging.arrange(one.part, null, { verb: "merge", words: one.text.value });
  while (studio.parts.length > 1) await null;
  three.text.value = "Three more";
  unsaved.note("Three", { text: "Three more" }, { text: "Three" }, 1); // in the part that goes
  await work;
  await settled();
  assert.deepEqual([studio.texts, unsaved.size, one.entered], [["One, too two more Three more"], 0, 23]);
  unsaved.note("One", { text: "One typed" }, { text: one.part.text }, 0); // and not saved yet
  await arranging.delete(["One"], "Part 1 deleted");
  await studio.fetch("/v1/projects/proj_1/parts/restore", { method: "POST", body: JSON.stringify({ ids: ["One"] }) });
  assert.deepEqual(studio.texts, ["One typed"], "the trash has what was typed, without Undo");
});

test("a step whose answer was lost is found once the parts can be read, is not done twice, and can be undone", async (context) => {
  const { studio, arranging, row, found, undo } = opened(context, "One two", "Three", "Four");
  for (const [asked, id, texts] of /** @type {const} */ ([
    [{ verb: "down" }, "Three", ["One two", "Four", "Three"]],
    [{ verb: "split" }, "One", ["One", "two", "Three", "Four"]],
    [{ verb: "merge" }, "Three", ["One two", "Three Four"]],
    [{ verb: "insert", text: "Three" }, "One", ["One two", "Three", "Three", "Four"]],
    [{ verb: "delete" }, "Three", ["One two", "Four"]],
  ])) {
    Object.assign(studio, { isLosing: true });
    const order = { ...asked, words: studio.parts.find((one) => one.id === id)?.text, cursor: 3 };
    const arrange = () => arranging.arrange(row(id).part, null, order);
    await assert.rejects(arrange(), { isLost: true });
    Object.assign(studio, { isLosing: false, isAway: true });
    await assert.rejects(arrange(), { isLost: true }, "it is not known yet");
    studio.isAway = false;
    const look = arranging.settle(); // as the page does from time to time
    if (["insert", "merge"].includes(order.verb)) await arrange();
    await look;
    assert.deepEqual([found.pop(), studio.texts], [`${order.verb} ${id}`, texts], order.verb);
    undo();
    await settled();
    await settled();
    assert.deepEqual(studio.texts, ["One two", "Three", "Four"], `${order.verb} undone`);
  }
  await arranging.settle();
  assert.deepEqual(found, []);
});

test("a moved part goes back between those that were beside it, unless somebody has moved it again; each press of Ctrl+Z undoes a step", async (context) => {
  const { studio, arranging, row, undo } = opened(context, "A", "B", "C", "D");
  const move = (verb) => arranging.arrange(row("B").part, null, { verb });
  await move("down");
  studio.insert(0, "Top");
  studio.parts = studio.parts.filter(({ id }) => id !== "A");
  undo();
  await settled();
  assert.deepEqual(studio.texts, ["Top", "B", "C", "D"]);
  studio.insert(0, "Upper");
  await move("down"); // the page has not seen that one yet
  await move("down");
  await move("down"); // it is the last
  assert.deepEqual(studio.texts, ["Upper", "Top", "C", "D", "B"]);
  undo();
  undo();
  const later = { isUndone: false };
  arranging.offer("A step made meanwhile", async () => (later.isUndone = true));
  for (let i = 0; i < 5; i += 1) await settled();
  assert.deepEqual([studio.texts, later.isUndone], [["Upper", "Top", "B", "C", "D"], false]);
  undo();
  await settled();
  assert.ok(later.isUndone);
  await move("down");
  studio.parts.unshift(studio.parts.splice(3, 1)[0]); // as somebody else does
  undo();
  await settled();
  assert.deepEqual(studio.texts, ["B", "Upper", "Top", "C", "D"]);
});

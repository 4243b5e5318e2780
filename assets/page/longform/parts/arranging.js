// Edits and arranges a project's parts as requested by their rows, and offers to undo each step, also one whose answer was lost.

import { changePart, changeParts, deleteParts, insertPart, regeneratePart, mergeParts, movePart, readAllPartIds, readPartIds, readParts, restoreParts, splitPart, undoChange } from "../../client/projects.js";
import { Refusal } from "../../client/refusal.js";
import { phrase } from "../../lib/phrases.js";
import { offerUndo } from "../../trash/undo-toast.js";
import { halves, keepTyped, stored, takeOver } from "./typed-on.js";

const TITLE = 60; // characters of a part's text shown in messages

/** Return a refusal made here, without a request to the server. */
const refuse = (why, status = 0) => new Refusal({ what: "", why, advice: "", status });

const titleOf = ({ text }) => (text.length > TITLE ? `${text.slice(0, TITLE)}…` : text);

/** The same for a text and for both of its halves. */
const solid = (text) => text.normalize("NFC").replace(/\s+/g, "");

const keyOf = ({ id }, { verb, text = "" }) => JSON.stringify([id, verb, text]);

/** The ids before and after a place in a list of others. */
const beside = (others, at) => [others[at - 1], others[at]];

export class Arranging {
  /** Steps whose answers were lost, by part and order as JSON: find() returns the result once the parts can be read again, and nothing if it was not done. @type {Map<string, { part: any, order: any, find: () => Promise<any>, done: (result: any) => any }>} */
  #lost = new Map();
  /** Finds them out. @type {Promise<string[]> | null} */
  #settling = null;
  /** The chapter renamed last, with the title as it was read and as it is. @type {{ id: string, before: string, title: string } | null} */
  #renamed = null;

  /**
   * list(): the rows; changed(): called after a step was undone; found(part, order): called if an order was carried out although its answer was lost.
   *
   * @param {string} id
   * @param {import("../unsaved.js").Unsaved} unsaved
   * @param {{ list: () => any, changed: () => unknown, found: (part: any, order: any) => unknown }} panel
   */
  constructor(id, unsaved, { list, changed, found }) {
    this.id = id;
    this.unsaved = unsaved;
    this.list = list;
    this.changed = changed;
    this.found = found;
  }

  /**
   * Carry out what was ordered for a part; words, cursor and end: its text and selection then. Throws Refusal.
   *
   * @param {any} part
   * @param {any} following the next part, if known
   * @param {{ verb: string, text?: string, words?: string, cursor?: number, end?: number }} order
   */
  async arrange(part, following, order) {
    if ((await this.settle()).includes(keyOf(part, order))) return undefined; // ordered again for lack of an answer
    const row = this.list().row(part.id); // undefined: it has left the page, by now
    const { verb, text = "", words = part.text, cursor = 0, end = 0 } = order;
    if (verb === "delete") return this.delete([part.id], phrase("part.deleted", { number: part.position + 1, text: titleOf(part) }), [part, order]);
    if (verb === "mend") return row && this.#mend(row, words, cursor, end);
    const now = row?.text.value ?? this.unsaved.of(part.id)?.changes.text ?? part.text; // more may have been typed since
    if (verb === "split" || verb === "merge") await this.unsaved.save(part.id); // typed but not yet sent
    if (verb === "split") return this.#split(part, order, now, halves(words, now, cursor)[0].length);
    if (verb === "merge") return this.#merge(part, order, now, following?.id ?? (await this.#after(part)));
    if (verb === "insert") return this.#insert(part, order, row?.isGone ? await this.#before(part) : part.id, text);
    return this.move(part, (_, at) => at + (verb === "up" ? -1 : 1), order);
  }

  /** Do a step and then done(), which offers to undo it. Throws Refusal; after a lost answer, `settle` finds out. */
  async #step(part, order, { work, find, done }) {
    let result;
    try {
      result = await work();
    } catch (problem) {
      if (problem instanceof Refusal && !problem.isOfRequest) this.#lost.set(keyOf(part, order), { part, order, find, done });
      throw problem;
    }
    this.list().outdate();
    return done(result);
  }

  /** Find out which steps were done although their answers were lost; returns their keys. Throws Refusal. */
  settle() {
    this.#settling ??= this.#findLost().finally(() => (this.#settling = null));
    return this.#settling;
  }

  async #findLost() {
    const found = [];
    for (const [key, step] of [...this.#lost]) {
      this.#lost.delete(key);
      const result = await step.find().catch((problem) => {
        this.#lost.set(key, step);
        throw problem;
      });
      if (!result) continue;
      await step.done(result);
      this.found(step.part, step.order);
      found.push(key);
    }
    return found;
  }

  /** Choose a take; words: the message. Throws Refusal. */
  async choose(part, take, words) {
    const { replaced } = await changePart(this.id, part.id, { take });
    this.offer(words, () => undoChange(this.id, replaced));
  }

  /** Offer to undo changes to a part. */
  changedPart({ position }, replaced) {
    this.offer(phrase("part.changed", { number: position + 1 }), () => undoChange(this.id, replaced));
  }

  /** Change fields of many parts. Throws Refusal. */
  async changeAll(ids, changes) {
    const { replaced } = await changeParts(this.id, ids, changes);
    this.offer(phrase("project.changed.count", { count: ids.length }), () => undoChange(this.id, replaced));
  }

  /** Rename a chapter and its heading; read: the chapter as read, if another title than that is not to be replaced. Throws Refusal. */
  async rename(chapter, title, read) {
    const own = this.#renamed; // perhaps since the title was read
    const before = own && own.id === chapter.id && own.before === read?.title ? own.title : read?.title;
    const { chapter: renamed, replaced } = await changePart(this.id, chapter.id, { chapter: title, chapter_before: before });
    this.#renamed = read && { id: chapter.id, before: read.title, title: renamed };
    this.offer(phrase("project.chapter.renamed", { title: renamed }), () => {
      this.#renamed = null;
      return undoChange(this.id, replaced);
    });
  }

  /**
   * Move a part; place: its new place among the others, from these and its present place. Undo puts it back between those that were beside it, wherever they are by then. Throws Refusal.
   *
   * @param {any} part
   * @param {(others: string[], at: number) => number} place
   * @param {object} [order]
   */
  async move(part, place, order = { verb: "move" }) {
    const read = async () => {
      const ids = await readAllPartIds(this.id);
      return { others: ids.filter((id) => id !== part.id), at: ids.indexOf(part.id) };
    };
    const { others, at } = await read();
    const [position, was] = [place(others, at), beside(others, at)];
    if ([at, -1, others.length + 1].includes(position)) return; // it is there, or at an end
    const is = beside(others, position);
    const undo = async () => {
      const { others: rest, at: now } = await read();
      const [above, below] = was.map((id) => rest.indexOf(id));
      const back = was[0] === undefined ? 0 : above >= 0 ? above + 1 : was[1] === undefined ? rest.length : below;
      if (back < 0 || (now >= 0 && !beside(rest, now).some((id, i) => id === is[i]))) throw refuse("", 412); // moved again since
      return movePart(this.id, part.id, back, now < 0 ? undefined : now);
    };
    await this.#step(part, order, {
      work: () => movePart(this.id, part.id, position),
      find: async () => {
        const { others: rest, at: now } = await read();
        return at !== position && beside(rest, now).every((id, i) => id === is[i]);
      },
      done: () => this.offer(phrase("part.moved", { number: part.position + 1 }), undo),
    });
  }

  /** Offer to undo a step, without moving the focus. */
  offer(words, undo) {
    const all = async () => {
      const done = await undo();
      this.changed();
      return done;
    };
    offerUndo(words, all, false);
  }

  /**
   * Delete parts, all of them or none, with what was typed in them, if it can be saved. Throws Refusal.
   *
   * @param {string[]} ids
   * @param {string} [title] shown in the message
   * @param {any[]} [of] the part and the order
   */
  async delete(ids, title = "", [part, order] = [{ id: ids[0] }, { verb: "delete" }]) {
    await Promise.allSettled(ids.filter((id) => this.unsaved.of(id)).map((id) => this.unsaved.save(id)));
    const done = ({ undo_seconds: seconds }) => {
      const typed = new Map(ids.map((id) => [id, this.unsaved.of(id)]));
      for (const id of ids) this.unsaved.forget(id);
      const undo = async () => {
        await restoreParts(this.id, ids);
        for (const [id, entry] of typed) if (entry) this.unsaved.note(id, entry.changes, entry.before, entry.position);
        this.unsaved.leave();
        this.changed();
      };
      offerUndo(title || phrase("project.deleted.count", { count: ids.length }), seconds ? undo : null, !title);
    };
    const find = async () => {
      const present = new Set(await readAllPartIds(this.id));
      return !ids.some((id) => present.has(id)) && { undo_seconds: 1 };
    };
    await this.#step(part, order, { work: () => deleteParts(this.id, ids), find, done });
  }

  async #mend(row, words, cursor, end) {
    const { part, tools } = row;
    if (!row.hasCursor) throw refuse(phrase("part.cursor"));
    if (words !== part.text) throw refuse(phrase("part.notSpoken"));
    tools.isMending = true;
    tools.say(phrase("part.mending"));
    try {
      const { chosen } = await regeneratePart(this.id, part.id, words, [...words.slice(0, cursor)].length, [...words.slice(0, end)].length);
      tools.say("");
      this.changedPart(part, { parts: [{ ids: [part.id], before: { chosen: part.chosen }, after: { chosen } }] });
    } finally {
      tools.isMending = false;
    }
  }

  async #split(part, order, words, cursor) {
    if (!words.slice(0, cursor).trim() || !words.slice(cursor).trim()) {
      throw refuse(phrase("part.splitWhere"));
    }
    await this.#step(part, order, {
      work: async () => (await splitPart(this.id, part.id, words, [...words.slice(0, cursor)].length)).data,
      find: async () => {
        const parts = await this.#from(part.id, 2);
        return parts.length === 2 && solid(parts[0].text + parts[1].text) === solid(words) && parts;
      },
      done: ([first, second]) => {
        this.offer(phrase("part.wasSplit", { number: part.position + 1 }), () => mergeParts(this.id, first.id, second.id, words));
        return keepTyped(this.list(), this.unsaved, [first, second], words, (typed) => halves(words, typed, cursor));
      },
    });
  }

  async #merge(part, order, words, following) {
    await this.unsaved.save(following);
    await this.#step(part, order, {
      work: () => mergeParts(this.id, part.id, following),
      find: async () => {
        const [merged] = await this.#from(part.id, 1);
        return merged && merged.text !== stored(words) && !(await readAllPartIds(this.id)).includes(following) && merged;
      },
      done: async (merged) => {
        this.offer(phrase("part.merged", { number: part.position + 1 }), () => restoreParts(this.id, [following]));
        await keepTyped(this.list(), this.unsaved, [merged], words, (typed) => merged.text.startsWith(stored(words)) && [typed + merged.text.slice(stored(words).length)]);
        await this.list().look().catch(() => {}); // until this refresh, the second part's row is shown and may be typed in; the next refresh reports a failure
        takeOver(this.list(), this.unsaved, merged, following);
      },
    });
  }

  async #insert(part, order, after, text) {
    const before = new Set(await readAllPartIds(this.id));
    return this.#step(part, order, {
      work: () => insertPart(this.id, after, text),
      find: async () => {
        const ids = await readAllPartIds(this.id);
        const at = after === null ? 0 : ids.indexOf(after) + 1;
        const [there] = before.has(ids[at]) ? [] : (await readParts(this.id, at, 1)).data;
        return there?.text === stored(text) && there;
      },
      done: ({ id, position, text: inserted }) => {
        this.offer(phrase("part.inserted", { number: position + 1 }), () => deleteParts(this.id, [id], inserted));
        return id;
      },
    });
  }

  /** Restore a part that was deleted or merged elsewhere; if it is not in the trash, insert a part with this text there. Returns the part's id. Throws Refusal. */
  async putBack({ id, position }, text) {
    try {
      await restoreParts(this.id, [id]);
      return id;
    } catch (problem) {
      if (!(problem instanceof Refusal) || problem.param !== "ids") throw problem;
    }
    const after = await this.#before({ position });
    return this.#insert({ id }, { verb: "insert", text }, after, text);
  }

  /** Read a part and those after it; none if it is gone. Throws Refusal. */
  async #from(id, count) {
    const at = (await readAllPartIds(this.id)).indexOf(id);
    return at < 0 ? [] : (await readParts(this.id, at, count)).data;
  }

  /** Read the id of the part above a place; null: there is none. Throws Refusal. */
  async #before({ position }) {
    return (await readPartIds(this.id, "", 0, position)).at(-1) ?? null;
  }

  /** Read the id of the next part. Throws Refusal. */
  async #after(part) {
    const { data } = await readParts(this.id, part.position + 1, 1);
    if (!data.length) throw refuse(phrase("part.last"));
    return data[0].id;
  }
}

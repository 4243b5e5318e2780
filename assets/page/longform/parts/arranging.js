// Edits and arranges a project's parts as requested by their rows, and offers to undo each step.

import { changePart, changeParts, deleteParts, insertPart, regeneratePart, mergeParts, movePart, readPartIds, readParts, restoreParts, splitPart, undoChange } from "../../client/projects.js";
import { Refusal } from "../../client/refusal.js";
import { phrase } from "../../lib/phrases.js";
import { offerUndo } from "../../trash/undo-toast.js";

const TITLE = 60; // characters of a part's text shown in messages

/** Return a refusal made here, without a request to the server. */
const refuse = (why) => new Refusal({ what: "", why, advice: "" });

const titleOf = ({ text }) => (text.length > TITLE ? `${text.slice(0, TITLE)}…` : text);

export class Arranging {
  /**
   * changed(): called after a step was undone.
   *
   * @param {string} id
   * @param {import("../unsaved.js").Unsaved} unsaved
   * @param {() => unknown} changed
   */
  constructor(id, unsaved, changed) {
    this.id = id;
    this.unsaved = unsaved;
    this.changed = changed;
  }

  /**
   * Carry out a row's action. Throws Refusal.
   *
   * @param {any} row
   * @param {any} following the next part, if known
   * @param {{ verb: string, text?: string }} order
   */
  async arrange(row, following, { verb, text = "" }) {
    const { part } = row;
    if (verb === "delete") return this.delete([part.id], phrase("part.deleted", { number: part.position + 1, text: titleOf(part) }));
    const [words, cursor] = [row.text.value, row.text.selectionStart];
    if (verb === "mend") return this.#mend(row, words, cursor, row.text.selectionEnd);
    if (verb === "split" || verb === "merge") await this.unsaved.save(part.id); // typed but not yet sent
    if (verb === "split") return row.reword(words, await this.#split(part, words, cursor));
    if (verb === "merge") return row.reword(words, await this.#merge(part, following?.id ?? (await this.#after(part))));
    if (verb === "insert") return this.#insert(row.isGone ? await this.#before(part) : part.id, text);
    return this.move(part, part.position + (verb === "up" ? -1 : 1));
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
    const { chapter: renamed, replaced } = await changePart(this.id, chapter.id, { chapter: title, chapter_before: read?.title });
    if (read) read.title = renamed; // its next change is based on this one
    this.offer(phrase("project.chapter.renamed", { title: renamed }), () => undoChange(this.id, replaced));
  }

  /** Throws Refusal. */
  async move(part, position) {
    await movePart(this.id, part.id, position);
    this.offer(phrase("part.moved", { number: part.position + 1 }), () => movePart(this.id, part.id, part.position, position));
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
   * Delete parts, all of them or none. Throws Refusal.
   *
   * @param {string[]} ids
   * @param {string} title shown in the message
   */
  async delete(ids, title = "") {
    const { undo_seconds: seconds } = await deleteParts(this.id, ids);
    const typed = new Map(ids.map((id) => [id, this.unsaved.of(id)]));
    for (const id of ids) this.unsaved.forget(id);
    const undo = async () => {
      await restoreParts(this.id, ids);
      for (const [id, entry] of typed) if (entry) this.unsaved.note(id, entry.changes, entry.before, entry.position);
      this.unsaved.leave();
      this.changed();
    };
    offerUndo(title || phrase("project.deleted.count", { count: ids.length }), seconds ? undo : null, !title);
  }

  async #mend(row, words, cursor, end) {
    const { part, tools } = row;
    if (!row.hasCursor) throw refuse(phrase("part.cursor"));
    if (words !== part.text) throw refuse(phrase("part.notSpoken"));
    tools.isMending = true;
    tools.say(phrase("part.mending"));
    try {
      await regeneratePart(this.id, part.id, words, [...words.slice(0, cursor)].length, [...words.slice(0, end)].length);
      tools.say("");
    } finally {
      tools.isMending = false;
    }
  }

  async #split(part, words, cursor) {
    if (!words.slice(0, cursor).trim() || !words.slice(cursor).trim()) {
      throw refuse(phrase("part.splitWhere"));
    }
    const { data: [first, second] } = await splitPart(this.id, part.id, words, [...words.slice(0, cursor)].length);
    this.offer(phrase("part.wasSplit", { number: part.position + 1 }), () => mergeParts(this.id, first.id, second.id, words));
    return first;
  }

  async #merge(part, following) {
    const merged = await mergeParts(this.id, part.id, following);
    this.offer(phrase("part.merged", { number: part.position + 1 }), () => restoreParts(this.id, [following]));
    return merged;
  }

  async #insert(after, text) {
    const { id, position, text: inserted } = await insertPart(this.id, after, text);
    this.offer(phrase("part.inserted", { number: position + 1 }), () => deleteParts(this.id, [id], inserted));
    return id;
  }

  /** Restore a part that was deleted or merged elsewhere; if it is not in the trash, insert a part with this text there. Returns the part's id. Throws Refusal. */
  async putBack({ id, position }, text) {
    try {
      await restoreParts(this.id, [id]);
      return id;
    } catch (problem) {
      if (!(problem instanceof Refusal) || problem.param !== "ids") throw problem;
    }
    return this.#insert(await this.#before({ position }), text);
  }

  /** Read the id of the part above a place; null: there is none. Throws Refusal. */
  async #before({ position }) {
    return (position ? await readPartIds(this.id, "", 0, position) : []).at(-1) ?? null;
  }

  /** Read the id of the next part. Throws Refusal. */
  async #after(part) {
    const { data } = await readParts(this.id, part.position + 1, 1);
    if (!data.length) throw refuse(phrase("part.last"));
    return data[0].id;
  }
}

// Arranges the parts of a project as their rows ask for it; those that were deleted can be restored.

import { changePart, deletePart, insertPart, mendPart, mergeParts, movePart, readParts, splitPart } from "../../client/projects.js";
import { Refusal } from "../../client/refusal.js";
import { restore } from "../../client/trash.js";
import { phrase } from "../../lib/phrases.js";
import { offerUndo } from "../../trash/undo-toast.js";

const TITLE = 60; // characters of a part's text that it is known by

/** A reason to refuse without asking the server. */
const refuse = (why) => new Refusal({ what: "", why, advice: "" });

const titleOf = ({ text }) => (text.length > TITLE ? `${text.slice(0, TITLE)}…` : text);

export class Arranging {
  /** changed(): deleted parts were restored. */
  constructor(id, changed) {
    this.id = id;
    this.changed = changed;
  }

  /**
   * Carry out a row's order. Raises Refusal.
   *
   * @param {any} row
   * @param {any} following the part right after it, if it is known
   * @param {{ verb: string, text?: string }} order
   */
  async arrange(row, following, { verb, text = "" }) {
    const { part } = row;
    if (verb === "delete") return this.delete([part.id], phrase("trash.deleted", { title: titleOf(part) }));
    const [words, cursor] = [row.text.value, row.text.selectionStart];
    if (verb === "mend") return this.#mend(row, words, cursor, row.text.selectionEnd);
    if (verb === "split" || verb === "merge") await this.#keep(part, words);
    if (verb === "split") return row.reword(words, await this.#split(part, words, cursor));
    if (verb === "merge") return row.reword(words, await mergeParts(this.id, part.id, following?.id ?? (await this.#after(part))));
    if (verb === "insert") return this.#insert(row, part, text);
    return movePart(this.id, part.id, part.position + (verb === "up" ? -1 : 1));
  }

  /**
   * Delete parts one after the other; those deleted before a refusal can be restored together. Raises Refusal.
   *
   * @param {string[]} ids
   * @param {string} title shown in the message
   */
  async delete(ids, title = "") {
    const deleted = [];
    let seconds = 0;
    try {
      for (const id of ids) {
        ({ undo_seconds: seconds } = await deletePart(this.id, id));
        deleted.push(id);
      }
    } finally {
      const words = title || phrase("project.deleted.count", { count: deleted.length });
      if (deleted.length) offerUndo(words, seconds ? () => this.#restore(deleted) : null, !title);
    }
  }

  async #restore(ids) {
    await restore("part", ids);
    this.changed();
  }

  async #mend(row, words, cursor, end) {
    const { part, tools } = row;
    if (!row.hasCursor) throw refuse(phrase("part.cursor"));
    if (words !== part.text) throw refuse(phrase("part.notSpoken"));
    tools.isMending = true;
    tools.say(phrase("part.mending"));
    try {
      await mendPart(this.id, part.id, words, [...words.slice(0, cursor)].length, [...words.slice(0, end)].length);
      tools.say("");
    } finally {
      tools.isMending = false;
    }
  }

  /** Texts written but not yet sent. */
  async #keep(part, words) {
    if (words !== part.text) await changePart(this.id, part.id, { text: words });
  }

  async #split(part, words, cursor) {
    if (!words.slice(0, cursor).trim() || !words.slice(cursor).trim()) {
      throw refuse(phrase("part.splitWhere"));
    }
    const { data } = await splitPart(this.id, part.id, words, [...words.slice(0, cursor)].length);
    return data[0];
  }

  async #insert(row, part, text) {
    await insertPart(this.id, part.id, text);
    row.tools.written();
  }

  /** The id of the part after the last one shown. */
  async #after(part) {
    const { data } = await readParts(this.id, part.position + 1, 1);
    if (!data.length) throw refuse(phrase("part.last"));
    return data[0].id;
  }
}

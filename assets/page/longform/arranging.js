// Arranges the parts of a project as their rows ask for it; a part that was deleted can be brought back for a while.

import { changePart, deletePart, insertPart, mendPart, mergeParts, movePart, readParts, splitPart } from "../client/projects.js";
import { Refusal } from "../client/refusal.js";
import { Deleted } from "./deleted.js";
import { phrase } from "../lib/phrases.js";

const TITLE = 60; // characters of a part's text that it is known by

/** Why something cannot be done, without asking the server. */
const refuse = (why) => new Refusal({ what: "", why, advice: "" });

/** Fires "change" when a part is gone or back. */
export class Arranging extends EventTarget {
  /** signal: until when the project is shown; part: finds what the page shows of a deleted part. */
  constructor(part, { id, signal }) {
    super();
    this.part = part;
    this.id = id;
    this.deleted = new Deleted((gone) => deletePart(id, gone), { signal });
    this.deleted.addEventListener("change", () => !signal.aborted && this.#showDeleted());
    part("part-back").addEventListener("click", () => this.deleted.undo(), { signal });
    signal.addEventListener("abort", () => this.deleted.finish());
    part("part-gone").hidden = true;
  }

  /**
   * Do what a row asks for. Raises Refusal.
   *
   * @param {any} row
   * @param {any} following the part that is shown after it, if any
   * @param {{ verb: string, text?: string }} order
   */
  async arrange(row, following, { verb, text = "" }) {
    const { part } = row;
    if (verb === "delete") return this.deleted.put({ id: part.id, title: part.text.length > TITLE ? `${part.text.slice(0, TITLE)}…` : part.text });
    const [words, cursor] = [row.text.value, row.text.selectionStart];
    if (verb === "mend") return this.#mend(row, words, cursor, row.text.selectionEnd);
    const next = following?.id;
    await this.deleted.finish();
    if (verb === "split" || verb === "merge") await this.#keep(part, words);
    if (verb === "split") return row.reword(words, await this.#split(part, words, cursor));
    if (verb === "merge") return row.reword(words, await mergeParts(this.id, part.id, next ?? (await this.#after(part))));
    if (verb === "insert") return this.#insert(row, part, text);
    return movePart(this.id, part.id, part.position + (verb === "up" ? -1 : 1));
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

  /** What was written and not yet sent. */
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

  #showDeleted() {
    const { item } = this.deleted;
    this.part("part-gone").hidden = !item;
    this.part("gone").textContent = item ? phrase("part.deleted", { title: item.title }) : "";
    this.dispatchEvent(new CustomEvent("change"));
  }
}

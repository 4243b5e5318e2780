// What was deleted and can still be restored, as this browser remembers it: a reload and its other tabs offer that too.

import { keep, kept } from "../lib/storage.js";

const MOST = 50;

/** @typedef {{ id: string, title: string, project?: string, parts?: string[], until: number }} Item until: in ms since 1970 */

export class Deleted {
  /** @param {string} kind what is deleted: its name among what the browser keeps */
  constructor(kind) {
    this.store = `voice-studio-deleted-${kind}-1`;
  }

  /**
   * Those that the server can still restore, the last deleted first.
   *
   * @param {number} [now] in ms since 1970
   * @returns {Item[]}
   */
  items(now = Date.now()) {
    const found = kept(this.store, []);
    return Array.isArray(found) ? found.filter(({ until }) => until > now) : [];
  }

  /**
   * @param {Omit<Item, "until">} item
   * @param {number} seconds for which the server can restore it
   */
  put(item, seconds) {
    const now = Date.now();
    keep(this.store, [{ ...item, until: now + 1000 * seconds }, ...this.items(now)].slice(0, MOST));
  }

  /** It was restored, or is gone for good. @param {string} id */
  drop(id) {
    keep(this.store, this.items().filter((item) => item.id !== id));
  }
}

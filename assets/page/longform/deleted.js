// What was deleted here, a project or a part of one, and can still be brought back: the server is told after a while, or when the page is left.

import { deleteProject } from "../client/projects.js";
import { Refusal } from "../client/refusal.js";

const UNDO = 15_000; // ms

/** Fires "change" when there is one, another one or none any more. */
export class Deleted extends EventTarget {
  /** @type {{ id: string, title: string } | null} */
  #item = null;
  #leaving = new Set(); // ids of those that the server is being told of
  #timer = 0;

  /**
   * remove(id) has the server delete it.
   *
   * @param {(id: string) => Promise<unknown>} remove
   * @param {AddEventListenerOptions} options until when it may have to be done in a hurry
   */
  constructor(remove = deleteProject, options = {}) {
    super();
    this.remove = remove;
    addEventListener("pagehide", () => this.finish(), options);
  }

  /** {id, title}, null for none. */
  get item() {
    return this.#item;
  }

  /** Whether something is deleted here, whatever the server still says. */
  has(id) {
    return this.#item?.id === id || this.#leaving.has(id);
  }

  /** How many are. */
  get count() {
    return this.#leaving.size + (this.#item ? 1 : 0);
  }

  put(item) {
    this.finish();
    this.#item = item;
    this.#timer = setTimeout(() => this.finish(), UNDO);
    this.dispatchEvent(new CustomEvent("change"));
  }

  undo() {
    clearTimeout(this.#timer);
    this.#item = null;
    this.dispatchEvent(new CustomEvent("change"));
  }

  /** Have the server delete it now. */
  async finish() {
    const item = this.#item;
    if (!item) return;
    clearTimeout(this.#timer);
    this.#item = null;
    this.#leaving.add(item.id);
    this.dispatchEvent(new CustomEvent("change")); // from now on it cannot be brought back
    try {
      await this.remove(item.id);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem; // else it is in the list again, or was gone before
    } finally {
      this.#leaving.delete(item.id);
    }
    this.dispatchEvent(new CustomEvent("change"));
  }
}

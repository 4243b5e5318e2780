// Which parts of a project are selected, on all its pages, and the bar that says what can be done with them.

import { phrase } from "../lib/phrases.js";

/** Fires "change" when the selection changes. */
export class Selection extends EventTarget {
  /** @type {Set<string>} */
  #ids = new Set();
  /** The part that was ticked last: a range begins there. @type {string | null} */
  #anchor = null;

  /** part: finds what the page shows; signal: until when the project is shown. */
  constructor(part, { signal }) {
    super();
    this.part = part;
    part("clear").addEventListener("click", () => this.clear(), { signal });
    this.#show();
  }

  /** Their ids. */
  get ids() {
    return [...this.#ids];
  }

  /** @param {string} id */
  has(id) {
    return this.#ids.has(id);
  }

  /**
   * Select or deselect a part; with isRange all between it and the previous one.
   *
   * @param {string} id
   * @param {boolean} isSelected
   * @param {string[]} shown the ids of those that are shown, in order
   * @param {boolean} isRange
   */
  press(id, isSelected, shown, isRange) {
    const [from, to] = [shown.indexOf(this.#anchor ?? ""), shown.indexOf(id)].sort((a, b) => a - b);
    this.#anchor = id;
    this.set(isRange && from >= 0 ? shown.slice(from, to + 1) : [id], isSelected);
  }

  /**
   * @param {string[]} ids
   * @param {boolean} isSelected
   */
  set(ids, isSelected) {
    for (const id of ids) this.#ids[isSelected ? "add" : "delete"](id);
    this.#show();
    this.dispatchEvent(new CustomEvent("change"));
  }

  clear() {
    this.set(this.ids, false);
  }

  #show() {
    const count = this.#ids.size;
    this.part("selection").hidden = !count;
    this.part("selected").textContent = phrase("project.speak.count", { count });
    this.part("delete-selected").textContent = phrase("project.delete.count", { count });
  }
}

// Which parts of a project are selected, wherever they are, and the bar that says what can be done with them.

import { phrase } from "../../lib/phrases.js";

/** Fires "change" when the selection changes. */
export class Selection extends EventTarget {
  /** @type {Set<string>} */
  #ids = new Set();
  /** The index of the part that was ticked last: a range begins there. @type {number | null} */
  #anchor = null;
  /** The last press: a range's ids come from the server, and a later press must not be undone by it. @type {Promise<void>} */
  #pressed = Promise.resolve();
  /** How often all have been cleared, which overrules presses that still wait for their ids. */
  #cleared = 0;

  /**
   * part: finds what the page shows; idsBetween: of the parts from one index to another.
   *
   * @param {(name: string) => any} part
   * @param {{ signal: AbortSignal, idsBetween: (first: number, last: number) => Promise<string[]> }} project
   */
  constructor(part, { signal, idsBetween }) {
    super();
    this.part = part;
    this.idsBetween = idsBetween;
    part("clear").addEventListener("click", () => this.clear(), { signal });
    this.#makeRoom(part("selection").parentElement, signal);
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
   * Select or deselect the part at an index; with isRange all between it and the previous one. Raises Refusal.
   *
   * @param {string} id
   * @param {number} index
   * @param {boolean} isSelected
   * @param {boolean} isRange
   */
  press(id, index, isSelected, isRange) {
    const from = this.#anchor;
    this.#anchor = index;
    const isLong = isRange && from !== null && from !== index;
    return this.setInTurn(isLong ? this.idsBetween(Math.min(from, index), Math.max(from, index)) : [id], isSelected);
  }

  /**
   * `set` once the ids are known, and not before an earlier press has taken effect. Raises Refusal.
   *
   * @param {string[] | Promise<string[]>} ids
   * @param {boolean} isSelected
   * @returns {Promise<void>}
   */
  setInTurn(ids, isSelected) {
    const cleared = this.#cleared;
    const pressed = Promise.all([ids, this.#pressed]).then(([known]) => {
      if (cleared === this.#cleared) this.set(known, isSelected);
    });
    this.#pressed = pressed.catch(() => {}); // its caller hears of it
    return pressed;
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
    this.#cleared += 1;
    this.set(this.ids, false);
  }

  /** Indexes mean other parts now. */
  forgetAnchor() {
    this.#anchor = null;
  }

  /** What the bar stands on ends above it: the map, the list, messages. @param {HTMLElement} bar @param {AbortSignal} signal */
  #makeRoom(bar, signal) {
    const set = (/** @type {number} */ height) => document.documentElement.style.setProperty("--selection-height", `${height}px`);
    const observer = new ResizeObserver(() => set(bar.offsetHeight));
    observer.observe(bar);
    signal.addEventListener("abort", () => {
      observer.disconnect();
      set(0);
    });
  }

  #show() {
    const count = this.#ids.size;
    this.part("selection").hidden = !count;
    this.part("selected").textContent = phrase("project.speak.count", { count });
    this.part("delete-selected").textContent = phrase("project.delete.count", { count });
  }
}

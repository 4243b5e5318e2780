// The selected parts of a project, including parts outside the window, and the bar of actions for them.

import { publishHeight } from "../../lib/elements.js";
import { phrase } from "../../lib/phrases.js";

/** Fires "change" when the selection changes. */
export class Selection extends EventTarget {
  /** @type {Set<string>} */
  #ids = new Set();
  /** Index of the part clicked last, where a range begins. @type {number | null} */
  #anchor = null;
  /** The last click: a range waits for ids from the server, and must not undo a later click. @type {Promise<void>} */
  #pressed = Promise.resolve();
  /** How often the selection was cleared, which cancels clicks that still wait for ids. */
  #cleared = 0;

  /**
   * part: finds the page's elements by name; idsBetween: reads ids from one index to another; all: reads all ids of the project.
   *
   * @param {(name: string) => any} part
   * @param {{ signal: AbortSignal, idsBetween: (first: number, last: number) => Promise<string[]>, all: () => Promise<string[]> }} project
   */
  constructor(part, { signal, idsBetween, all }) {
    super();
    this.part = part;
    this.idsBetween = idsBetween;
    this.all = all;
    part("clear").addEventListener("click", () => this.clear(), { signal });
    part("selection").parentElement.addEventListener("focusin", ({ target }) => target.scrollIntoView({ block: "nearest", inline: "nearest" }), { signal }); // a narrow bar scrolls sideways
    publishHeight(part("selection").parentElement, "--selection-height", signal); // keeps the map, the list and messages above the bar
    publishHeight(part("sticky"), "--sticky-height", signal);
    this.#show();
  }

  /** Ids of the selected parts. */
  get ids() {
    return [...this.#ids];
  }

  /** @param {string} id */
  has(id) {
    return this.#ids.has(id);
  }

  /**
   * Select or deselect the part at an index; with isRange, all between it and the previous one. Throws Refusal.
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
   * Call `set` once the ids are known and earlier clicks have taken effect. Throws Refusal.
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
    this.#pressed = pressed.catch(() => {}); // handled by its caller
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

  /**
   * Work on the selected parts; if one of them no longer exists, deselect it, so that the others can be worked on. Throws Refusal.
   *
   * @param {(ids: string[]) => Promise<void>} work
   */
  async use(work) {
    try {
      await work(this.ids);
    } catch (problem) {
      const there = problem.status === 404 ? new Set(await this.all()) : this.#ids;
      this.set(this.ids.filter((id) => !there.has(id)), false);
      throw problem;
    }
  }

  /** Forget where a range begins, when indexes have changed. */
  forgetAnchor() {
    this.#anchor = null;
  }

  #show() {
    const count = this.#ids.size;
    if (!count) this.part("selection").scrollLeft = 0; // a narrow bar begins with its first button again
    this.part("selection").hidden = !count;
    this.part("selected").textContent = phrase("project.speak.count", { count });
    this.part("delete-selected").textContent = phrase("project.delete.count", { count });
  }
}

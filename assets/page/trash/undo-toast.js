// Says what was just deleted or replaced, and undoes it: the last one, until it is closed. The trash has it for longer.

import { Refusal } from "../client/refusal.js";
import { element, labelled } from "../lib/elements.js";
import { once } from "../lib/once.js";
import { phrase } from "../lib/phrases.js";

class UndoToast {
  /** @type {(() => Promise<unknown>) | null} */
  #undo = null;
  #words = element("span");
  #button = element("button", { type: "button", className: "plain", textContent: phrase("takes.undo"), onclick: once(() => this.#press()) });

  constructor() {
    this.#words.setAttribute("role", "status");
    const close = element("button", { type: "button", className: "plain", textContent: "✕", onclick: () => this.#close() });
    this.root = element("div", { id: "undo-toast", hidden: true }, [this.#words, this.#button, labelled(close, phrase("shell.close"))]);
  }

  offer(words, undo, hasFocus) {
    this.#undo = undo;
    document.querySelector(".area[data-shown]")?.append(this.root); // it goes with the tab, and focus stays there
    this.root.hidden = false;
    this.#words.textContent = words;
    this.#button.hidden = !undo;
    if (undo && hasFocus) this.#button.focus();
  }

  #close() {
    this.root.hidden = true;
    this.#words.textContent = "";
  }

  async #press() {
    const undo = this.#undo;
    try {
      await undo?.();
      if (undo === this.#undo) this.#close();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (undo === this.#undo) this.offer(problem.why, problem.status === 404 ? null : undo, true); // 404: it was restored already
    }
  }
}

/** @type {UndoToast | null} */
let toast = null;

/**
 * Say what was done, with a button that undoes it.
 *
 * @param {string} words
 * @param {(() => Promise<unknown>) | null} undo null: it cannot be undone
 * @param {boolean} [hasFocus] whether the button has the focus, for what was pressed is gone
 */
export function offerUndo(words, undo, hasFocus = true) {
  toast ??= new UndoToast();
  toast.offer(words, undo, hasFocus);
}

// Undo, everywhere on the page: a message with a button describes the last step; Ctrl+Z outside text fields undoes steps, the latest first.

import { Refusal } from "../client/refusal.js";
import { element, labelled } from "../lib/elements.js";
import { phrase } from "../lib/phrases.js";
import { focusAfterwards } from "../lib/typing.js";

const SHOWN = 20_000; // ms; Ctrl+Z and the trash last longer
const TOLD = 8000; // ms, for a message without a button
const MOST = 100; // steps; the trash keeps deleted items for longer
const FIELDS = "input:not([type=checkbox], [type=radio], [type=range], [type=button]), textarea, [contenteditable], dialog"; // text fields have their own undo history

/** A step that can be undone; undo() may return how much of it was undone, and what was left because it has been changed since. @typedef {{ words: string, undo: () => any }} Step */

class Undo {
  /** The last step is undone first. @type {Step[]} */
  #steps = [];
  /** The step that the message is about. @type {Step | null} */
  #shown = null;
  /** The steps to be undone, in this order; the first one is being undone. @type {Step[]} */
  #asked = [];
  #timer = 0;
  #words = element("span");
  #button = element("button", { type: "button", className: "plain", textContent: phrase("takes.undo"), onclick: () => this.#asked.length || this.#ask(this.#shown) });

  constructor() {
    this.#words.setAttribute("role", "status");
    const close = element("button", { type: "button", className: "plain", textContent: "✕", onclick: () => this.#close() });
    this.root = element("div", { id: "undo-toast", hidden: true }, [this.#words, this.#button, labelled(close, phrase("shell.close"))]);
    document.addEventListener("keydown", (event) => this.#key(event));
  }

  add(words, undo, hasFocus) {
    const step = undo && { words, undo };
    if (step) this.#steps = [...this.#steps.slice(1 - MOST), step];
    this.#show(words, step);
    if (step && hasFocus) focusAfterwards(this.#button);
    return step;
  }

  /** Say something beside the step that is shown, if any, whose button stays. */
  remark(words) {
    this.#show([this.#shown?.words, words].filter(Boolean).join(" "), this.#shown);
  }

  /** Remove a step that no longer needs to be undone, or cannot be. */
  withdraw(step) {
    this.#steps = this.#steps.filter((other) => other !== step);
    if (step === this.#shown) this.#close();
  }

  #show(words, step) {
    this.#shown = step;
    document.querySelector(".area[data-shown]")?.append(this.root); // hidden with the area, and focus stays there
    this.root.hidden = false;
    this.#words.textContent = words;
    this.#button.hidden = !step;
    this.#closeLater();
  }

  /** Close the message after a while, but not while the pointer or focus is on it. */
  #closeLater() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => (this.root.matches(":hover, :focus-within") ? this.#closeLater() : this.#close()), this.#shown ? SHOWN : TOLD);
  }

  #close() {
    clearTimeout(this.#timer);
    this.root.hidden = true;
    this.#shown = null;
    this.#words.textContent = "";
  }

  #key(event) {
    const isField = event.target instanceof Element && event.target.closest(FIELDS);
    if (event.key === "Escape" && !isField && !event.defaultPrevented) this.#close();
    const isUndo = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === "z";
    if (!isUndo || isField || !this.#steps.length || event.defaultPrevented) return;
    event.preventDefault();
    if (event.repeat && this.#asked.length) return; // a key that is held goes no further than what can be seen
    this.#ask(this.#steps.findLast((step) => !this.#asked.includes(step)));
  }

  /** Undo a step, once those asked for before are undone: earlier steps rely on later ones having been undone. @param {Step | null} [step] */
  async #ask(step) {
    if (!step || this.#asked.push(step) > 1) return;
    try {
      while (this.#asked.length && (!this.#steps.includes(this.#asked[0]) || (await this.#undo(this.#asked[0])))) this.#asked.shift();
    } finally {
      this.#asked = [];
    }
  }

  /** Undo a step; false if it could not be undone now. */
  async #undo(step) {
    try {
      const { undone = 1, left = [] } = (await step.undo()) ?? {};
      this.withdraw(step);
      const words = !left.length ? "undo.done" : undone ? "undo.partly" : "undo.outdated";
      this.#show(phrase(words, { what: step.words, undone: String(undone), count: left.length }), null);
      return true;
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      const isOver = problem.status === 404 || problem.isOutdated; // restored already, or changed since by someone else: earlier steps come next
      if (isOver) this.withdraw(step);
      this.#show(problem.isOutdated ? phrase("undo.outdated", { what: step.words }) : problem.why, isOver ? null : step);
      return isOver;
    }
  }
}

/** @type {Undo | null} */
let only = null;
const theUndo = () => (only ??= new Undo());

/**
 * Show a message about a step and offer to undo it. Returns the step, for withdrawUndo; null if it cannot be undone.
 *
 * @param {string} words
 * @param {(() => unknown) | null} undo null: it cannot be undone
 * @param {boolean} [hasFocus] whether the button gets the focus, because the control just used is gone
 */
export function offerUndo(words, undo, hasFocus = true) {
  return theUndo().add(words, undo, hasFocus);
}

/** Withdraw a step that was undone by other means, or can no longer be undone. @param {Step | null} step */
export function withdrawUndo(step) {
  if (step) theUndo().withdraw(step);
}

/** Show a message beside the step that can be undone, if one is shown. @param {string} words */
export const remark = (words) => theUndo().remark(words);

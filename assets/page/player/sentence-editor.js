// Edits a sentence of the player's text in place; ended by Enter and Escape or two buttons.

import { element } from "../lib/elements.js";
import { phrase } from "../lib/phrases.js";

/** Fires "done" with {before, words} when these are to be generated, and "left" when editing is cancelled. Put `buttons` beside the text. */
export class SentenceEditor extends EventTarget {
  /** @type {HTMLElement | null} */
  #sentence = null;
  /** The sentence's original nodes. @type {ChildNode[]} */
  #shown = [];
  #words = "";

  constructor() {
    super();
    this.field = element("span", { className: "sentence-words", spellcheck: true, dir: "auto" });
    this.field.setAttribute("role", "textbox");
    this.field.ariaLabel = phrase("player.edit.words");
    this.field.setAttribute("aria-description", phrase("player.edit.keys"));
    this.field.enterKeyHint = "done";
    try {
      this.field.contentEditable = "plaintext-only";
    } catch (problem) {
      if (!(problem instanceof DOMException)) throw problem;
      this.field.contentEditable = "true"; // an older browser: pasted text may have styles, which are ignored
    }
    this.field.addEventListener("beforeinput", (event) => this.#isBusy && event.preventDefault());
    this.field.addEventListener("keydown", (event) => this.#key(event));
    this.field.addEventListener("click", (event) => event.stopPropagation()); // it would seek to the word
    const press = (words, does) => element("button", { type: "button", className: "read-along-press", textContent: words, onclick: does });
    this.generate = press(phrase("player.edit.generate"), () => this.#finish());
    this.buttons = [this.generate, press(phrase("longform.cancel"), () => this.leave())];
    for (const button of this.buttons) button.hidden = true;
  }

  get isOpen() {
    return this.#sentence !== null;
  }

  /** Words that were typed and have not been generated; null without any. */
  get typed() {
    const words = this.field.textContent;
    return this.isOpen && words.trim() !== this.#words.trim() ? words : null;
  }

  /** These words have been generated. */
  accept(words) {
    if (this.typed?.trim() === words) this.#words = words;
  }

  /** Edit a sentence's element, which begins with this text; the field begins with `typed`. */
  open(sentence, text, typed = text) {
    this.leave();
    this.#sentence = sentence;
    this.#words = text;
    this.#shown = [...sentence.childNodes];
    this.field.textContent = typed;
    const whole = sentence.textContent;
    sentence.replaceChildren(this.field, whole.slice(text.length));
    for (const button of this.buttons) button.hidden = false;
    this.isBusy = false;
    this.field.focus();
    document.getSelection()?.selectAllChildren(this.field);
    document.getSelection()?.collapseToEnd();
  }

  /** Block typing during generation. If that fails, the text is still there. */
  set isBusy(isBusy) {
    this.field.ariaBusy = this.field.ariaReadOnly = String(isBusy);
    this.generate.disabled = isBusy;
  }

  /** Cancel editing. */
  leave() {
    if (!this.#sentence) return;
    this.close();
    this.dispatchEvent(new Event("left"));
  }

  /** Close the editor and restore the sentence's original nodes. */
  close() {
    this.#sentence?.replaceChildren(...this.#shown);
    this.#sentence = null;
    for (const button of this.buttons) button.hidden = true;
  }

  get #isBusy() {
    return this.field.ariaBusy === "true";
  }

  #finish() {
    if (this.#isBusy) return;
    const words = this.field.textContent.trim();
    if (words === this.#words.trim()) return this.leave();
    this.dispatchEvent(new CustomEvent("done", { detail: { before: this.#words, words } }));
  }

  #key(event) {
    event.stopPropagation(); // keep key presses from the text and the page
    if (event.key === "Enter") this.#finish();
    else if (event.key === "Escape") this.leave();
    else return;
    event.preventDefault();
  }
}

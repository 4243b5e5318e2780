// One sentence of the text in the player, edited in place: Enter and Escape, or two buttons, end it.

import { element } from "../lib/elements.js";
import { phrase } from "../lib/phrases.js";

/** Fires "done" with {before, words} when these are to be generated, and "left" once the sentence is as it was. Put `buttons` beside the text. */
export class SentenceEditor extends EventTarget {
  /** @type {HTMLElement | null} */
  #sentence = null;
  /** What the sentence showed before. @type {ChildNode[]} */
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
      this.field.contentEditable = "true"; // an older browser: what it pastes may have styles, which are not read
    }
    this.field.addEventListener("beforeinput", (event) => this.#isBusy && event.preventDefault());
    this.field.addEventListener("keydown", (event) => this.#key(event));
    this.field.addEventListener("click", (event) => event.stopPropagation()); // it would play from the word
    const press = (words, does) => element("button", { type: "button", className: "read-along-press", textContent: words, onclick: does });
    this.generate = press(phrase("player.edit.generate"), () => this.#finish());
    this.buttons = [this.generate, press(phrase("longform.cancel"), () => this.leave())];
    for (const button of this.buttons) button.hidden = true;
  }

  get isOpen() {
    return this.#sentence !== null;
  }

  /** Edit a sentence of the page, which begins with this text. */
  open(sentence, text) {
    this.leave();
    this.#sentence = sentence;
    this.#words = text;
    this.#shown = [...sentence.childNodes];
    this.field.textContent = text;
    const whole = sentence.textContent;
    sentence.replaceChildren(this.field, whole.slice(text.length));
    for (const button of this.buttons) button.hidden = false;
    this.isBusy = false;
    this.field.focus();
    document.getSelection()?.selectAllChildren(this.field);
    document.getSelection()?.collapseToEnd();
  }

  /** While it is generated nothing can be typed; afterwards, if that failed, the words are there still. */
  set isBusy(isBusy) {
    this.field.ariaBusy = this.field.ariaReadOnly = String(isBusy);
    this.generate.disabled = isBusy;
  }

  /** Show the sentence as it was. */
  leave() {
    if (!this.#sentence) return;
    this.close();
    this.dispatchEvent(new Event("left"));
  }

  /** The text is another one now, or as before. */
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
    event.stopPropagation(); // the text's own keys, and the page's
    if (event.isComposing) return; // Enter and Escape are the input method's
    if (event.key === "Enter") this.#finish();
    else if (event.key === "Escape") this.leave();
    else return;
    event.preventDefault();
  }
}

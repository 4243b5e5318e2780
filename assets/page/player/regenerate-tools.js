// Buttons beside the text of a take: regenerate or edit a sentence, and play the previous version.

import { element } from "../lib/elements.js";
import { phrase } from "../lib/phrases.js";

/** Fires "mend", "edit" and "before". A message stays until another take is shown. */
export class RegenerateTools extends EventTarget {
  /** @type {any} */
  #take = null;
  #isLost = false; // whether the message says that the studio does not respond

  constructor() {
    super();
    this.mend = this.#button("mend", phrase("player.mend"), phrase("player.mend.title"));
    this.edit = this.#button("edit", phrase("player.edit"), phrase("player.edit.title"));
    for (const button of [this.mend, this.edit]) button.addEventListener("mousedown", (event) => event.preventDefault()); // keeps the selection
    this.before = this.#button("before", phrase("player.before"), phrase("player.before.title"));
    this.status = element("p", { className: "read-along-said", role: "status" });
    this.buttons = [this.before, this.mend, this.edit];
  }

  #button(type, words, title) {
    return element("button", { type: "button", className: "read-along-press", title, onclick: () => this.dispatchEvent(new Event(type)) }, [words]);
  }

  /** take: the take whose text is shown; null while no text is shown or a sentence is being edited. */
  show(take) {
    this.mend.hidden = this.edit.hidden = !take?.canRegenerate;
    this.before.hidden = !take?.regeneratedFrom;
    if (take === this.#take) return;
    this.#take = take;
    this.say(take?.ending === "stopped" ? phrase("player.edit.stopped") : "");
  }

  say(words, isLost = false) {
    this.status.textContent = words;
    this.#isLost = isLost;
  }

  /** The studio responds again. */
  reconnected() {
    if (this.#isLost) this.say("");
  }

  set isBusy(isBusy) {
    this.mend.disabled = this.edit.disabled = isBusy;
  }
}

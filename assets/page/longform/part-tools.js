// Actions for a part: regenerate a sentence, split, merge, insert, move, delete; a bar under its text, opened by a button.

import { element, icon, labelled } from "../lib/elements.js";
import { phrase } from "../lib/phrases.js";

const MORE = '<path d="M6 10.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6Zm6 0a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6Zm6 0a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6Z"/>';

/** Fires "arrange" with {verb}: mend, split, merge, up, down or delete; insert comes with {text}. */
export class PartTools extends EventTarget {
  #isMending = false;
  #isSpoken = false;

  constructor() {
    super();
    const button = (words, onclick) => element("button", { type: "button", className: "plain", textContent: words, onclick });
    const verb = (name, words) => button(words, () => this.#tell({ verb: name }));
    this.mend = verb("mend", phrase("part.mend"));
    this.split = verb("split", phrase("part.split"));
    for (const control of [this.mend, this.split]) control.addEventListener("mousedown", (event) => event.preventDefault()); // the cursor stays where it is
    this.merge = verb("merge", phrase("part.merge"));
    this.up = verb("up", phrase("part.up"));
    this.down = verb("down", phrase("part.down"));
    this.delete = verb("delete", phrase("part.delete"));
    this.insert = button(phrase("part.insert"), () => this.#write(this.form.hidden));
    this.text = element("textarea", { rows: 2, placeholder: phrase("part.insert.text"), dir: "auto" });
    this.form = element("form", { hidden: true }, [
      this.text,
      element("div", { className: "long-bar" }, [element("button", { type: "submit", className: "plain", textContent: phrase("part.insert.add") }), button(phrase("longform.cancel"), () => this.#write(false))]),
    ]);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.text.value.trim()) this.#tell({ verb: "insert", text: this.text.value });
      else this.text.focus();
    });
    const bar = element("div", { className: "long-bar" }, [this.mend, this.split, this.merge, this.insert, this.up, this.down, this.delete]);
    this.said = element("p", { className: "quiet" });
    this.said.setAttribute("role", "status");
    this.element = element("div", { className: "long-tools", hidden: true }, [bar, this.said, this.form]);
    this.toggle = element("button", { type: "button", className: "long-more", onclick: () => this.#open(this.element.hidden) }, [icon(MORE)]);
    this.#open(false);
    this.say("");
  }

  /** The new part was added: clear the form. */
  written() {
    this.text.value = "";
    this.#write(false);
  }

  /** The reason for a refusal; blank: none. */
  say(words) {
    this.said.textContent = words;
    this.said.hidden = !words;
  }

  /** Whether a sentence is being regenerated. */
  set isMending(isMending) {
    this.#isMending = isMending;
    this.mend.disabled = isMending || !this.#isSpoken;
  }

  /** Enables the actions possible at the part's position; isOnly: it cannot be deleted. */
  show({ position, state }, total, isOnly) {
    const number = position + 1;
    this.#isSpoken = state === "done";
    this.isMending = this.#isMending;
    labelled(this.toggle, phrase("part.arrange", { number }));
    this.text.setAttribute("aria-label", phrase("part.insert.label", { number }));
    this.merge.disabled = this.down.disabled = position + 1 >= total;
    this.up.disabled = position === 0;
    this.delete.disabled = isOnly;
  }

  #open(isOpen) {
    this.element.hidden = !isOpen;
    this.toggle.setAttribute("aria-expanded", String(isOpen));
  }

  #write(isWriting) {
    this.form.hidden = !isWriting;
    this.insert.setAttribute("aria-expanded", String(isWriting));
    if (isWriting) this.text.focus();
    else if (!this.element.hidden) this.insert.focus();
  }

  #tell(detail) {
    this.dispatchEvent(new CustomEvent("arrange", { detail }));
  }
}

// What can be done with a part among the others: split, merge, insert, move, delete; a bar under its text, opened by a button.

import { element, icon, labelled } from "../lib/elements.js";

const MORE = '<path d="M6 10.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6Zm6 0a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6Zm6 0a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6Z"/>';

/** Fires "arrange" with {verb}: split, merge, up, down or delete; insert comes with {text}. */
export class PartTools extends EventTarget {
  constructor() {
    super();
    const button = (words, onclick) => element("button", { type: "button", className: "plain", textContent: words, onclick });
    const verb = (name, words) => button(words, () => this.#tell({ verb: name }));
    this.split = verb("split", "Split at cursor");
    this.split.addEventListener("mousedown", (event) => event.preventDefault()); // the cursor stays where it is
    this.merge = verb("merge", "Merge with next");
    this.up = verb("up", "Move up");
    this.down = verb("down", "Move down");
    this.delete = verb("delete", "Delete");
    this.insert = button("Insert below", () => this.#write(this.form.hidden));
    this.text = element("textarea", { rows: 2, maxLength: 4000, placeholder: "Text of the new part", dir: "auto" });
    this.form = element("form", { hidden: true }, [
      this.text,
      element("div", { className: "long-bar" }, [element("button", { type: "submit", className: "plain", textContent: "Add" }), button("Cancel", () => this.#write(false))]),
    ]);
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (this.text.value.trim()) this.#tell({ verb: "insert", text: this.text.value });
      else this.text.focus();
    });
    const bar = element("div", { className: "long-bar" }, [this.split, this.merge, this.insert, this.up, this.down, this.delete]);
    this.said = element("p", { className: "quiet" });
    this.said.setAttribute("role", "status");
    this.element = element("div", { className: "long-tools", hidden: true }, [bar, this.said, this.form]);
    this.toggle = element("button", { type: "button", className: "long-more", onclick: () => this.#open(this.element.hidden) }, [icon(MORE)]);
    this.#open(false);
    this.say("");
  }

  /** The new part is there: what was written is done with. */
  written() {
    this.text.value = "";
    this.#write(false);
  }

  /** Why something was not done; blank: nothing. */
  say(words) {
    this.said.textContent = words;
    this.said.hidden = !words;
  }

  /** What is possible at the place that the part has now, among so many; isOnly: it cannot go. */
  show(position, total, isOnly) {
    const name = `part ${position + 1}`;
    labelled(this.toggle, `Arrange ${name}`);
    this.text.setAttribute("aria-label", `Text of a new part after ${name}`);
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

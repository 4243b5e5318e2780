// Actions for a part, in a menu: regenerate a sentence, split, merge, insert, move, delete; and the form for a new part.

import { element, icon, labelled } from "../../lib/elements.js";
import { MORE } from "../../lib/icons.js";
import { offerMenu } from "../../lib/menu.js";
import { phrase } from "../../lib/phrases.js";

/** Fires "arrange" with {verb}: mend, split, merge, up, down or delete; insert also with {text}; and "write" with {text} while a new part is being written (blank: it no longer is). */
export class PartTools extends EventTarget {
  /** Whether a sentence is being regenerated. */
  isMending = false;
  /** Whether the new part is being added. */
  isAdding = false;
  #part = { position: 0, state: "new" };
  #total = 0;
  /** @type {HTMLFormElement | null} */
  #form = null;
  /** Of the new part. */
  #text = element("textarea", { rows: 2, placeholder: phrase("part.insert.text"), dir: "auto", oninput: () => this.#tell({ text: this.#text.value }, "write") });

  constructor() {
    super();
    this.status = element("p", { className: "quiet", hidden: true });
    this.status.setAttribute("role", "status");
    this.element = element("div", { className: "long-tools" }, [this.status]);
    this.toggle = offerMenu(element("button", { type: "button", className: "long-more" }, [icon(MORE)]), () => this.#items());
  }

  #items() {
    const { position, state } = this.#part;
    const isLast = position + 1 >= this.#total;
    /** @type {(key: import("../../lib/phrases.js").Key, verb: string, isDisabled?: boolean, isGrave?: boolean) => import("../../lib/menu.js").Item} */
    const item = (key, verb, isDisabled = false, isGrave = false) => ({ words: phrase(key), run: () => this.#tell({ verb }), isDisabled, isGrave });
    return [
      item("part.mend", "mend", this.isMending || state !== "done"),
      item("part.split", "split"),
      item("part.merge", "merge", isLast),
      { words: phrase("part.insert"), run: () => this.#open().focus() },
      item("part.up", "up", position === 0),
      item("part.down", "down", isLast),
      item("part.delete", "delete", this.#total === 1, true),
    ];
  }

  /** Show the text of a new part, as written before the row was last away; blank: it was added or discarded. */
  showWritten(text) {
    if (text && !this.#form) this.#open().value = text;
    else if (!text && this.#text.value.trim()) this.#close();
  }

  #close() {
    this.#form?.remove();
    this.#form = null;
    this.#text.value = "";
  }

  clear() {
    this.#close();
    this.say("");
    this.isMending = this.isAdding = false;
  }

  /** Show a status or error message; blank: none. */
  say(words) {
    this.status.textContent = words;
    this.status.hidden = !words;
  }

  show(part, total) {
    [this.#part, this.#total] = [part, total];
    labelled(this.toggle, phrase("part.arrange", { number: part.position + 1 }));
  }

  /** Open the form for a new part, and return its field. */
  #open() {
    const text = this.#text;
    if (this.#form) return text;
    text.setAttribute("aria-label", phrase("part.insert.label", { number: this.#part.position + 1 }));
    const leave = () => {
      this.#close();
      this.#tell({ text: "" }, "write");
      this.toggle.focus();
    };
    const buttons = [element("button", { type: "submit", className: "plain", textContent: phrase("part.insert.add") }), element("button", { type: "button", className: "plain", textContent: phrase("longform.cancel"), onclick: leave })];
    const form = (this.#form = element("form", {}, [text, element("div", { className: "long-bar" }, buttons)]));
    form.addEventListener("keydown", ({ key }) => key === "Escape" && !text.value.trim() && leave());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (!text.value.trim()) return text.focus();
      if (!this.isAdding) this.#tell({ verb: "insert", text: text.value });
      this.isAdding = true;
    });
    this.element.append(form);
    return text;
  }

  #tell(detail, type = "arrange") {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

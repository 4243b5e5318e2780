// The dialog that shows a request as code or settings to copy.

import { copyText } from "../lib/copy.js";
import { closeByPressBeside } from "../lib/dialog.js";
import { partsOf } from "../lib/elements.js";
import { address } from "../client/address.js";
import { needsKey } from "../client/host.js";
import { SNIPPETS } from "./snippets.js";
import { phrase } from "../lib/phrases.js";

export class CodeDialog {
  /** @type {any} */
  #request = null;
  #kind = Object.keys(SNIPPETS)[0];

  constructor(element) {
    this.element = element;
    this.part = partsOf(element);
    this.tabs = Object.keys(SNIPPETS).map((kind) => this.#tab(kind));
    this.part("tabs").append(...this.tabs);
    this.part("tabs").addEventListener("keydown", (event) => this.#arrow(event));
    this.part("copy").addEventListener("click", () => copyText(this.part("text"), this.part("copy")));
    closeByPressBeside(element);
  }

  /** Show a request as code; note: an additional sentence, or empty; kind: the tab, by default the last one shown. */
  open(title, request, note = "", kind = this.#kind) {
    this.#request = request;
    this.part("title").textContent = title;
    this.part("note").textContent = request.ref_audio === undefined ? note : `${note} ${phrase("api.code.clip")}`;
    this.#show(kind);
    this.element.showModal();
  }

  #tab(kind) {
    const tab = Object.assign(document.createElement("button"), { type: "button", textContent: kind });
    tab.setAttribute("role", "tab");
    tab.setAttribute("aria-controls", "code-panel");
    tab.addEventListener("click", () => this.#show(kind));
    return tab;
  }

  #show(kind) {
    this.#kind = kind;
    for (const tab of this.tabs) {
      const chosen = tab.textContent === kind;
      tab.setAttribute("aria-selected", String(chosen));
      tab.tabIndex = chosen ? 0 : -1;
    }
    this.part("text").textContent = SNIPPETS[kind](this.#request, address(""), needsKey);
    this.part("copy").textContent = phrase("shell.copy");
  }

  #arrow({ key }) {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (!by) return;
    const at = this.tabs.findIndex((tab) => tab.textContent === this.#kind);
    const next = this.tabs.at((at + by) % this.tabs.length);
    if (!next) return;
    this.#show(next.textContent);
    next.focus();
  }
}

// A note below a part, or below a text of the project: why changes are not saved, and the choice between two texts.

import { element } from "../lib/elements.js";
import { phrase } from "../lib/phrases.js";

/** Fires "settle" with {isMine}: true to save the changes anyway, false to discard them. */
export class UnsavedNote extends EventTarget {
  constructor() {
    super();
    this.words = element("span");
    this.words.setAttribute("role", "status");
    this.other = element("q", { dir: "auto", hidden: true });
    const button = (textContent, isMine) => element("button", { type: "button", className: "plain", textContent, onclick: () => this.dispatchEvent(new CustomEvent("settle", { detail: { isMine } })) });
    this.mine = button("", true);
    this.theirs = button("", false);
    this.choice = element("div", { className: "long-bar" }, [this.mine, this.theirs]);
    this.element = element("div", { className: "long-unsaved", hidden: true }, [element("p", {}, [this.words, " ", this.other]), this.choice]);
  }

  /**
   * @param {{ problem: import("../client/refusal.js").Refusal | null, changes?: Record<string, any> } | undefined} entry
   * @param {string} text the one in the studio
   * @param {number} gone the number that the part had; 0: it is still there
   */
  show(entry, text, gone) {
    const problem = entry?.problem;
    const isChanged = !gone && problem?.isOutdated;
    this.element.hidden = !problem && !gone;
    const words = gone ? phrase("part.gone", { number: gone }) : !problem ? "" : isChanged ? phrase("part.unsaved.changed") : problem.isLost ? phrase("part.unsaved.lost") : phrase("part.unsaved.why", { why: problem.why });
    if (this.words.textContent !== words) this.words.textContent = words;
    this.other.textContent = isChanged ? text : "";
    this.other.hidden = !isChanged;
    this.mine.hidden = !isChanged && !gone;
    this.choice.hidden = gone ? !("text" in (entry?.changes ?? {})) : !problem?.isOfRequest;
    this.mine.textContent = phrase(gone ? "part.gone.back" : "part.unsaved.mine");
    this.theirs.textContent = phrase(gone ? "part.gone.discard" : isChanged ? "part.unsaved.theirs" : "part.unsaved.discard");
  }
}

/** The note below a text of the project that someone else has changed, too. */
export class ConflictNote extends UnsavedNote {
  #name = "";
  #text = "";

  /** @param {import("./unsaved.js").Unsaved} unsaved @param {(work: () => any) => unknown} run @param {AbortSignal} signal */
  constructor(unsaved, run, signal) {
    super();
    this.unsaved = unsaved;
    this.addEventListener("settle", (/** @type {any} */ { detail: { isMine } }) => {
      const [name, text] = [this.#name, this.#text];
      run(() => (isMine ? unsaved.overwrite("", text, name) : unsaved.note("", { [name]: text }, { [name]: text })));
    });
    signal.addEventListener("abort", () => this.element.remove());
  }

  /** @param {(name: string) => HTMLElement} part @param {{ title: string, settings: Record<string, any> }} project as it is now */
  follow(part, { title, settings }) {
    const [name, problem] = this.unsaved.conflict;
    const place = name && part(name).closest("label, .long-head");
    if (place && place.nextElementSibling !== this.element) place.after(this.element);
    this.#name = name ?? "";
    this.#text = String({ title, ...settings }[this.#name] ?? "");
    this.show(problem && { problem }, this.#text, 0);
  }
}

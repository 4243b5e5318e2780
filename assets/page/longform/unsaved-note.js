// A note below a part: why its changes are not saved, and the choice between two texts.

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
    this.mine = button(phrase("part.unsaved.mine"), true);
    this.theirs = button("", false);
    this.choice = element("div", { className: "long-bar" }, [this.mine, this.theirs]);
    this.element = element("div", { className: "long-unsaved", hidden: true }, [element("p", {}, [this.words, " ", this.other]), this.choice]);
  }

  /**
   * @param {import("./unsaved.js").Entry | undefined} entry
   * @param {string} text the part's text in the studio
   */
  show(entry, text) {
    const problem = entry?.problem;
    const isChanged = problem?.isOutdated;
    this.element.hidden = !problem;
    const words = !problem ? "" : isChanged ? phrase("part.unsaved.changed") : problem.isLost ? phrase("part.unsaved.lost") : phrase("part.unsaved.why", { why: problem.why });
    if (this.words.textContent !== words) this.words.textContent = words;
    this.other.textContent = isChanged ? text : "";
    this.mine.hidden = this.other.hidden = !isChanged;
    this.choice.hidden = !problem?.isOfRequest;
    this.theirs.textContent = phrase(isChanged ? "part.unsaved.theirs" : "part.unsaved.discard");
  }
}

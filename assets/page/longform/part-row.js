// One part of a project as a row: its state in colour and word, its text and voice to change, its takes, play and again.

import { element, icon, labelled, showPlaying } from "../lib/elements.js";
import { PLAY } from "../lib/icons.js";
import { clock } from "../lib/time.js";
import { PartTools } from "./part-tools.js";
import { numeral, phrase } from "../lib/phrases.js";

const AGAIN = '<path d="M19 12a7 7 0 1 1-2.3-5.200M19 4v4h-4"/>';

/** "1⏎The Beginning" and "1. The Beginning" have the same. */
const letters = (text) => text.replace(/[^\p{L}\p{N}]+/gu, "");

/** Fires "play", "again", "select" with {isRange} once its box was ticked or not, "change" with what is to be changed, and "arrange" as its tools do. */
export class PartRow extends EventTarget {
  /** @type {any} */
  part = null;
  /** Whether the cursor is in its text. */
  hasCursor = false;

  constructor(voices) {
    super();
    this.voices = voices;
    const tell = (type, detail) => this.dispatchEvent(new CustomEvent(type, { detail }));
    this.box = element("input", { type: "checkbox", onclick: ({ shiftKey }) => tell("select", { isRange: shiftKey }) });
    this.state = element("span", { className: "long-word" });
    this.chapter = element("strong");
    this.cue = element("span", { className: "long-cue quiet" });
    this.text = element("textarea", { rows: 2, spellcheck: false, dir: "auto", onfocus: () => (this.hasCursor = true), onchange: () => tell("change", { text: this.text.value }) });
    this.error = element("p", { className: "long-error" });
    this.voice = element("select", { onchange: () => tell("change", { voice: this.voice.value }) });
    this.take = element("select", { onchange: () => tell("change", { take: this.take.value }) });
    this.length = element("span");
    this.play = element("button", { type: "button", onclick: () => tell("play") }, [icon(PLAY)]);
    this.again = element("button", { type: "button", className: "long-again", onclick: () => tell("again") }, [icon(AGAIN)]);
    this.tools = new PartTools();
    this.tools.addEventListener("arrange", ({ detail }) => tell("arrange", detail));
    const cell = (className, children) => element("td", { className }, children);
    this.element = element("tr", {}, [
      cell("", [this.box]),
      cell("", [this.state]),
      cell("long-text", [this.cue, this.chapter, this.text, this.error, this.tools.element]),
      cell("long-voice-cell", [this.voice]),
      cell("long-take", [this.length, this.take]),
      element("td", {}, [element("div", { className: "long-do" }, [this.play, this.again, this.tools.toggle])]),
    ]);
  }

  get isSelected() {
    return this.box.checked;
  }

  /** Whether its sound is heard now. */
  set isPlaying(isPlaying) {
    showPlaying(this.play, isPlaying, phrase(isPlaying ? "part.pause" : "part.play", { number: this.part.position + 1 }));
  }

  set isSelected(isSelected) {
    this.box.checked = isSelected;
  }

  /** Show a part in its current state; a field being edited is left alone. */
  show(part, total, isOnly) {
    this.tools.show(part, total, isOnly);
    const before = this.part;
    if (before && JSON.stringify(before) === JSON.stringify(part)) return;
    this.part = part;
    const number = part.position + 1;
    this.box.setAttribute("aria-label", phrase("part.select", { number }));
    this.state.dataset.state = part.state;
    this.state.textContent = phrase(/** @type {import("../lib/phrases.js").Key} */ (`longform.part.${part.state}`));
    const isTitle = Boolean(part.chapter) && letters(part.chapter) === letters(part.text);
    this.text.toggleAttribute("data-heading", isTitle);
    this.chapter.textContent = isTitle ? "" : part.chapter;
    this.chapter.hidden = !this.chapter.textContent;
    this.cue.textContent = part.start === null ? "" : phrase("part.cue", { from: clock(part.start), to: clock(part.end ?? part.start) });
    this.cue.hidden = part.start === null;
    this.text.setAttribute("aria-label", phrase("part.text", { number }));
    if (document.activeElement !== this.text) this.text.value = part.text;
    this.error.textContent = part.state === "failed" ? part.error : "";
    this.error.hidden = part.state !== "failed";
    this.play.disabled = !part.chosen;
    this.isPlaying = "playing" in this.play.dataset;
    labelled(this.again, phrase(part.takes.length ? "part.again" : "part.speak", { number }));
    this.again.disabled = part.state === "queued" || part.state === "speaking";
    if (document.activeElement !== this.voice) this.#offerVoices(number);
    if (document.activeElement !== this.take) this.#offerTakes(number);
  }

  /** Show the part's current text, even with the cursor in it; before: the text shown previously. */
  reword(before, part) {
    if (this.text.value === before) this.text.value = part.text;
  }

  #offerVoices(number) {
    const voice = (this.part.voice ?? "").toLowerCase();
    const match = this.voices.find(({ id, name }) => id === voice || name.toLowerCase() === voice);
    const options = this.voices.map(({ id, name: words }) => element("option", { value: id, textContent: words }));
    if (voice && !match) options.unshift(element("option", { value: this.part.voice, textContent: this.part.voice }));
    labelled(this.voice, phrase("part.voice", { number })).replaceChildren(element("option", { value: "", textContent: phrase("part.voice.project") }), ...options);
    this.voice.value = match?.id ?? this.part.voice ?? "";
  }

  #offerTakes(number) {
    const { takes, chosen, seconds } = this.part;
    const options = takes.map((take, i) =>
      element("option", { value: take.id, textContent: phrase("part.take.option", { number: takes.length - i, seconds: numeral(take.seconds, 1) }), title: phrase("part.seed", { seed: String(take.seed) }) }),
    );
    labelled(this.take, phrase("part.take", { number })).replaceChildren(...options);
    this.take.value = chosen ?? "";
    this.take.hidden = takes.length < 2;
    this.length.textContent = seconds === null || takes.length > 1 ? "" : phrase("time.seconds", { seconds: numeral(seconds, 1) });
  }
}

// One part of a project as a row: number, state, editable text and voice, takes, buttons to play and regenerate, and a menu.

import { element, icon, labelled, showPlaying } from "../../lib/elements.js";
import { PLAY } from "../../lib/icons.js";
import { clock } from "../../lib/time.js";
import { directionWords } from "./direction.js";
import { PartTools } from "./part-tools.js";
import { numeral, phrase } from "../../lib/phrases.js";
import { UnsavedNote } from "../unsaved-note.js";

const AGAIN = '<path d="M19 12a7 7 0 1 1-2.3-5.200M19 4v4h-4"/>';
const DIRECTED = '<path d="M4 8h9m5 0h2M15.500 5.500v5M4 16h2m5 0h9M8.500 13.500v5"/>';
const HANDLE = '<path d="M9 5.500h.01M15 5.500h.01M9 12h.01M15 12h.01M9 18.500h.01M15 18.500h.01"/>';

const GROWS = CSS.supports("field-sizing", "content");

/** The same for "1⏎The Beginning" and "1. The Beginning". */
const letters = (text) => text.replace(/[^\p{L}\p{N}]+/gu, "");

/** Fires "play", "again" (regenerate), "compare" (takes), "select" with {isRange} when its box is clicked, "type" with {text} while it is edited, "change" with the changed fields, "settle" like its note, "write" like its tools, and "arrange" like them, with {words, cursor, end} of its text by then. */
export class PartRow extends EventTarget {
  /** @type {any} */
  part = null;
  /** Whether its text has had the cursor. */
  hasCursor = false;
  /** The stored text from which editing started. */
  base = "";
  /** Whether the part was deleted or merged elsewhere; null: not known, as it is listed. @type {boolean | null} */
  isGone = null;
  /** @type {import("../unsaved.js").Entry | undefined} */
  #unsaved;
  /** @type {RegExp | null} */
  #found = null;

  constructor(voices) {
    super();
    this.voices = voices;
    const tell = (type, detail) => this.dispatchEvent(new CustomEvent(type, { detail }));
    this.box = element("input", { type: "checkbox", onclick: ({ shiftKey }) => tell("select", { isRange: shiftKey }) });
    this.handle = element("button", { type: "button", className: "long-handle", draggable: true }, [element("span"), icon(HANDLE)]);
    this.handle.addEventListener("keydown", (event) => {
      const verb = { ArrowUp: "up", ArrowDown: "down" }[event.key];
      if (!verb) return;
      event.preventDefault();
      tell("arrange", { verb });
    });
    this.state = element("span", { className: "long-word" });
    this.speech = element("span", { className: "quiet", dir: "auto" });
    this.line = element("span", { className: "long-line quiet", dir: "auto" });
    this.directed = element("span", { className: "long-directed" }, [icon(DIRECTED)]);
    this.directed.setAttribute("role", "img");
    this.chapter = element("strong");
    this.cue = element("span", { className: "long-cue quiet" });
    this.text = element("textarea", { rows: 1, spellcheck: false, dir: "auto", onfocus: () => this.#enter(), onblur: () => this.#fillText(), oninput: () => this.#type(tell), onchange: () => tell("change", { text: this.text.value }) });
    this.marks = element("div", { className: "long-marks", dir: "auto", hidden: true });
    this.marks.setAttribute("aria-hidden", "true");
    this.words = element("div", { className: "long-words" }, [this.marks, this.text]);
    this.error = element("p", { className: "long-error" });
    this.voice = element("select", { onchange: () => tell("change", { voice: this.voice.value }) });
    this.take = element("select", { onchange: () => tell("change", { take: this.take.value }) });
    this.compare = element("button", { type: "button", className: "long-compare", textContent: phrase("takes.compare"), onclick: () => tell("compare") });
    this.length = element("span");
    this.play = element("button", { type: "button", onclick: () => tell("play") }, [icon(PLAY)]);
    this.again = element("button", { type: "button", className: "long-again", onclick: () => tell("again") }, [icon(AGAIN)]);
    this.note = new UnsavedNote();
    this.note.addEventListener("settle", ({ detail }) => {
      tell("settle", detail);
      if (!this.element.hasAttribute("data-gone")) this.text.focus(); // as the buttons go; the text is shown by now
    });
    this.tools = new PartTools();
    this.tools.addEventListener("write", ({ detail }) => tell("write", detail));
    this.tools.addEventListener("arrange", ({ detail }) => tell("arrange", { ...detail, words: this.text.value, cursor: this.text.selectionStart, end: this.text.selectionEnd }));
    this.element = element("li", {}, [
      element("div", { className: "long-which" }, [this.box, this.handle]),
      element("div", { className: "long-text" }, [
        this.cue, this.chapter, this.words, this.error, this.note.element,
        element("div", { className: "long-facts" }, [this.state, this.directed, this.speech, this.voice, this.length, this.take, this.compare, this.line]),
        this.tools.element,
      ]),
      element("div", { className: "long-do" }, [this.play, this.again, this.tools.toggle]),
    ]);
    this.#fillVoices();
  }

  get isSelected() {
    return this.box.checked;
  }

  set isSelected(isSelected) {
    this.box.checked = isSelected;
    this.element.toggleAttribute("data-selected", isSelected);
  }

  /** The pattern whose matches are marked in the text; null: none. */
  get found() {
    return this.#found;
  }

  set found(pattern) {
    if (String(pattern) === String(this.#found)) return;
    this.#found = pattern;
    this.#markWords();
    if (!pattern) this.element.removeAttribute("data-found");
  }

  /** Position of the cursor in its text; -1: it is elsewhere. */
  get cursor() {
    return document.activeElement === this.text ? this.text.selectionStart : -1;
  }

  /** Focus the text at a position, or with its first match selected, so that typing replaces it. */
  enter(cursor = -1) {
    const [match] = this.#found ? this.text.value.matchAll(this.#found) : [];
    this.text.focus({ preventScroll: true });
    if (cursor >= 0) this.text.setSelectionRange(cursor, cursor);
    else if (match) this.text.setSelectionRange(match.index, match.index + match[0].length);
  }

  /** Name of the character that speaks; blank: none. */
  set speaker(name) {
    if (this.speech.textContent !== name) this.speech.textContent = name;
    this.speech.hidden = !name;
  }

  /** Whether its audio is playing. */
  set isPlaying(isPlaying) {
    showPlaying(this.play, isPlaying, phrase(isPlaying ? "part.pause" : "part.play", { number: this.part.position + 1 }));
  }

  /** Reset the row so that it can show another part. */
  clear() {
    this.tools.clear();
    this.hasCursor = false;
    this.#unsaved = undefined;
    this.isGone = null;
    this.element.removeAttribute("aria-current");
    this.element.removeAttribute("data-found");
  }

  #type(tell) {
    this.#grow();
    tell("type", { text: this.text.value });
  }

  #enter() {
    this.hasCursor = true;
    this.#lock();
  }

  #lock() {
    this.text.readOnly = Boolean(this.element.closest("[data-right=read]"));
  }

  /** Show a part's current state, except in a field being edited. total: number of all parts. */
  show(part, total) {
    this.tools.show(part, total);
    const before = this.part;
    if (before && JSON.stringify(before) === JSON.stringify(part)) return;
    this.part = part;
    const number = part.position + 1;
    this.element.dataset.part = part.id;
    this.box.setAttribute("aria-label", phrase("part.select", { number }));
    this.handle.firstElementChild.textContent = numeral(number);
    labelled(this.handle, phrase("part.move", { number }));
    this.#showState();
    const direction = directionWords(part);
    labelled(this.directed, direction).hidden = !direction;
    const isTitle = Boolean(part.chapter) && letters(part.chapter) === letters(part.text);
    this.text.toggleAttribute("data-heading", isTitle);
    this.chapter.textContent = isTitle ? "" : part.chapter;
    this.chapter.hidden = !this.chapter.textContent;
    this.cue.textContent = part.start === null ? "" : phrase("part.cue", { from: clock(part.start), to: clock(part.end ?? part.start) });
    this.cue.hidden = part.start === null;
    this.line.textContent = [part.name, ...Object.entries(part.columns).map(([name, cell]) => `${name}: ${cell}`)].filter(Boolean).join(" · ");
    this.line.hidden = !this.line.textContent;
    this.#fillText();
    this.error.textContent = part.state === "failed" || part.state === "done" ? (part.error ?? "") : "";
    this.error.hidden = !this.error.textContent;
    this.play.disabled = !part.chosen;
    this.isPlaying = "playing" in this.play.dataset;
    labelled(this.again, phrase(part.takes.length ? "part.again" : "part.speak", { number }));
    this.again.disabled = part.state === "queued" || part.state === "speaking";
    labelled(this.voice, phrase("part.voice", { number }));
    if (document.activeElement !== this.voice) this.#chooseVoice();
    if (document.activeElement !== this.take) this.#offerTakes(number);
  }

  /** Show the part's new text even in a focused field, unless edited since. before: the text that the field must still have; typed: the text to show, if it differs from the part's. */
  reword(before, part, typed = part.text) {
    if (this.text.value !== before) return;
    const { cursor } = this;
    this.base = part.text;
    this.text.value = typed;
    if (cursor >= 0) this.text.setSelectionRange(cursor, cursor);
    this.#grow();
  }

  /** Show the unsaved changes, if any. @param {import("../unsaved.js").Entry | undefined} entry */
  showUnsaved(entry) {
    this.#unsaved = entry;
    const number = this.part.position + 1;
    const isGone = Boolean(this.isGone || entry?.problem?.isOfPart);
    this.element.toggleAttribute("data-gone", isGone);
    this.text.setAttribute("aria-label", phrase(isGone ? "part.gone.text" : "part.text", { number }));
    this.note.show(entry, this.part.text, isGone ? number : 0);
    this.tools.showWritten(entry?.below ?? "");
    if (this.text.readOnly) this.#lock(); // perhaps no longer
    this.#showState();
    this.#fillText();
    if (document.activeElement !== this.voice) this.#chooseVoice();
  }

  #showState() {
    const state = Object.keys(this.#unsaved?.changes ?? {}).length ? "unsaved" : this.part.state;
    this.state.dataset.state = state;
    this.state.textContent = phrase(/** @type {import("../../lib/phrases.js").Key} */ (`longform.part.${state}`));
  }

  /** Show the text, unless it is being edited. */
  #fillText() {
    if (document.activeElement === this.text) return;
    this.base = this.part.text;
    const text = this.#unsaved?.changes.text ?? this.base;
    if (this.text.value !== text) this.text.value = text;
    this.#grow();
    if (this.#found) this.#markWords();
  }

  /** Make the field as high as its text in browsers that do not do so: the style sheet puts a copy of the text behind it. */
  #grow() {
    if (!GROWS) this.words.dataset.text = this.text.value;
  }

  /** Mark the matches on a copy of the text behind the field, whose own text cannot be marked. */
  #markWords() {
    const text = this.text.value;
    const pieces = [];
    let end = 0;
    for (const match of this.#found ? text.matchAll(this.#found) : []) {
      pieces.push(text.slice(end, match.index), element("mark", { textContent: match[0] }));
      end = match.index + match[0].length;
    }
    this.marks.hidden = !pieces.length;
    this.marks.replaceChildren(...pieces, text.slice(end));
  }

  /** Called once, as a row shows many parts in turn. */
  #fillVoices() {
    const options = this.voices.map(({ id, name: words }) => element("option", { value: id, textContent: words }));
    this.voice.replaceChildren(element("option", { value: "", textContent: phrase("part.voice.project") }), ...options);
  }

  #chooseVoice() {
    const voice = this.#unsaved?.changes.voice ?? this.part.voice;
    const folded = (voice ?? "").toLowerCase();
    const match = this.voices.find(({ id, name }) => id === folded || name.toLowerCase() === folded);
    this.voice.querySelector("[data-unknown]")?.remove();
    if (voice && !match) {
      const unknown = element("option", { value: voice, textContent: voice });
      unknown.dataset.unknown = "";
      this.voice.append(unknown);
    }
    this.voice.value = match?.id ?? voice ?? "";
  }

  #offerTakes(number) {
    const { takes, chosen, seconds } = this.part;
    this.take.hidden = this.compare.hidden = takes.length < 2;
    this.compare.setAttribute("aria-label", phrase("part.compare", { number }));
    const options = this.take.hidden ? [] : takes.map((take, i) =>
      element("option", { value: take.id, textContent: phrase("part.take.option", { number: takes.length - i, seconds: numeral(take.seconds, 1) }), title: phrase("part.seed", { seed: String(take.seed) }) }),
    );
    labelled(this.take, phrase("part.take", { number })).replaceChildren(...options);
    this.take.value = chosen ?? "";
    this.length.textContent = seconds === null || takes.length > 1 ? "" : phrase("time.seconds", { seconds: numeral(seconds, 1) });
  }
}

// The text of the current track, with the spoken word highlighted; a click on a word seeks to it and marks its sentence, which can be edited.

import { timesAt } from "../client/takes.js";
import { element } from "../lib/elements.js";
import { RegenerateTools } from "./regenerate-tools.js";
import { SentenceEditor } from "./sentence-editor.js";
import { bySentence, joined, placed, replaced, wordsOf } from "./words.js";
import { phrase } from "../lib/phrases.js";
import { askBeforeLeaving } from "../lib/typing.js";

const LINGERS = 0.4; // seconds that a word stays highlighted if none follows
const AWAITED = 0.03; // seconds that words are highlighted early, as drawing lags behind audio
/** The text of a take without word times: no text and no sentences. @type {{ text: string, sentences: import("./words.js").Piece[][] }} */
const NOTHING = { text: "", sentences: [] };
const AWAITING = { ...NOTHING }; // while it is being fetched; the text keeps its room, so that the page does not jump from track to track

/**
 * At the top of the player bar. Fetches times only while shown. Fires "mend" with {take, text, start, end, from}: a span
 * of its text in code points and its start in seconds, with {replacement, made} for new words, made() to be called once they are generated; and "before" with {take}.
 */
export class ReadAlong extends EventTarget {
  /** @type {any} */
  #track = null;
  /** Words in order. @type {{ start: number, end: number, at: number, to: number, element: HTMLElement }[]} */
  #words = [];
  /** @type {HTMLElement | null} */
  #lit = null;
  /** Marked sentences. @type {HTMLElement[]} */
  #marked = [];
  #known = new WeakMap(); // by track, its text
  #wasEdited = false; // the editor was closed: the next text gets the focus
  #edited = { at: 0, text: "", from: 0, key: "" }; // the sentence being edited, and its start in seconds
  /** Words typed into sentences of which the editor was closed by something else, by the sentence's key. @type {Map<string, string>} */
  #typed = new Map();

  constructor(dock, nowPlaying, preferences) {
    super();
    this.nowPlaying = nowPlaying;
    this.preferences = preferences;
    this.text = element("div", { className: "read-along-text", tabIndex: 0, role: "group", dir: "auto" });
    this.text.ariaLabel = phrase("player.text.keys");
    this.text.addEventListener("click", ({ target }) => this.#go(this.#words.find((word) => word.element === target)));
    this.text.addEventListener("keydown", (event) => this.#step(event));
    this.toggle = element("button", { type: "button", className: "read-along-press", title: phrase("player.text.toggle") }, [phrase("player.text")]);
    this.toggle.addEventListener("click", () => preferences.set({ text: this.#isShown ? "off" : "on" }));
    this.tools = new RegenerateTools();
    this.tools.addEventListener("mend", () => this.#mend());
    this.tools.addEventListener("before", () => this.#tell("before"));
    this.tools.addEventListener("edit", () => this.#edit(this.#meant[0]));
    this.text.addEventListener("dblclick", ({ target }) => this.#edit(this.#words.find((word) => word.element === target)));
    this.editor = new SentenceEditor();
    this.editor.addEventListener("done", ({ detail }) => this.#reword(detail));
    this.editor.addEventListener("left", () => this.#leave());
    const side = element("div", { className: "read-along-side" }, [...this.tools.buttons, ...this.editor.buttons, this.toggle]);
    this.element = element("div", { className: "read-along", hidden: true }, [this.text, side, this.tools.status]);
    dock.prepend(this.element);
    nowPlaying.addEventListener("show", ({ detail }) => this.#follow(detail.take));
    nowPlaying.addEventListener("moved", ({ detail }) => {
      this.#follow(detail.take);
      this.#light(detail.state === "over" ? Infinity : detail.position);
    });
    preferences.addEventListener("change", () => this.#follow(this.#track));
    document.addEventListener("selectionchange", () => this.#mark());
    askBeforeLeaving(() => this.editor.typed !== null || this.#typed.size > 0);
  }

  /** While a sentence is generated. */
  set isBusy(isBusy) {
    this.tools.isBusy = this.editor.isBusy = isBusy;
  }

  get #isShown() {
    return this.preferences.values.text === "on";
  }

  /** Show the text of a track once it is complete: its word times are available then. */
  async #follow(track) {
    const isUnknown = this.#isShown && track?.timesSource && !this.#known.has(track);
    if (isUnknown) this.#known.set(track, AWAITING);
    this.#show(track);
    if (!isUnknown) return;
    const times = await this.#ask(track).catch(() => NOTHING); // a lost connection is reported elsewhere
    this.#known.set(track, times);
    if (this.nowPlaying.current === track) this.#show(track, true);
  }

  async #ask(track) {
    const sources = [track.timesSource, ...(track.canRegenerate ? [`${track.timesSource}?of=sentence`] : [])];
    const [words, sentences] = await Promise.all(sources.map(timesAt));
    if (!words) return NOTHING;
    return { text: words.text, sentences: bySentence(placed(words.text, words.timestamps), sentences?.timestamps ?? []) };
  }

  #show(track, isNews = false) {
    const known = (track && this.#known.get(track)) ?? NOTHING;
    const { sentences } = known;
    const isEmpty = !sentences.length && known !== AWAITING;
    this.element.hidden = !track?.timesSource || (this.#known.has(track) && isEmpty);
    this.text.hidden = !this.#isShown || isEmpty;
    this.toggle.ariaExpanded = String(this.#isShown);
    const isOther = track !== this.#track || isNews;
    if (this.editor.isOpen && (isOther || this.text.hidden)) {
      this.#setAside();
      this.#wasEdited = true;
    }
    this.tools.show(this.text.hidden || this.editor.isOpen ? null : track);
    if (!isOther) return;
    this.#track = track;
    this.#lit = null;
    this.#words = [];
    this.text.replaceChildren(...sentences.map((pieces) => element("span", { className: "sentence" }, pieces.map((piece) => this.#drawn(piece)))));
    this.text.scrollTop = 0;
    this.#mark();
    if (!this.#wasEdited || this.text.hidden) return;
    this.#wasEdited = false;
    const { activeElement } = document; // another control of the player may have got it while there was no text
    if (activeElement === document.body || this.element.parentElement?.contains(activeElement)) this.text.focus({ preventScroll: true });
  }

  /** @param {import("./words.js").Piece} piece */
  #drawn({ text, at, start, end }) {
    if (start === undefined || end === undefined) return joined(text, "\n"); // no empty lines: they would only take up space
    const word = { start, end, at, to: at + text.length, element: element("span", { className: "word" }, [text]) };
    this.#words.push(word);
    return word.element;
  }

  /** Return the index of the word at or just before a second. */
  #at(seconds) {
    const next = this.#words.findIndex(({ start }) => start > seconds + AWAITED);
    return next < 0 ? this.#words.length - 1 : next - 1;
  }

  #light(seconds) {
    const word = this.#words[this.#at(seconds)];
    const lit = word && seconds < word.end + LINGERS ? word.element : null;
    if (lit === this.#lit) return;
    this.#lit?.classList.remove("is-heard");
    lit?.classList.add("is-heard");
    this.#lit = lit;
    if (lit) this.#keepInView(lit);
    this.#mark();
  }

  #keepInView(lit) {
    const { text } = this;
    if (!lit.isConnected) return; // in the sentence being edited
    const isSeen = lit.offsetTop >= text.scrollTop && lit.offsetTop + lit.offsetHeight <= text.scrollTop + text.clientHeight;
    if (!isSeen) text.scrollTop = lit.offsetTop - lit.offsetHeight / 4; // the text is its words' offset parent
  }

  /** The selected words, otherwise the one being spoken. */
  get #meant() {
    const selection = document.getSelection();
    const range = selection?.rangeCount && !selection.isCollapsed ? selection.getRangeAt(0) : null;
    const selected = range && this.text.contains(range.commonAncestorContainer) ? this.#words.filter((word) => range.intersectsNode(word.element)) : [];
    return selected.length ? selected : this.#words.slice(Math.max(0, this.#at(this.nowPlaying.position))).slice(0, 1);
  }

  /** Edit the sentence of a word in place. */
  #edit(word) {
    const sentence = word?.element.parentElement;
    const place = [...this.text.children].indexOf(sentence);
    if (!this.#track?.canRegenerate || place < 0) return;
    this.nowPlaying.pause();
    this.#setAside();
    const words = wordsOf(this.#known.get(this.#track).sentences[place]);
    const from = this.#words.find(({ element: { parentElement } }) => parentElement === sentence)?.start ?? 0;
    this.#edited = { ...words, from, key: `${this.#track.timesSource} ${words.at}` };
    this.editor.open(sentence, words.text, this.#typed.get(this.#edited.key));
    this.#typed.delete(this.#edited.key);
    this.tools.show(null);
    this.tools.say(phrase("player.edit.keys"));
    this.#mark();
  }

  /** Close the editor; typed words are in it again when this sentence is edited next. */
  #setAside() {
    const { typed } = this.editor;
    if (typed !== null) this.#typed.set(this.#edited.key, typed);
    this.editor.close();
  }

  #reword({ before, words }) {
    const { start, end, replacement } = replaced(before, words);
    const { at, from, key } = this.#edited;
    this.#tellSpan(at + start, at + end, { from, replacement: joined(replacement, " "), made: () => this.#made(key, words) });
  }

  /** Words typed into a sentence have been generated. */
  #made(key, words) {
    if (this.#typed.get(key)?.trim() === words) this.#typed.delete(key);
    if (this.#edited.key === key) this.editor.accept(words);
  }

  /** Editing was cancelled. */
  #leave() {
    this.tools.say("");
    this.tools.show(this.#track);
    this.#mark();
    this.text.focus({ preventScroll: true });
  }

  /** Mark the sentences that would be regenerated. */
  #mark() {
    const marked = this.tools.mend.hidden ? [] : [...new Set(this.#meant.map((word) => /** @type {HTMLElement} */ (word.element.parentElement)))];
    for (const sentence of this.#marked) sentence.classList.toggle("is-meant", marked.includes(sentence));
    for (const sentence of marked) sentence.classList.add("is-meant");
    this.#marked = marked;
  }

  #mend() {
    const [first, last] = [this.#meant[0], this.#meant.at(-1)];
    if (!first || !last) return;
    this.nowPlaying.pause();
    this.#tellSpan(first.at, last.to, { from: first.start });
  }

  #tellSpan(start, end, more) {
    const { text } = this.#known.get(this.#track);
    const points = (to) => [...text.slice(0, to)].length;
    this.#tell("mend", { text, start: points(start), end: points(end), ...more });
  }

  #tell(type, more = {}) {
    this.dispatchEvent(new CustomEvent(type, { detail: { take: this.#track, ...more } }));
  }

  #go(word) {
    if (!word) return;
    this.nowPlaying.seek(word.start);
    if (!this.nowPlaying.isPlaying) this.nowPlaying.playOrPause();
  }

  #step(event) {
    if (event.key === "Enter" && event.target === this.text) {
      event.preventDefault();
      return this.#edit(this.#meant[0]);
    }
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by || !this.#words.length) return;
    event.preventDefault();
    const at = this.#at(this.nowPlaying.position) + by;
    this.#go(this.#words[Math.min(Math.max(0, at), this.#words.length - 1)]);
  }
}

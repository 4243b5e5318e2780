// The page's fields: read and set through Gradio, and stored in this browser.

import { Refusal } from "../client/refusal.js";
import { seedOf } from "../client/requests.js";
import { labelOf, voices } from "../client/voices.js";
import { Latest } from "../lib/latest.js";
import { LookAgain } from "../lib/look-again.js";
import { phrase } from "../lib/phrases.js";
import { keepByTab, keptByTab } from "../lib/by-tab.js";
import { offerUndo } from "../trash/undo-toast.js";
import { setUsual, usual } from "./sampling-presets.js";

/** In the order of the values passed by studio/ui/page.py. */
const NAMES = ["text", "source", "voice", "clipText", "temperature", "topP", "topK", "speed", "cutAfter", "seed"];
const STORE = "1"; // the draft
const SHOWN = 500; // ms after which Gradio certainly shows new values
const SETTLED = 300; // ms without a change before the draft is saved

/** Fires "change" with {values, isFilled, isLate} whenever a field changes; isFilled: by the page itself; isLate: reported by Gradio. Fires "voices" with {voices} once they are fetched. */
export class Fields extends EventTarget {
  /** @type {any} */
  values = {};
  voices = []; // offered in the picker, as listed by the API
  /** The Studio's own clip, unknown to Gradio. @type {Blob | null} */
  #clip = null;
  #looks = new Latest(); // for voices
  #again = new LookAgain();
  /** @type {any} */
  #changes = {};
  /** @type {string[][] | null} */
  #choices = null; // new voices for the picker, null if unchanged
  #writing = 0;
  /** @type {any} */
  #filled = {}; // by name, {before, now} of values that Gradio may not show yet
  #showing = 0;
  #isTyped = false; // the script, by a person, since the page was drawn
  #isRestored = false; // before, nothing is kept: the fields do not show the draft yet
  /** The last voice that was no longer offered, and the one shown in its place: it may come back. */
  #gone = { voice: "", by: "" };
  /** The draft's voice, while the voices are still unknown. @type {{ voice?: string }} */
  #awaited = {};

  constructor() {
    super();
    document.addEventListener("input", ({ target }) => (this.#isTyped ||= target instanceof Element && target.matches("#script textarea")));
    addEventListener("pagehide", () => this.#leave());
    document.addEventListener("visibilitychange", () => document.hidden && this.#leave());
  }

  /** Save the draft at once, with the script as it is shown: Gradio may not have reported the last keys yet. */
  #leave() {
    const script = document.querySelector("#script textarea");
    if (!(script instanceof HTMLTextAreaElement) || this.values.text === undefined) return;
    const isTyped = script.value !== this.values.text && !("text" in this.#filled);
    if (isTyped) this.values = { ...this.values, text: script.value };
    if (isTyped || this.#writing) this.#keep();
  }

  named(values) {
    /** @type {any} */
    const named = { ...Object.fromEntries(NAMES.map((name, i) => [name, values[i]])), clip: this.#clip };
    const isRounded = typeof named.seed === "number" && named.seed > Number.MAX_SAFE_INTEGER;
    return isRounded ? { ...named, seed: seedOf(/** @type {HTMLInputElement} */ (document.querySelector("#seed input")).value) } : named;
  }

  /** @param {Blob | null} clip */
  set clip(clip) {
    if (clip === this.#clip) return;
    this.#clip = clip;
    this.#tell({ ...this.values, clip }, { isLate: false });
  }

  /**
   * Change some fields: clicks #refill, on which Gradio calls `refill` for the new values. The current clip is kept if changes
   * has none.
   *
   * @param {Record<string, any>} changes
   */
  fill({ clip, ...changes }) {
    if (clip) this.#clip = clip;
    if ("voice" in changes) this.#forgetVoice();
    this.#changes = { ...this.#changes, ...changes };
    document.getElementById("refill")?.click();
  }

  /** Called by Gradio with the current values; returns the new ones. */
  refill(...values) {
    const [changes, choices] = [this.#changes, this.#choices];
    this.#changes = {};
    this.#choices = null;
    const shown = this.named(values);
    const before = this.#current({ ...shown }); // the last changes may not be shown yet
    for (const [name, now] of Object.entries(changes)) this.#filled[name] = { before: shown[name], now };
    clearTimeout(this.#showing);
    this.#showing = setTimeout(() => (this.#filled = {}), SHOWN);
    this.#tell({ ...before, ...changes }, { isFilled: true });
    const next = NAMES.map((name) => (name in changes ? changes : before)[name]);
    const voice = NAMES.indexOf("voice");
    if (choices) next[voice] = { __type__: "update", choices, value: next[voice] };
    return next;
  }

  /** Called by Gradio with the current values after any change. */
  changed(...values) {
    const now = this.#current(this.named(values));
    if (this.values.voice && now.voice !== this.values.voice) this.#forgetVoice();
    this.#tell(now);
    clearTimeout(this.#writing);
    this.#writing = setTimeout(() => this.#keep(), SETTLED);
  }

  /** Another voice was chosen: an earlier one does not come back. */
  #forgetVoice() {
    delete this.#awaited.voice;
    this.#gone = { voice: "", by: "" };
  }

  /** Gradio updates fields one by one and reports old values for the rest: replace those with the pending ones. */
  #current(values) {
    for (const [name, { before, now }] of Object.entries(this.#filled)) {
      if (values[name] === before) values[name] = now;
      else delete this.#filled[name];
    }
    return values;
  }

  #tell(values, { isFilled = false, isLate = true } = {}) {
    this.values = values;
    this.dispatchEvent(new CustomEvent("change", { detail: { values, isFilled, isLate } }));
  }

  /** Without what the model decides, which may be another one when it is restored. */
  #keep() {
    clearTimeout(this.#writing);
    this.#writing = 0;
    if (!this.#isRestored) return;
    const values = { ...this.values, ...this.#changes, ...this.#awaited };
    keepByTab(STORE, Object.fromEntries(NAMES.filter((name) => values[name] !== usual[name]).map((name) => [name, values[name]])));
  }

  /**
   * Follow the loaded model: fields that have the previous one's usual sampling get this one's.
   *
   * @param {{ temperature: number, top_p: number, top_k: number }} sampling
   */
  follow(sampling) {
    const before = { ...usual };
    setUsual(sampling);
    const changes = Object.entries(usual).filter(([name, value]) => value !== before[name] && this.values[name] === before[name]);
    if (changes.length) this.fill(Object.fromEntries(changes));
  }

  /** Update the offered voices and apply changes; a voice that no longer exists is replaced by the studio's first choice. */
  async offerVoices(changes = {}) {
    const listed = await this.lookForVoices();
    const has = (/** @type {string} */ wanted) => listed.some(({ id }) => id === wanted);
    const back = this.values.voice === this.#gone.by && has(this.#gone.voice) ? { voice: this.#gone.voice } : {};
    const { voice } = { voice: this.values.voice, ...back, ...changes }; // undefined before the first change: the picker shows the default voice of the studio's start
    if (has(voice)) return this.fill({ ...back, ...changes });
    const by = (listed.find(({ isFirstChoice }) => isFirstChoice) ?? listed[0])?.id;
    this.fill({ ...back, ...changes, voice: by });
    this.#gone = { voice, by };
  }

  /** Fetch the library's voices, to be offered with the next change. Return them. */
  async lookForVoices() {
    const isLatest = this.#looks.begin();
    const listed = await voices();
    if (isLatest()) {
      this.voices = listed;
      this.#choices = listed.map((voice) => [labelOf(voice), voice.id]);
      this.dispatchEvent(new CustomEvent("voices", { detail: { voices: listed } }));
    }
    return listed;
  }

  /**
   * Restore the stored fields; `voice`, if any, overrides the last voice. A script typed meanwhile stays, and the stored one is offered.
   * Resolves once the voices are offered, or cannot be for now. Seed defaults to null: Gradio turns undefined into 0.
   *
   * @param {string} [voice]
   */
  restore(voice) {
    const { text, voice: last, ...others } = readStore();
    const isShown = text === undefined || this.#isTyped;
    this.fill({ seed: null, ...usual, ...others, ...(isShown ? {} : { text }) });
    if (this.#isTyped && text?.trim()) offerUndo(phrase("speak.script.replaced"), () => this.fill({ text }), false);
    if (voice || last) this.#awaited.voice = voice || last;
    this.#isRestored = true;
    return this.#offerAwaited();
  }

  /** Offer the voices, now or as soon as the studio tells them. */
  async #offerAwaited() {
    try {
      await this.offerVoices(this.#awaited);
      this.#awaited = {};
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.#again.after(problem, () => this.#offerAwaited());
    }
  }
}

/**
 * Keep a Gradio dropdown's list open only while its field has the focus. Gradio reopens it after any key press, even after the
 * Tab that leaves it, and a scrollable list would be a tab stop. On Enter, Gradio would take the focus from the field.
 *
 * @param {Element} field
 */
export function closeListOnLeaving(field) {
  const close = () => field.dispatchEvent(new FocusEvent("blur")); // Gradio's own way to close it
  new MutationObserver(() => field.ariaExpanded === "true" && document.activeElement !== field && close()).observe(field, { attributeFilter: ["aria-expanded"] });
  field.parentElement?.addEventListener("keydown", (event) => {
    // Gradio answers Enter after the next frame or timer, whichever is first, so its call itself ends the replacement.
    if (event.key === "Enter") Object.assign(field, { blur: () => Reflect.deleteProperty(field, "blur") && close() });
    if (event.key !== "Tab") return;
    event.stopPropagation();
    close();
  }, true);
}

function readStore() {
  const kept = keptByTab(STORE, {});
  return Object.fromEntries(Object.entries(kept).filter(([name]) => NAMES.includes(name)));
}

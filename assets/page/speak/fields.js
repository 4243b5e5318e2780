// The page's fields: read and set through Gradio, and kept in this browser.

import { labelOf, voices } from "../client/voices.js";
import { Latest } from "../lib/latest.js";
import { keepByTab, keptByTab } from "../lib/storage.js";

/** In the order in which studio/ui/page.py gives the values. */
const NAMES = ["text", "source", "voice", "clipText", "temperature", "topP", "topK", "speed", "cutAfter", "seed"];
const STORE = "voice-studio-1";
const SHOWN = 500; // ms after which Gradio shows for sure what it was given
const SETTLED = 300; // ms without a change before the draft is written

/** Fires "change" with {values, isFilled, isLate} whenever a field changes; isFilled: by the page itself; isLate: as Gradio tells. */
export class Fields extends EventTarget {
  /** @type {any} */
  values = {};
  voices = []; // that the picker offers, as the API lists them
  /** The Studio's own clip, of which Gradio knows nothing. @type {Blob | null} */
  #clip = null;
  #looks = new Latest(); // for voices
  /** @type {any} */
  #changes = {};
  /** @type {string[][] | null} */
  #choices = null; // voices for the picker, when they are other ones
  #writing = 0;
  /** @type {any} */
  #filled = {}; // by name, {before, now} of what Gradio was given and may not show yet
  #showing = 0;

  named(values) {
    return { ...Object.fromEntries(NAMES.map((name, i) => [name, values[i]])), clip: this.#clip };
  }

  /** @param {Blob | null} clip */
  set clip(clip) {
    if (clip === this.#clip) return;
    this.#clip = clip;
    this.#tell({ ...this.values, clip }, { isLate: false });
  }

  /**
   * Change some fields: presses #refill, upon which Gradio asks `refill` for the new values. A clip that is there stays where
   * they have none.
   *
   * @param {Record<string, any>} changes
   */
  fill({ clip, ...changes }) {
    if (clip) this.#clip = clip;
    this.#changes = { ...this.#changes, ...changes };
    document.getElementById("refill")?.click();
  }

  /** Called by Gradio with the current values; returns the new ones. */
  refill(...values) {
    const [changes, choices] = [this.#changes, this.#choices];
    this.#changes = {};
    this.#choices = null;
    const before = this.named(values);
    this.#filled = Object.fromEntries(Object.entries(changes).map(([name, now]) => [name, { before: before[name], now }]));
    clearTimeout(this.#showing);
    this.#showing = setTimeout(() => (this.#filled = {}), SHOWN);
    this.#tell({ ...before, ...changes }, { isFilled: true });
    const next = NAMES.map((name, i) => (name in changes ? changes[name] : values[i]));
    const voice = NAMES.indexOf("voice");
    if (choices) next[voice] = { __type__: "update", choices, value: next[voice] };
    return next;
  }

  /** Called by Gradio with the current values after any change. */
  changed(...values) {
    this.#tell(this.#current(this.named(values)));
    clearTimeout(this.#writing);
    this.#writing = setTimeout(() => this.#keep(), SETTLED);
  }

  /** Gradio changes fields one by one, and tells the others as they were: those are what they are about to be. */
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

  #keep() {
    keepByTab(STORE, Object.fromEntries(NAMES.map((name) => [name, this.values[name]])));
  }

  /** Offer the library's voices as they are now, and make changes; a voice that is gone gives way to the studio's first choice. */
  async offerVoices(changes = {}) {
    const listed = await this.lookForVoices();
    const voice = changes.voice ?? this.values.voice; // none before the first change: the picker shows the default voice
    const isGone = voice !== undefined && !listed.some(({ id }) => id === voice);
    this.fill({ ...changes, ...(isGone ? { voice: (listed.find(({ isFirstChoice }) => isFirstChoice) ?? listed[0])?.id } : {}) });
  }

  /** Have the next change offer the library's voices as they are now; gives them. */
  async lookForVoices() {
    const isLatest = this.#looks.begin();
    const listed = await voices();
    if (isLatest()) {
      this.voices = listed;
      this.#choices = listed.map((voice) => [labelOf(voice), voice.id]);
    }
    return listed;
  }

  /** Bring back what this browser kept; `voice`, if it is one, goes before the voice used last. Of no seed, Gradio makes 0. */
  restore(voice) {
    return this.offerVoices({ seed: null, ...readStore(), ...(voice ? { voice } : {}) });
  }
}

/**
 * The list of a Gradio dropdown is open only while the focus is in its field. Gradio opens it again after any key, even after the
 * Tab that leaves it, and a list that scrolls would be a stop of that Tab.
 *
 * @param {Element} field
 */
export function closeListOnLeaving(field) {
  const close = () => field.dispatchEvent(new FocusEvent("blur")); // as Gradio closes it itself
  new MutationObserver(() => field.ariaExpanded === "true" && document.activeElement !== field && close()).observe(field, { attributeFilter: ["aria-expanded"] });
  field.parentElement?.addEventListener("keydown", (event) => {
    if (event.key !== "Tab") return;
    event.stopPropagation();
    close();
  }, true);
}

function readStore() {
  const kept = keptByTab(STORE, {});
  if (kept.keepSeed === false) kept.seed = null; // earlier versions had a switch for it, and a seed that was not meant
  return Object.fromEntries(Object.entries(kept).filter(([name]) => NAMES.includes(name)));
}

// The page's fields: their values as Gradio tells them, changing them from here, and keeping them in this browser.

import { voices } from "./door.js";

/** In the order in which studio/ui/page.py gives the values. */
const NAMES = ["text", "source", "voice", "clip", "clipText", "temperature", "topP", "topK", "speed", "cutAfter", "seed", "keepSeed"];
const NOT_KEPT = ["clip"]; // a recording stays on the server only for a while, and is nobody's draft
const STORE = "voice-studio-1";
const SETTLED = 300; // ms without a change before the draft is written

/** Fires "change" with {values} whenever a field changes. */
export class Fields extends EventTarget {
  values = {};
  #changes = {};
  #choices = null; // voices for the picker, when they are other ones
  #writing = 0;

  named(values) {
    return Object.fromEntries(NAMES.map((name, i) => [name, values[i]]));
  }

  /** Change some fields: presses #refill, upon which Gradio asks `refill` for the new values. */
  fill(changes) {
    this.#changes = { ...this.#changes, ...changes };
    document.querySelector("#refill").click();
  }

  /** Called by Gradio with the present values; returns what they shall be. */
  refill(...values) {
    const [changes, choices] = [this.#changes, this.#choices];
    this.#changes = {};
    this.#choices = null;
    this.#tell({ ...this.named(values), ...changes });
    const wanted = NAMES.map((name, i) => (name in changes ? changes[name] : values[i]));
    const voice = NAMES.indexOf("voice");
    if (choices) wanted[voice] = { __type__: "update", choices, value: wanted[voice] };
    return wanted;
  }

  /** Called by Gradio with the present values after any change. */
  changed(...values) {
    this.#tell(this.named(values));
    clearTimeout(this.#writing);
    this.#writing = setTimeout(() => this.#keep(), SETTLED);
  }

  #tell(values) {
    this.values = values;
    this.dispatchEvent(new CustomEvent("change", { detail: { values } }));
  }

  #keep() {
    const kept = Object.entries(this.values).filter(([name]) => !NOT_KEPT.includes(name));
    localStorage.setItem(STORE, JSON.stringify(Object.fromEntries(kept)));
  }

  /** Offer the library's voices as they are now, and make changes; a voice that is gone gives way to the first. */
  async offerVoices(changes = {}) {
    const listed = await voices();
    const voice = changes.voice ?? this.values.voice;
    const isThere = listed.some(({ id }) => id === voice);
    this.#choices = listed.map(({ id, name }) => [name, id]);
    this.fill({ ...changes, voice: isThere ? voice : listed[0]?.id });
  }

  /** Bring back what this browser kept; `voice`, if it is one, goes before the voice used last. */
  restore(voice) {
    return this.offerVoices({ ...readStore(), ...(voice ? { voice } : {}) });
  }
}

function readStore() {
  try {
    const kept = JSON.parse(localStorage.getItem(STORE) ?? "{}");
    return Object.fromEntries(Object.entries(kept).filter(([name]) => NAMES.includes(name) && !NOT_KEPT.includes(name)));
  } catch (problem) {
    if (!(problem instanceof SyntaxError)) throw problem;
    return {};
  }
}

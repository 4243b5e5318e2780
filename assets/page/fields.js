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
    const changes = this.#changes;
    this.#changes = {};
    this.#tell({ ...this.named(values), ...changes });
    return NAMES.map((name, i) => (name in changes ? changes[name] : values[i]));
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

  /** Bring back what this browser kept; a voice that is gone is left at the default. */
  async restore() {
    const kept = readStore();
    if (kept.voice && !(await voices()).some((voice) => voice.id === kept.voice)) delete kept.voice;
    this.fill(kept);
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

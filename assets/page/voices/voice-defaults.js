// A voice's sampling presets: filled in when the voice is chosen, undone when another one is.

import { usual } from "../speak/sampling-presets.js";

const FIELDS = { temperature: "temperature", top_p: "topP", top_k: "topK", seed: "seed" };

/** The page's fields for a voice's `defaults` from the API. */
function asFields(defaults = {}) {
  return Object.fromEntries(Object.entries(defaults).map(([name, value]) => [FIELDS[name], value]));
}

/** The loaded model's own value of one of a voice's `defaults`, for a placeholder. @param {string} name */
export const usualOf = (name) => String(usual[FIELDS[name]] ?? "");

export class VoiceDefaults {
  #voice = null;
  #preset = {}; // values filled in by the chosen voice
  #before = {}; // the values before that; undefined where it was the model's, which may change

  constructor(fields) {
    this.fields = fields;
    fields.addEventListener("change", ({ detail }) => this.#follow(detail.values.voice, detail.isFilled));
  }

  /** Choose a voice, or choose it again after its defaults have changed. Returns the new field values. */
  choose(voice) {
    this.#voice = voice;
    const { values } = this.fields;
    const isUntouched = (name) => values[name] === this.#preset[name];
    const back = Object.fromEntries(Object.entries(this.#before).filter(([name]) => isUntouched(name)).map(([name, value]) => [name, value === undefined ? usual[name] : value]));
    const preset = asFields(this.fields.voices.find(({ id }) => id === voice)?.defaults);
    const now = { ...values, ...back };
    this.#before = Object.fromEntries(Object.keys(preset).map((name) => [name, now[name] === usual[name] ? undefined : now[name]]));
    this.#preset = preset;
    return { ...back, ...preset };
  }

  /** Leave values that the page filled in, such as an old take's settings, as they are. */
  #follow(voice, isFilled) {
    if (voice === this.#voice) return;
    if (isFilled || this.#voice === null) {
      this.#voice = voice;
      this.#preset = this.#before = {};
      return;
    }
    const changes = this.choose(voice);
    if (Object.keys(changes).length) this.fields.fill(changes);
  }
}

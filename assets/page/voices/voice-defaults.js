// What a voice presets of the sampling, filled in when it is chosen, and taken back when another one is.

const FIELDS = { temperature: "temperature", top_p: "topP", top_k: "topK", seed: "seed" };

/** The page's fields for a voice's `defaults` as the API has them. */
function asFields(defaults = {}) {
  return Object.fromEntries(Object.entries(defaults).map(([name, value]) => [FIELDS[name], value]));
}

export class VoiceDefaults {
  #voice = null;
  #preset = {}; // what the chosen voice filled in
  #before = {}; // and what was there before

  constructor(fields) {
    this.fields = fields;
    fields.addEventListener("change", ({ detail }) => this.#follow(detail.values.voice, detail.isFilled));
  }

  /** A voice is chosen, maybe once more after its defaults were changed: what the fields shall be. */
  choose(voice) {
    this.#voice = voice;
    const { values } = this.fields;
    const isUntouched = (name) => values[name] === this.#preset[name];
    const back = Object.fromEntries(Object.entries(this.#before).filter(([name]) => isUntouched(name)));
    const preset = asFields(this.fields.voices.find(({ id }) => id === voice)?.defaults);
    const now = { ...values, ...back };
    this.#before = Object.fromEntries(Object.keys(preset).map((name) => [name, now[name]]));
    this.#preset = preset;
    return { ...back, ...preset };
  }

  /** What the page fills in, such as an old take's settings, is meant as it is. */
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

// Replaces the script and its settings with a take's; a single undo restores both.

import { phrase } from "../lib/phrases.js";
import { typeInto } from "../lib/typing.js";
import { offerUndo, withdrawUndo } from "../trash/undo-toast.js";

export class ScriptReplacement {
  /** The replaced script and settings. @type {any} */
  #before = null;
  /** @type {ReturnType<typeof offerUndo>} */
  #step = null;
  #isTyping = false;

  constructor({ area, fields, cast }) {
    this.area = area;
    this.fields = fields;
    this.cast = cast;
    area.addEventListener("input", () => this.#isTyping || this.#typed());
  }

  /** Fill the fields with the request's cast and these settings, including the script. Throws Refusal. */
  async replace(request, settings) {
    const before = this.#state;
    const { voice, ...others } = settings;
    this.cast.take(request);
    this.#type(settings.text);
    this.fields.fill(others); // before the voices are fetched, so that changes made meanwhile are kept
    await this.fields.offerVoices(voice ? { voice } : {}).finally(() => this.#offer(before, settings));
  }

  /** Replace the script with this text. */
  write(text) {
    const before = this.#state;
    this.#type(text);
    this.#offer(before, { text });
  }

  get #state() {
    return { values: { ...this.fields.values }, cast: this.cast.state };
  }

  /** Offer undo if something changed and the old script is not blank. changes: of the fields, which Gradio fills later. */
  #offer({ values, cast }, changes) {
    withdrawUndo(this.#step);
    const isChanged = Object.entries(changes).some(([name, value]) => values[name] !== value) || JSON.stringify(cast) !== JSON.stringify(this.cast.state);
    const isOther = values.text?.trim() && isChanged;
    const before = { values, cast };
    this.#before = isOther ? before : null;
    this.#step = isOther ? offerUndo(phrase("speak.script.replaced"), () => this.#restore(before), false) : null;
  }

  #restore({ values, cast }) {
    this.#before = null;
    this.#type(values.text);
    this.cast.state = cast;
    this.fields.fill(values);
  }

  /** If Ctrl+Z restores the script's old text, restore the settings too. After any other edit, undo is withdrawn. */
  #typed() {
    const before = this.#before;
    if (!before) return;
    withdrawUndo(this.#step);
    if (this.area.value === before.values.text) this.#restore(before);
    this.#before = this.#step = null;
  }

  #type(text) {
    this.#isTyping = true;
    typeInto(this.area, 0, this.area.value.length, text);
    this.#isTyping = false;
  }
}

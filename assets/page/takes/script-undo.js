// Replaces the script and its settings by a take's. The previous ones can be restored by one click or by the field's own history.

import { partsOf } from "../lib/elements.js";
import { typeInto } from "../lib/typing.js";

export class ScriptUndo {
  /** The replaced script and settings. @type {any} */
  #before = null;
  #isTyping = false;

  /** root: the part of the page that offers Undo. */
  constructor(root, { area, fields, cast }) {
    this.part = partsOf(root);
    this.area = area;
    this.fields = fields;
    this.cast = cast;
    this.part("undo").addEventListener("click", () => this.#undo());
    area.addEventListener("input", () => this.#isTyping || this.#offer(null));
  }

  /** Put this request's script, its cast and these settings into the fields. Raises Refusal. */
  async replace(request, settings) {
    const before = { values: this.fields.values, cast: this.cast.state };
    const isOther = before.values.text?.trim() && before.values.text !== settings.text;
    this.cast.take(request);
    this.#type(settings.text);
    await this.fields.offerVoices(settings);
    this.#offer(isOther ? before : null);
  }

  /** Replace the script with this text. */
  write(text) {
    const before = { values: this.fields.values, cast: this.cast.state };
    this.#type(text);
    this.#offer(before.values.text?.trim() && before.values.text !== text ? before : null);
  }

  #undo() {
    const { values, cast } = this.#before;
    this.#type(values.text);
    this.cast.state = cast;
    this.fields.fill(values);
    this.#offer(null);
  }

  #type(text) {
    this.#isTyping = true;
    typeInto(this.area, 0, this.area.value.length, text);
    this.#isTyping = false;
  }

  #offer(before) {
    this.#before = before;
    this.part("replaced").hidden = !before;
  }
}

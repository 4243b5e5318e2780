// How the script will be read: numbers, dates and abbreviations as words, if the model needs that; shown before Speak.

import { isThroughGradio } from "../client/host.js";
import { dictionaryAge } from "../client/pronunciations.js";
import { readingOf } from "../client/speech.js";
import { element, partsOf } from "../lib/elements.js";
import { keep, kept } from "../lib/storage.js";
import { typeInto } from "../lib/typing.js";
import { readingLine } from "./reading-line.js";

const STORE = "as-written-1";
const SETTLED = 500; // ms without a change before a request

/** Fires "told" with {language} after each response: the script's probable language, null if unknown. */
export class Reading extends EventTarget {
  /** The voice, which may have its own dictionary. */
  voice = "";
  #asWritten = false;
  #isPossible = false;
  #timer = 0;
  #asked = "";
  /** @type {any} */
  #answer = null;

  /** root: its part of the page; area: the script's text field; cast: knows whether it is a dialogue. */
  constructor(root, area, cast) {
    super();
    this.root = root;
    this.area = area;
    this.cast = cast;
    this.part = partsOf(root);
    this.#asWritten = kept(STORE, false) === true && !isThroughGradio;
    this.part("switch").addEventListener("click", () => {
      this.#asWritten = !this.#asWritten;
      keep(STORE, this.#asWritten);
      this.#show();
    });
    this.part("edit").addEventListener("click", () => {
      typeInto(area, 0, area.value.length, this.#answer.text);
    });
    area.addEventListener("input", () => this.look());
    cast.addEventListener("change", () => this.look());
  }

  /** Whether the studio can tell, because it knows its model. */
  set isPossible(now) {
    const before = this.#isPossible;
    this.#isPossible = now;
    if (now && !before) this.look();
  }

  /** Request the reading again if the script, its voice or dialogue mode has changed, after a delay. */
  look() {
    clearTimeout(this.#timer);
    if (isThroughGradio || !this.#isPossible || this.#now() === this.#asked) return;
    this.#timer = setTimeout(() => this.#ask(), SETTLED);
  }

  /** Return the request, to be read as written if so chosen. */
  dress(request) {
    return this.#asWritten ? { ...request, normalize: false, dictionary: false } : request;
  }

  #now() {
    return JSON.stringify([this.area.value, this.cast.isOn, this.voice, dictionaryAge()]);
  }

  async #ask() {
    const asked = this.#now();
    const text = this.area.value;
    const answer = text.trim() ? await readingOf({ input: text, ...(this.voice ? { voice: this.voice } : {}), ...(this.cast.isOn ? { cast: {} } : {}) }) : null;
    if (asked !== this.#now()) return; // the script has changed
    this.#asked = asked;
    this.#answer = answer;
    this.#show();
    this.dispatchEvent(new CustomEvent("told", { detail: { language: answer?.language ?? null } }));
  }

  #show() {
    const line = readingLine(this.area.value, this.#answer, this.#asWritten);
    this.root.hidden = !line;
    if (!line) return;
    this.part("lead").textContent = line.lead;
    this.part("words").replaceChildren(...line.pieces.map(({ text, isNew }) => (isNew ? element("strong", { textContent: text }) : text)));
    this.part("switch").textContent = line.other;
    this.part("edit").hidden = this.#asWritten;
  }
}

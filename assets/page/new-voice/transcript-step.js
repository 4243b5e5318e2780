// Step 3 of a new voice: the clip's transcript, typed or recognised, and a comparison with the recogniser's if available.

import { Refusal } from "../client/refusal.js";
import { advise, transcribe } from "../client/voices.js";
import { element } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { RecogniserOffer } from "./recogniser-offer.js";
import { phrase } from "../lib/phrases.js";
import { typeInto } from "../lib/typing.js";

const SETTLED = 500; // ms without typing before the transcript is checked
const MOST_SILENCE = 3; // s cut off at both ends, without words
const OF_WORDS = ["transcript_long", "transcript_short", "punctuation"]; // findings about the transcript

/** The transcript, with marks where the recogniser's words differ. */
export function markedWords(marks) {
  return marks.flatMap(({ text, heard }) => {
    if (heard === null) return [text];
    const written = text ? [element("del", { textContent: text })] : [];
    const other = heard ? [element("ins", { textContent: heard })] : [];
    return [element("mark", {}, [...written, written.length && other.length ? " " : "", ...other]), " "];
  });
}

export class WordsStep {
  #timer = 0;
  #judgements = new Latest();

  /** check: the step that plays the clip as it will be used. */
  constructor(part, draft, check) {
    this.check = check;
    this.offer = new RecogniserOffer();
    part("no-recogniser").replaceWith(this.offer.element);
    this.offer.addEventListener("ready", () => {
      this.recogniser = this.offer.name;
      if (!draft.words.trim()) this.#transcribe();
    });
    this.part = part;
    this.draft = draft;
    part("transcript").addEventListener("input", ({ target }) => {
      draft.set({ words: target.value });
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#judge(), SETTLED);
    });
    part("hear-words").addEventListener("click", () => check.hearUsed());
    part("transcribe").addEventListener("click", () => this.#transcribe());
    part("take-over").addEventListener("click", () => typeInto(part("transcript"), 0, part("transcript").value.length, draft.heard)); // Ctrl+Z brings back what was typed
    draft.addEventListener("change", ({ detail }) => detail.names.includes("clip") && this.#compare(null));
  }

  open() {
    this.offer.open();
    this.part("transcript").value = this.draft.words;
    this.part("hear-words").disabled = !this.draft.sound;
    this.#judge();
  }

  close() {
    clearTimeout(this.#timer);
    this.#judgements.end(); // the next step uploads the clip
    this.check.close();
    this.offer.close();
  }

  /** Name of the server's recogniser; null: none. */
  set recogniser(name) {
    this.part("transcribe").hidden = !name;
    this.offer.isNeeded = !name;
  }

  /** What remains to be done in this step; "" for nothing. */
  get lacks() {
    return this.draft.words.trim() ? "" : phrase("newVoice.words.lacks");
  }

  #write(words) {
    this.part("transcript").value = words;
    this.draft.set({ words });
    this.#judge();
  }

  async #judge() {
    clearTimeout(this.#timer);
    const isLatest = this.#judgements.begin();
    const { sample, heard } = this.draft;
    if (!sample.words || !sample.clip) {
      this.#say("");
      return this.#hint([]);
    }
    try {
      const advice = await advise(sample, heard, this.#judgements.signal);
      if (!isLatest()) return;
      this.#hint(advice.findings.filter(({ code }) => OF_WORDS.includes(code)));
      this.#compare(advice.marks ?? null);
      this.#say("");
    } catch (problem) {
      if (!isLatest()) return;
      if (!(problem instanceof Refusal)) throw problem;
      this.#say(problem.why);
    }
  }

  async #transcribe() {
    const { sample, language } = this.draft;
    this.part("transcribe").disabled = true;
    this.#say(phrase("newVoice.words.listening"), false);
    try {
      const { text } = await transcribe(sample, language);
      if (sample.clip !== this.draft.clip) return;
      this.draft.set({ heard: text });
      this.#say(text ? "" : phrase("newVoice.words.nothing"));
      if (!this.draft.words.trim()) this.#write(text);
      else this.#judge();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.#say(problem.why);
    } finally {
      this.part("transcribe").disabled = false;
    }
  }

  /** marks: as returned by the API; null: there is nothing to compare. */
  #compare(marks) {
    const differ = marks?.some(({ heard }) => heard !== null) ?? false;
    this.part("compared").hidden = !marks;
    this.part("take-over").hidden = !differ;
    if (!marks) return;
    this.part("compared-words").textContent = phrase(differ ? "newVoice.words.differ" : "newVoice.words.match");
    this.part("word-marks").replaceChildren(...(differ ? markedWords(marks) : []));
  }

  /** Show findings about the transcript, and that a recording of which only a part is used says less. */
  #hint(findings) {
    const { sound, advice } = this.draft;
    const messages = findings.map(({ message }) => message);
    if (sound && advice && sound.seconds - advice.seconds > MOST_SILENCE) messages.unshift(phrase("newVoice.words.part"));
    this.part("word-hints").replaceChildren(...messages.map((textContent) => element("li", { textContent })));
  }

  #say(words, isBad = true) {
    this.part("words-said").textContent = words;
    this.part("words-said").toggleAttribute("data-bad", isBad);
  }
}

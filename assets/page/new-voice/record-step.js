// Step 1 of a new voice: read a text into the microphone, or bring a file.

import { clock } from "../lib/time.js";
import { whyNoMicrophone } from "./microphone.js";
import { element } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { READINGS } from "../voices/reading-texts.js";
import { Recording } from "./recorder.js";
import { NotOpened, StretchChooser } from "./stretch-chooser.js";
import { phrase } from "../lib/phrases.js";

const LONGEST = 60; // seconds of a recording; 30 of them can be used

function hint(seconds) {
  if (seconds < 10) return phrase("newVoice.hint.short");
  if (seconds < 30) return phrase("newVoice.hint.enough");
  return phrase("newVoice.hint.long");
}

/** Fires "change" when it may lack something else. */
export class CaptureStep extends EventTarget {
  #text = 0;
  #isOpening = false;
  #brought = new Latest();

  constructor(part, draft, playButtons) {
    super();
    this.part = part;
    this.draft = draft;
    part("playback").addEventListener("click", ({ currentTarget }) => playButtons.press(currentTarget, draft.sound?.track(phrase("speak.clip.yours"))));
    this.recording = new Recording(part("recording"), { hint, longest: LONGEST });
    this.recording.addEventListener("begun", () => {
      this.#say("");
      this.dispatchEvent(new CustomEvent("change"));
    });
    this.stretches = new StretchChooser(part("stretches"));
    this.stretches.addEventListener("chosen", ({ detail }) => draft.set({ clip: detail.blob, source: detail.words, words: "", language: "" }));
    this.recording.addEventListener("recorded", ({ detail }) => this.#recorded(detail));
    const language = part("reading-language");
    language.append(...Object.entries(READINGS).map(([code, { name }]) => element("option", { value: code, textContent: name, lang: code })));
    const own = navigator.languages[0].split("-")[0];
    language.value = own in READINGS ? own : "en";
    language.addEventListener("change", () => this.#read(0));
    part("other-text").addEventListener("click", () => this.#read(this.#text + 1));
    this.#read(0);
    part("file").addEventListener("change", ({ target }) => {
      if (target.files[0]) this.#bring(target.files[0]);
      target.value = "";
    });
    this.#takeDrops(part("drop"));
    const refusal = whyNoMicrophone();
    if (refusal) {
      this.recording.record.disabled = true;
      this.recording.words.textContent = `${refusal.why} ${refusal.advice}`;
    }
    draft.addEventListener("change", () => this.#show());
  }

  close() {
    this.recording.hold();
    this.stretches.stop();
  }

  /** Let go of what was recorded or opened here. */
  clear() {
    this.recording.finish();
    this.#forget();
  }

  /** Whether there is a long recording that nothing was chosen from yet. */
  get hasSomething() {
    return this.#isOpening || this.stretches.isOpen;
  }

  /** What is still to be done here, "" for nothing. */
  get lacks() {
    const { clip, isRead, refused } = this.draft;
    if (this.recording.isRecording) return phrase("newVoice.lacks.stop");
    if (this.#isOpening) return phrase("newVoice.lacks.opening");
    if (!clip && this.stretches.isOpen) return phrase("newVoice.lacks.stretch");
    if (!clip) return phrase("newVoice.lacks.clip");
    if (!isRead) return phrase("newVoice.check.reading");
    return refused && phrase("newVoice.lacks.other");
  }

  #read(number) {
    const language = this.part("reading-language").value;
    const { texts } = READINGS[language];
    this.#text = number % texts.length;
    this.part("reading").textContent = texts[this.#text];
    this.part("reading").lang = language;
  }

  #recorded({ blob, seconds }) {
    this.#forget();
    this.draft.set({ clip: blob, source: phrase("newVoice.recorded", { time: clock(seconds) }), words: this.part("reading").textContent, language: this.part("reading-language").value });
  }

  async #bring(file) {
    this.#forget();
    const isLatest = this.#brought.begin();
    this.#isOpening = true;
    this.draft.set({ clip: null, source: "", words: "", language: "" });
    this.#say(phrase("newVoice.opening", { name: file.name }), false);
    this.dispatchEvent(new CustomEvent("change"));
    try {
      const isLong = await this.stretches.open(file);
      if (!isLatest()) return;
      this.#say("");
      if (!isLong) this.draft.set({ clip: file, source: file.name });
    } catch (problem) {
      if (!(problem instanceof NotOpened)) throw problem;
      if (isLatest()) this.#say(problem.message);
    } finally {
      if (isLatest()) this.#isOpening = false;
      this.dispatchEvent(new CustomEvent("change"));
    }
  }

  #forget() {
    this.#brought.end();
    this.#isOpening = false;
    this.stretches.close();
  }

  #takeDrops(target) {
    for (const type of ["dragenter", "dragover"]) {
      target.addEventListener(type, (event) => {
        event.preventDefault();
        target.dataset.over = "yes";
      });
    }
    for (const type of ["dragleave", "drop"]) target.addEventListener(type, () => delete target.dataset.over);
    target.addEventListener("drop", (event) => {
      event.preventDefault();
      if (event.dataTransfer.files[0]) this.#bring(event.dataTransfer.files[0]);
    });
  }

  #show() {
    const { clip, source, sound, refused } = this.draft;
    this.part("captured").hidden = !clip;
    this.part("clip-words").textContent = source;
    this.part("playback").disabled = !sound;
    this.#say(refused && `${refused[0].toUpperCase()}${refused.slice(1)}.`);
  }

  #say(words, isBad = true) {
    this.part("capture-said").textContent = words;
    this.part("capture-said").toggleAttribute("data-bad", isBad);
  }
}

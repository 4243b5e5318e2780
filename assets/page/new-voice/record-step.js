// Step 1 of a new voice: read a text into the microphone, or bring a file.

import { clock } from "../lib/time.js";
import { whyNoMicrophone } from "./microphone.js";
import { element } from "../lib/elements.js";
import { READINGS } from "../voices/reading-texts.js";
import { Recording } from "./recorder.js";
import { numeral, phrase } from "../lib/phrases.js";

const LONGEST = 60; // seconds of a recording; 30 of them can be used
const LARGEST = 10 * 2 ** 20; // bytes that the server takes

function hint(seconds) {
  if (seconds < 10) return phrase("newVoice.hint.short");
  if (seconds < 30) return phrase("newVoice.hint.enough");
  return phrase("newVoice.hint.long");
}

export class CaptureStep {
  #text = 0;

  constructor(part, draft, playButtons) {
    this.part = part;
    this.draft = draft;
    part("playback").addEventListener("click", ({ currentTarget }) => playButtons.press(currentTarget, draft.sound?.track(phrase("speak.clip.yours"))));
    this.recording = new Recording(part("recording"), { hint, longest: LONGEST });
    this.recording.addEventListener("begun", () => this.#say(""));
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
  }

  /** What is still to be done here, "" for nothing. */
  get lacks() {
    const { clip, isRead, refused } = this.draft;
    if (this.recording.isRecording) return phrase("newVoice.lacks.stop");
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
    this.draft.set({ clip: blob, source: phrase("newVoice.recorded", { time: clock(seconds) }), words: this.part("reading").textContent, language: this.part("reading-language").value });
  }

  #bring(file) {
    if (file.size > LARGEST) {
      return this.#say(phrase("newVoice.tooLarge", { name: file.name, size: numeral(file.size / 2 ** 20, 1), most: LARGEST / 2 ** 20 }));
    }
    this.draft.set({ clip: file, source: file.name, words: "", language: "" });
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

  #say(words) {
    this.part("capture-said").textContent = words;
  }
}

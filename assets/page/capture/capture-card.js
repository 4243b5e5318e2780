// The card that captures a clip from the microphone, with a text to read, or from a file, then plays, replaces or removes it.

import { clock } from "../lib/time.js";
import { decodeClip } from "./decoded-clip.js";
import { whyNoMicrophone } from "./microphone.js";
import { element, partsOf } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { useFirst } from "../shell/drops.js";
import { show } from "../shell/opened.js";
import { READINGS } from "../voices/reading-texts.js";
import { Recording } from "./recorder.js";
import { NotOpened, StretchChooser } from "./stretch-chooser.js";
import { phrase } from "../lib/phrases.js";
import { offerUndo, withdrawUndo } from "../trash/undo-toast.js";

const NOTHING = { clip: null, source: "", words: "", language: "" };

function hint(seconds) {
  if (seconds < 10) return phrase("newVoice.hint.short");
  if (seconds < 30) return phrase("newVoice.hint.enough");
  return phrase("newVoice.hint.long");
}

/** Copy a file to memory: it may be changed or deleted before it is sent. Throws NotOpened. */
async function copyOf(file) {
  try {
    return new File([await file.arrayBuffer()], file.name, { type: file.type });
  } catch (problem) {
    if (problem.name !== "NotReadableError") throw problem;
    throw new NotOpened(phrase("speak.clip.notRead"));
  }
}

/** Fires "change" when `lacks` may have changed; the decoded clip is in the draft. */
export class CaptureCard extends EventTarget {
  #text = 0;
  #isOpening = false;
  #isNew = false; // a clip that is to be shown once it can be played
  #brought = new Latest();
  /** Exists only on this page, unlike a file. @type {Blob | null} */
  #own = null;
  /** @type {ReturnType<typeof offerUndo>[]} */
  #steps = []; // bring earlier recordings back

  /** limits: {recorded, whole, stretch} in seconds: for a recording, a file used whole, a part of a longer file. */
  constructor(root, draft, playButtons, { recorded, whole, stretch }) {
    super();
    this.root = root;
    const part = (this.part = partsOf(root));
    this.draft = draft;
    part("playback").addEventListener("click", ({ currentTarget }) => playButtons.press(currentTarget, draft.sound?.track(phrase("speak.clip.yours"))));
    part("remove-clip").addEventListener("click", () => {
      this.#forget();
      this.#replace(NOTHING);
    });
    this.recording = new Recording(part("recording"), { hint, longest: recorded, silence: () => playButtons.pause() });
    this.recording.addEventListener("begun", () => {
      this.#show();
      this.#say("");
      this.#tell();
    });
    this.recording.addEventListener("recorded", ({ detail }) => this.#recorded(detail));
    this.stretches = new StretchChooser(part("stretches"), { whole, stretch });
    this.stretches.addEventListener("chosen", ({ detail }) => this.#replace({ ...NOTHING, clip: detail.blob, source: detail.words }));
    this.#offerTexts();
    part("file").addEventListener("change", ({ target }) => {
      if (target.files[0]) this.bring(target.files[0]);
      target.value = "";
    });
    this.#takeDrops();
    const refusal = whyNoMicrophone();
    if (refusal) {
      this.recording.record.disabled = true;
      this.recording.words.textContent = `${refusal.why} ${refusal.advice}`;
    }
    draft.addEventListener("change", ({ detail }) => {
      if (detail.names.includes("clip")) this.#decode();
      this.#show();
    });
  }

  /** The card is hidden: pause the recording and playback. */
  close() {
    this.recording.hold();
    this.stretches.stop();
  }

  /** Discard any recording or opened file. */
  clear() {
    this.recording.drop();
    this.#forget();
    for (const step of this.#steps.splice(0)) withdrawUndo(step);
  }

  /** Whether the clip was recorded here. */
  get isRecorded() {
    return this.#own !== null && this.#own === this.draft.clip;
  }

  /** Set another clip, or none. A recording or a transcript can be brought back, with the clip. */
  #replace(changes) {
    const { clip, source, words, language } = this.draft;
    const own = this.#own;
    const isLost = this.isRecorded || (clip && words.trim() && words !== changes.words);
    this.draft.set(changes);
    const undo = () => {
      const before = { clip, source, words, language };
      if (this.draft.clip === (changes.clip ?? null)) this.draft.set(before);
      else this.#replace(before); // a later recording can be brought back, too
      this.#own = own;
    };
    if (isLost) this.#steps.push(offerUndo(phrase(own === clip ? "newVoice.replaced" : "newVoice.replaced.file"), undo, false));
  }

  /** Whether a file is still being opened. */
  get isOpening() {
    return this.#isOpening;
  }

  /** Whether a file is being opened, or a part of a long one can be chosen. */
  get hasSomething() {
    return this.#isOpening || this.stretches.isOpen;
  }

  /** The started step to be finished, in words; "" for none. */
  get unfinished() {
    if (this.recording.isRecording) return phrase("newVoice.lacks.stop");
    if (this.#isOpening) return phrase("newVoice.lacks.opening");
    return !this.draft.clip && this.stretches.isOpen ? phrase("newVoice.lacks.stretch") : "";
  }

  /** The next step to do here, in words; "" for none. */
  get lacks() {
    const { clip, isRead, refused } = this.draft;
    if (this.unfinished) return this.unfinished;
    if (!clip) return phrase("newVoice.lacks.clip");
    if (!isRead) return phrase("newVoice.check.reading");
    return refused && phrase("newVoice.lacks.other");
  }

  #offerTexts() {
    const language = this.part("reading-language");
    language.append(...Object.entries(READINGS).map(([code, { name }]) => element("option", { value: code, textContent: name, lang: code })));
    const own = navigator.languages[0].split("-")[0];
    language.value = own in READINGS ? own : "en";
    language.addEventListener("change", () => this.#read(0));
    this.part("other-text").addEventListener("click", () => this.#read(this.#text + 1));
    this.#read(0);
  }

  #read(number) {
    const language = this.part("reading-language").value;
    const { texts } = READINGS[language];
    this.#text = number % texts.length;
    this.part("reading").textContent = texts[this.#text];
    this.part("reading").lang = language;
  }

  #recorded({ blob, seconds, words }) {
    this.#forget();
    this.#isNew = true;
    const source = [phrase("newVoice.recorded", { time: clock(seconds) }), words].filter(Boolean).join(". ");
    this.#replace({ clip: blob, source, words: this.part("reading").textContent, language: this.part("reading-language").value });
    this.#own = blob;
  }

  /** Open a chosen or dropped file; the clip stays if it cannot be opened. */
  async bring(file) {
    this.#forget();
    const isLatest = this.#brought.begin();
    this.#isOpening = true;
    this.#say(phrase("newVoice.opening", { name: file.name }), false);
    this.#tell();
    try {
      const isLong = await this.stretches.open(file);
      const clip = isLong ? null : await copyOf(file);
      if (!isLatest()) return;
      this.#isOpening = false;
      this.#say("");
      this.#isNew = true;
      this.#replace(clip ? { ...NOTHING, clip, source: clip.name } : NOTHING);
    } catch (problem) {
      if (!(problem instanceof NotOpened)) throw problem;
      if (isLatest()) this.#say(problem.message);
    } finally {
      if (isLatest()) this.#isOpening = false;
      this.#tell();
    }
  }

  #forget() {
    this.#brought.end();
    this.#isOpening = false;
    this.stretches.close();
  }

  /** Accept files dropped anywhere on the card. */
  #takeDrops() {
    const { root } = this;
    const isFile = ({ dataTransfer }) => dataTransfer.types.includes("Files");
    for (const type of ["dragenter", "dragover"]) {
      root.addEventListener(type, (event) => {
        if (!isFile(event)) return;
        event.preventDefault();
        root.dataset.over = "yes";
      });
    }
    root.addEventListener("dragleave", ({ relatedTarget }) => !root.contains(relatedTarget) && delete root.dataset.over);
    root.addEventListener("drop", (event) => {
      delete root.dataset.over;
      if (!isFile(event)) return;
      event.preventDefault();
      useFirst(event.dataTransfer.files, (file) => this.bring(file));
    });
  }

  async #decode() {
    const { clip } = this.draft;
    if (!clip) return;
    const sound = await decodeClip(clip);
    if (this.draft.clip !== clip) return sound?.close();
    this.draft.set({ sound, isDecoded: true });
  }

  #show() {
    const { clip, source, sound, isDecoded, isRead, refused } = this.draft;
    const isCaptured = isRead && !refused && isDecoded && !this.recording.isRecording;
    this.root.toggleAttribute("data-captured", isCaptured); // not before it can be played: focus would move to Remove
    this.part("captured").hidden = !clip;
    if (isCaptured && this.#isNew) show(this.part("captured"));
    if (isCaptured) this.#isNew = false;
    this.part("clip-words").textContent = source;
    this.part("playback").disabled = !sound;
    this.#say(refused && `${refused[0].toUpperCase()}${refused.slice(1)}.`);
  }

  #tell() {
    this.dispatchEvent(new CustomEvent("change"));
  }

  #say(words, isBad = true) {
    this.part("capture-said").textContent = words;
    this.part("capture-said").toggleAttribute("data-bad", isBad);
  }
}

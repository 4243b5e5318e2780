// The Studio's own clip: captured, checked immediately together with its transcript, and saved as a voice on request.

import { CaptureCard } from "../capture/capture-card.js";
import { Draft } from "../capture/draft.js";
import { partsOf } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { askAgain, awaitAdvice, showAdvice, showNoAdvice } from "../voices/advice.js";
import { READINGS } from "../voices/reading-texts.js";
import { RecogniserOffer } from "../new-voice/recogniser-offer.js";
import { Refusal } from "../client/refusal.js";
import { advise, transcribe } from "../client/voices.js";
import { once } from "../lib/once.js";
import { phrase } from "../lib/phrases.js";
import { askBeforeLeaving } from "../lib/typing.js";
import { offerUndo } from "../trash/undo-toast.js";

const SETTLED = 600; // ms without typing before the transcript is checked again
// In seconds. A clip is used unchanged and may last 30. A recording ends with the chunk that reaches its limit.
const LIMITS = { recorded: 29.9, whole: 30, stretch: 30 };

/** Whether the words are blank or one of the texts offered for reading aloud. */
function areOffered(words) {
  return !words.trim() || Object.values(READINGS).some(({ texts }) => texts.includes(words));
}

/** Fires "keep" with {clip: Blob, words}, and "choose" with {id} of a bundled voice to use instead of the clip. */
export class OwnClip extends EventTarget {
  #draft = new Draft();
  #words = "";
  #judgements = new Latest();
  #timer = 0;
  /** @type {string | null} */
  #recogniser = null; // its name

  constructor(element, fields, playButtons, health) {
    super();
    this.element = element;
    this.fields = fields;
    const part = (this.part = partsOf(element));
    this.card = new CaptureCard(element.querySelector(".capture"), this.#draft, playButtons, LIMITS);
    part("keep").addEventListener("click", () => {
      this.dispatchEvent(new CustomEvent("keep", { detail: { clip: this.#draft.clip, words: this.#words } }));
    });
    this.offer = new RecogniserOffer();
    part("no-recogniser").replaceWith(this.offer.element);
    this.offer.addEventListener("ready", () => {
      this.#recogniser = this.offer.name;
      this.#show();
      if (!this.#words.trim()) this.#transcribe();
    });
    part("transcribe").addEventListener("click", once(() => this.#transcribe()));
    health.watch(({ transcriber }) => {
      this.#recogniser = transcriber ?? null;
      this.#show();
    });
    this.#draft.addEventListener("change", ({ detail }) => detail.names.includes("clip") && this.#changed());
    fields.addEventListener("change", ({ detail }) => this.#consider(detail.values));
    askBeforeLeaving(() => this.card.recording.isRecording || this.card.isRecorded);
    this.#show();
  }

  close() {
    this.card.close();
    this.offer.close();
  }

  /** Whether a file is still being opened. */
  get isOpening() {
    return this.card.isOpening;
  }

  /** Resolves once no file is being opened. Throws Refusal while a clip is being recorded or chosen, AbortError on abort. */
  async settled(signal) {
    while (this.isOpening) {
      await new Promise((resolve, reject) => {
        this.card.addEventListener("change", resolve, { once: true });
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      });
    }
    const advice = this.card.unfinished;
    if (advice) throw new Refusal({ what: phrase("speak.clip.none"), why: phrase("speak.clip.none.why"), advice });
  }

  /** A new clip was captured, or the clip was removed. */
  #changed() {
    const { clip, words } = this.#draft;
    this.fields.clip = clip;
    const { clipText = "" } = this.fields.values;
    if (words !== clipText && areOffered(clipText)) this.fields.fill({ clipText: words });
    awaitAdvice(this.part("advice"));
    this.#say("");
    this.#show();
    this.#judge();
  }

  /** The page's fields have changed. */
  #consider({ source, clip, clipText }) {
    if (source === "clip") this.offer.open();
    else this.close();
    const before = { clip: this.#draft.clip, clipText: this.#words };
    const isOther = clipText !== this.#words;
    this.#words = clipText;
    if (isOther) this.#show();
    if (clip && clip !== before.clip) { // from an old take
      if (this.card.isRecorded) offerUndo(phrase("newVoice.replaced"), () => this.fields.fill({ ...before, source: "clip" }), false);
      this.#draft.set({ clip, source: clip.name ?? phrase("speak.clip.yours"), words: clipText });
    } else if (isOther && clip) {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#judge(), SETTLED);
    }
  }

  #show() {
    const isUsable = this.#draft.clip !== null && !this.#draft.refused;
    this.part("kept").hidden = !isUsable;
    const isSilent = isUsable && !this.#words.trim(); // what somebody has typed is not replaced
    this.part("transcribe").hidden = !isSilent || !this.#recogniser;
    this.offer.isNeeded = isSilent && !this.#recogniser;
  }

  /** Fill in the transcript. */
  async #transcribe() {
    const { clip } = this.#draft;
    this.#say(phrase("newVoice.words.listening"), false);
    try {
      const { text } = await transcribe({ clip, words: "", cut: null }, "");
      if (clip !== this.#draft.clip) return;
      this.#say(text ? "" : phrase("newVoice.words.nothing"));
      if (text && !this.#words.trim()) this.fields.fill({ clipText: text });
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.#say(problem.why);
    }
  }

  #say(words, isBad = true) {
    this.part("words-said").textContent = words;
    this.part("words-said").toggleAttribute("data-bad", isBad);
  }

  async #judge(turn = 0) {
    clearTimeout(this.#timer);
    const isLatest = this.#judgements.begin();
    const { clip } = this.#draft;
    if (!clip) return;
    try {
      const advice = await advise({ clip, words: this.#words, cut: null }, "", this.#judgements.signal);
      if (!isLatest()) return;
      this.#draft.set({ isRead: true, refused: "" });
      showAdvice(this.part("advice"), advice, { use: (id) => this.dispatchEvent(new CustomEvent("choose", { detail: { id } })) });
    } catch (problem) {
      if (!isLatest()) return;
      if (!(problem instanceof Refusal)) throw problem;
      if (askAgain(problem, turn, () => isLatest() && this.#judge(turn + 1))) showNoAdvice(this.part("advice"), problem.why);
      else this.#draft.set({ isRead: true, refused: problem.why });
    }
    this.#show();
  }
}

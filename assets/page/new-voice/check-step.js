// Step 2 of a new voice: the advisor's word, and which part of the clip is used, how loud, and which of its channels.

import { showAdvice, showNoAdvice } from "../voices/advice.js";
import { decodeClip } from "./decoded-clip.js";
import { CutMarks } from "./clip-trimmer.js";
import { Refusal } from "../client/refusal.js";
import { Latest } from "../lib/latest.js";
import { advise } from "../client/voices.js";
import { phrase } from "../lib/phrases.js";

const WHOLE = { start: 0, end: null, gain_db: 0, channel: null };

export class CheckStep {
  #judgements = new Latest();
  #judged = ""; // the words that the advice is about

  constructor(part, draft) {
    this.part = part;
    this.draft = draft;
    this.marks = new CutMarks(part("marks"));
    this.marks.addEventListener("change", ({ detail }) => this.#judge({ ...draft.cut, ...detail }));
    part("hear-before").addEventListener("click", () => this.hear({ ...draft.cut, gain_db: 0, channel: null }));
    part("hear-after").addEventListener("click", () => this.hear(draft.cut));
    part("undo-cut").addEventListener("click", () => this.#judge(null));
    draft.addEventListener("change", ({ detail }) => detail.names.includes("clip") && this.#begin());
  }

  open() {
    if (this.draft.advice && this.draft.words.trim() !== this.#judged) this.#judge(this.draft.cut);
  }

  close() {
    this.draft.sound?.stop();
  }

  /** What is still to be done here, "" for nothing. */
  get lacks() {
    return this.draft.advice ? "" : phrase("newVoice.check.lacks");
  }

  /** Play a cut of the clip, or stop what plays. */
  hear(cut) {
    const { sound } = this.draft;
    if (sound?.isPlaying) sound.stop();
    else sound?.play(cut);
  }

  /** A new clip: judged and decoded at once, so that the step is ready when it is shown. */
  async #begin() {
    const { clip } = this.draft;
    if (!clip) return;
    const advice = this.#judge(null);
    const sound = await decodeClip(clip);
    if (this.draft.clip !== clip) return sound?.close();
    this.draft.set({ sound });
    sound?.addEventListener("position", ({ detail }) => this.marks.show({ position: detail.seconds }));
    await advice;
    this.#show();
  }

  /** Ask the advisor about a cut; null lets it choose, which it does for a clip that is too long. */
  async #judge(cut) {
    const isLatest = this.#judgements.begin();
    const { clip } = this.draft;
    const words = this.draft.words.trim();
    this.draft.set({ cut, advice: null });
    if (cut) this.#show();
    else this.part("advice").replaceChildren(phrase("newVoice.check.reading"));
    try {
      const advice = await advise({ clip, words, cut }, this.draft.heard);
      if (!isLatest() || clip !== this.draft.clip) return;
      this.#judged = words;
      this.draft.set({ cut: advice.cut, advice, isRead: true });
      showAdvice(this.part("advice"), advice, (mended) => this.#judge(mended));
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (!isLatest() || clip !== this.draft.clip) return;
      showNoAdvice(this.part("advice"), problem.why);
      this.draft.set({ isRead: true, ...(cut || problem.isLost ? {} : { refused: problem.why }) });
    }
    this.#show();
  }

  #show() {
    const { sound, advice } = this.draft;
    const cut = this.draft.cut ?? WHOLE;
    const seconds = sound?.seconds ?? (advice ? cut.start + advice.seconds : 0);
    this.marks.show({ bars: sound?.bars ?? [], seconds, start: cut.start, end: Math.min(cut.end ?? seconds, seconds) });
    for (const name of ["hear-before", "hear-after"]) this.part(name).disabled = !sound;
    const gain = cut.gain_db ? `${cut.gain_db > 0 ? "+" : "−"}${Math.abs(cut.gain_db)} dB` : "";
    const channel = cut.channel === null ? "" : phrase("newVoice.check.channel", { number: cut.channel + 1 });
    const unheard = sound || !advice ? "" : phrase("newVoice.check.unheard");
    this.part("treatment").textContent = [gain, channel, unheard].filter(Boolean).join(", ");
    this.part("undo-cut").hidden = !cut.start && cut.end === null && !gain && !channel;
  }
}

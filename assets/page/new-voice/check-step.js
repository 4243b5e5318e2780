// Step 2 of a new voice: the advisor's verdict, and the part of the clip to use, with its gain, channel and noise reduction.

import { askAgain, awaitAdvice, showAdvice, showNoAdvice } from "../voices/advice.js";
import { decodeClip } from "../capture/decoded-clip.js";
import { CutMarks } from "./clip-trimmer.js";
import { Refusal } from "../client/refusal.js";
import { Latest } from "../lib/latest.js";
import { advise, denoised } from "../client/voices.js";
import { phrase } from "../lib/phrases.js";

const WHOLE = { start: 0, end: null, gain_db: 0, channel: null };

/** Fires "choose" with {id} of a bundled voice to use in place of the clip. */
export class CheckStep extends EventTarget {
  #judgements = new Latest();
  #judged = ""; // the transcript that the advice is based on
  /** The denoised audio of one cut; null until it is fetched. @type {{ cut: any, sound: import("../capture/decoded-clip.js").Clip } | null} */
  #clean = null;
  #cleanings = new Latest();

  constructor(part, draft) {
    super();
    this.part = part;
    this.draft = draft;
    this.marks = new CutMarks(part("marks"));
    this.marks.addEventListener("change", ({ detail }) => this.#judge({ ...draft.cut, ...detail }));
    part("hear-before").addEventListener("click", () => this.hear({ ...draft.cut, gain_db: 0, channel: null }));
    part("hear-after").addEventListener("click", () => this.hearUsed());
    part("denoise").addEventListener("change", ({ target }) => {
      draft.set({ denoise: target.checked });
      this.#judge(draft.cut);
    });
    part("undo-cut").addEventListener("click", () => {
      draft.set({ denoise: false });
      this.#judge(null);
    });
    draft.addEventListener("change", ({ detail }) => {
      if (detail.names.includes("clip")) this.#begin();
      if (detail.names.includes("sound")) this.#follow();
    });
  }

  open() {
    const { advice, words, cut } = this.draft;
    if (advice && words.trim() !== this.#judged) this.#judge(cut);
  }

  close() {
    this.#cleanings.end();
    this.draft.sound?.stop();
    this.#clean?.sound.stop();
  }

  /** Whether the server can reduce noise. */
  set canDenoise(can) {
    this.part("denoise-row").hidden = !can;
  }

  /** What remains to be done in this step; "" for nothing. */
  get lacks() {
    const { advice, isJudging } = this.draft;
    if (isJudging) return phrase("newVoice.check.judging");
    return advice ? "" : phrase("newVoice.check.lacks");
  }

  /** Play a cut of the clip as recorded, or stop playback. */
  hear(cut) {
    const { sound } = this.draft;
    const isPlaying = sound?.isPlaying || this.#clean?.sound.isPlaying;
    this.close();
    if (!isPlaying) sound?.play(cut);
  }

  /** Play the clip as it will be used, or stop playback. */
  async hearUsed() {
    const { sample, sound } = this.draft;
    if (!sample.denoise) return this.hear(sample.cut);
    const isPlaying = sound?.isPlaying || this.#clean?.sound.isPlaying;
    this.close();
    if (isPlaying) return;
    const isLatest = this.#cleanings.begin();
    if (this.#clean?.cut !== sample.cut) {
      this.part("treatment").textContent = phrase("newVoice.denoising");
      const clean = await this.#fetchClean(sample);
      this.#show();
      if (!isLatest()) return clean?.close();
      if (!clean) return;
      this.#clean?.sound.close();
      this.#clean = { cut: sample.cut, sound: clean };
      const start = sample.cut?.start ?? 0;
      clean.addEventListener("position", ({ detail: { seconds } }) => this.marks.show({ position: seconds === null ? null : start + seconds }));
    }
    this.#clean?.sound.play(WHOLE);
  }

  async #fetchClean(sample) {
    try {
      return await decodeClip(await denoised(sample));
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      showNoAdvice(this.part("advice"), problem.why);
      return null;
    }
  }

  /** Check a new clip at once, so that the step is ready when it is shown. */
  #begin() {
    this.close();
    this.#clean?.sound.close();
    this.#clean = null;
    if (this.draft.clip) this.#judge(null);
  }

  /** Show the decoded clip. */
  #follow() {
    const { sound, isJudging, isRead } = this.draft;
    sound?.addEventListener("position", ({ detail }) => this.marks.show({ position: detail.seconds }));
    if (!isJudging || isRead) this.#show();
  }

  /** Request advice on a cut; null lets the advisor choose one, which it does if the clip is too long. */
  async #judge(cut, turn = 0) {
    const isLatest = this.#judgements.begin();
    const { clip } = this.draft;
    const words = this.draft.words.trim();
    this.draft.set({ cut, advice: null, isJudging: true });
    this.#cleanings.end();
    if (cut) this.#show();
    else awaitAdvice(this.part("advice"));
    try {
      const advice = await advise({ clip, words, cut, denoise: this.draft.denoise }, this.draft.heard, this.#judgements.signal);
      if (!isLatest() || clip !== this.draft.clip) return;
      this.#judged = words;
      this.draft.set({ cut: advice.cut, advice, isRead: true, isJudging: false });
      const use = (id) => this.dispatchEvent(new CustomEvent("choose", { detail: { id } }));
      showAdvice(this.part("advice"), advice, { mend: (mended) => this.#judge(mended), use });
    } catch (problem) {
      if (!isLatest() || clip !== this.draft.clip) return;
      if (!(problem instanceof Refusal)) throw problem;
      showNoAdvice(this.part("advice"), problem.why);
      const isJudging = askAgain(problem, turn, () => isLatest() && clip === this.draft.clip && this.#judge(cut, turn + 1));
      this.draft.set({ isRead: true, isJudging, ...(cut || isJudging ? {} : { refused: problem.why }) });
    }
    this.#show();
  }

  #show() {
    const { sound, advice, denoise } = this.draft;
    this.part("denoise").checked = denoise;
    const cut = this.draft.cut ?? WHOLE;
    const seconds = sound?.seconds ?? (advice ? cut.start + advice.seconds : 0);
    this.marks.show({ bars: sound?.bars ?? [], seconds, start: cut.start, end: Math.min(cut.end ?? seconds, seconds) });
    for (const name of ["hear-before", "hear-after"]) this.part(name).disabled = !sound;
    const gain = cut.gain_db ? `${cut.gain_db > 0 ? "+" : "−"}${Math.abs(cut.gain_db)} dB` : "";
    const channel = cut.channel === null ? "" : phrase("newVoice.check.channel", { number: cut.channel + 1 });
    const noise = denoise ? phrase("newVoice.denoised") : "";
    const unheard = sound || !advice ? "" : phrase("newVoice.check.unheard");
    this.part("treatment").textContent = [gain, channel, noise, unheard].filter(Boolean).join(", ");
    this.part("undo-cut").hidden = !cut.start && cut.end === null && !gain && !channel && !noise;
  }
}

// Speak and Stop: generates takes from the page's fields, several at once, and plays the first; cancels them.

import { seedOf } from "../client/requests.js";
import { clock } from "../lib/time.js";
import { generateTake } from "../takes/generate.js";
import { remembered } from "../takes/remembered-takes.js";
import { Take } from "../takes/take.js";
import { phrase } from "../lib/phrases.js";

export class Speaking {
  takes = Math.max(0, ...remembered().map(({ number }) => number)); // the number of the last take
  /** @type {AbortController | null} */
  #generating = null; // of the takes in progress
  /** @type {number | null} */
  #pressedAt = null;
  #isByKey = false;
  /** The control that got the focus back after a take. @type {Element | null} */
  #returned = null;
  #clones = new Set(); // clips and cloned voices that have been used

  /** Parts of the page, and request(fields), which builds the API's body. */
  constructor({ fields, ownClip, health, nowPlaying, list, errorCard, request }) {
    this.fields = fields;
    this.ownClip = ownClip;
    this.health = health;
    this.nowPlaying = nowPlaying;
    this.list = list;
    this.errorCard = errorCard;
    this.request = request;
    this.health.watch(({ load }) => this.#showLine(load));
  }

  get isUnderWay() {
    return this.#generating !== null;
  }

  /** Note a click before Gradio handles it. */
  press(event) {
    this.#pressedAt = event.timeStamp;
    this.#isByKey = event.detail === 0;
  }

  /** Whether a control has the focus only because it got it back after a take. */
  gaveFocusTo(control) {
    return control === this.#returned && control === document.activeElement;
  }

  /** Generate a take from the fields, or several at once with a seed each. */
  speak(fields, count) {
    const voiceName = fields.source === "clip" ? phrase("speak.clip.yours") : /** @type {HTMLInputElement | null} */ (document.querySelector("#voice input"))?.value || fields.voice;
    const plan = async (signal) => {
      await this.#clipOf(fields, signal);
      const request = await this.request(fields);
      const isKept = request.seed !== undefined; // the first take's; the others count up
      return Array.from({ length: count }, (_, i) => ({
        request: isKept ? { ...request, seed: seedOf(String(BigInt(request.seed) + BigInt(i))) } : request,
        voiceName: request.cast ? phrase("speak.dialogue") : voiceName,
        settings: { ...fields },
        isFirstOfClone: i === 0 && !request.cast && this.#isNewClone(fields),
      }));
    };
    return this.#speakAll(plan, this.#pressedAt ?? undefined);
  }

  /** Whether this is a clone that has not been used since the page was opened. */
  #isNewClone({ source, voice, clip }) {
    if (source !== "clip" && this.fields.voices.find(({ id }) => id === voice)?.bundled !== false) return false;
    const clone = source === "clip" ? clip : voice;
    const isNew = !this.#clones.has(clone);
    this.#clones.add(clone);
    return isNew;
  }

  /** Regenerate a stored take, which must be fully loaded. */
  again({ repeat, voiceName, settings }) {
    return this.#speakAll(async () => [{ request: repeat, voiceName, settings }]);
  }

  /** Continue a take cut off by a limit; it must be fully loaded. */
  rest(take) {
    return this.#speakAll(async () => [take.continued]);
  }

  /** Cancel the takes in progress: the server frees their slots; received audio stays playable. */
  stop() {
    if (!this.#generating) return;
    this.#generating.abort();
    this.nowPlaying.halt();
    this.#rest();
  }

  /** Generate the takes of `plan(signal)` in parallel; play the first, keep all. */
  async #speakAll(plan, pressedAt = performance.now()) {
    const control = this.#begin();
    try {
      const plans = await plan(control.signal);
      control.signal.throwIfAborted();
      if (this.health.isStarting) {
        this.nowPlaying.say("waiting", phrase("speak.warming"));
        await this.health.started(control.signal);
        pressedAt = performance.now();
      }
      const takes = plans.map((facts) => new Take({ ...facts, number: (this.takes += 1) }));
      takes[0].pressedAt = pressedAt;
      const ends = await Promise.allSettled(takes.map((take) => this.#make(take, control.signal)));
      this.#giveBack(takes);
      const failure = ends.find((end) => end.status === "rejected");
      if (failure) throw failure.reason;
    } catch (problem) {
      if (problem.name !== "AbortError") this.errorCard.tell(problem);
      else if (this.#generating === control && !this.nowPlaying.current?.file) this.nowPlaying.halt(); // stopped elsewhere, before its first audio
    } finally {
      if (this.#generating === control) this.#rest();
    }
  }

  /** Free the numbers of refused takes for reuse. */
  #giveBack(takes) {
    for (const { file, number } of [...takes].reverse()) {
      if (file || number !== this.takes) return;
      this.takes -= 1;
    }
  }

  #begin() {
    this.stop();
    this.errorCard.hide();
    const isOnButton = document.activeElement?.matches("#speak, #speak-four");
    document.body.dataset.speaking = "yes";
    if (isOnButton && this.#isByKey) document.getElementById("stop")?.focus();
    this.health.isWatched = true;
    return (this.#generating = new AbortController());
  }

  #rest() {
    this.#generating = null;
    const isOnStop = document.activeElement?.matches("#stop");
    delete document.body.dataset.speaking;
    const speak = document.getElementById("speak");
    if (isOnStop) speak?.focus({ preventScroll: true });
    this.#returned = document.activeElement?.matches("#speak, #speak-four") ? document.activeElement : null;
    this.#returned?.addEventListener("blur", () => (this.#returned = null), { once: true });
    this.health.isWatched = false;
    this.health.look();
  }

  /** Wait for the user's clip to be opened, then read the fields again: its transcript may have been added. */
  async #clipOf(fields, signal) {
    if (fields.source !== "clip") return;
    const isAwaited = this.ownClip.isOpening;
    if (isAwaited) this.nowPlaying.say("waiting", phrase("newVoice.lacks.opening"));
    await this.ownClip.settled(signal);
    if (isAwaited) Object.assign(fields, this.fields.values, { source: "clip" });
  }

  async #make(take, signal) {
    const isAloud = take.pressedAt !== null;
    const generated = generateTake(take, signal, {
      heard: async () => {
        if (isAloud && take.pieces.length === 1) await this.nowPlaying.open(take);
        this.nowPlaying.grow(take);
      },
      kept: () => {
        this.list.add(take);
        this.nowPlaying.settle(take);
        if (this.nowPlaying.current !== take || take.ending !== "stopped") return;
        this.nowPlaying.pause();
        this.nowPlaying.say("paused", phrase("speak.stoppedAfter", { time: clock(take.seconds) }));
      },
    });
    if (isAloud) { // after the request: drawing may take time
      this.nowPlaying.show(take);
      this.nowPlaying.say("waiting", phrase("speak.preparing"));
    }
    await generated;
    this.list.refresh(take);
    this.nowPlaying.showFigures(take);
  }

  /** While the take to play is queued, show how many requests are waiting. */
  #showLine(load) {
    if (!this.#generating || this.nowPlaying.current?.id !== null || !load?.waiting) return;
    this.nowPlaying.say("waiting", phrase("speak.busy", { waiting: load.waiting }));
  }
}

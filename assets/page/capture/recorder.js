// The controls for a recording: record, pause, stop, a clock and a live level with a verdict.

import { clock } from "../lib/time.js";
import { Refusal } from "../client/refusal.js";
import { Microphone } from "./microphone.js";
import { element } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { phrase } from "../lib/phrases.js";

const [CLIPPED, LOUD, QUIET] = [-0.1, -10, -34]; // dB, as in the advisor: peak above the first, speech above the second or below the third
const MEMORY = 1500; // ms covered by a verdict: speech has pauses
const LOWEST = -60; // dB at the meter's empty end

/** Return a grade and words for the level, from the recent maximum peak and RMS in dB. */
export function verdict(peak, rms) {
  if (peak > CLIPPED || rms > LOUD) return ["loud", phrase("mic.loud")];
  if (rms < QUIET) return ["quiet", phrase("mic.quiet")];
  return ["good", phrase("mic.good")];
}

/** Fires "begun" and "recorded" with {blob, seconds, words}, words: why it ended, blank after a click. hint(seconds): advice on its length. */
export class Recording extends EventTarget {
  /** @type {Microphone | null} */
  #microphone = null;
  /** Pending while the last samples are. @type {Promise<void> | null} */
  #ending = null;
  #recent = [];
  #begins = new Latest();

  /** longest: seconds after which the recording ends. silence(): stops playback, which the microphone would record. */
  constructor(root, { hint, longest, silence }) {
    super();
    this.root = root;
    this.hint = hint;
    this.longest = longest;
    this.silence = silence;
    const button = (textContent, className, onclick) => element("button", { type: "button", textContent, className, onclick });
    this.record = button(phrase("mic.record"), "primary record", ({ detail }) => {
      if (this.#microphone) this.finish();
      else if (detail < 2 && !this.#ending) this.#begin(); // not by the second click on Stop
    });
    this.pause = button(phrase("mic.pause"), "plain", () => this.#pause());
    this.time = element("output", { className: "recording-time", textContent: clock(0) });
    this.meter = element("span", { className: "meter" }, [element("span")]);
    this.meter.setAttribute("role", "meter");
    this.meter.setAttribute("aria-label", phrase("mic.level"));
    this.meter.setAttribute("aria-valuemin", LOWEST);
    this.meter.setAttribute("aria-valuemax", 0);
    this.words = element("p", { className: "quiet recording-words" });
    this.words.setAttribute("role", "status");
    root.classList.add("recording");
    root.append(element("div", { className: "recording-bar" }, [this.record, this.pause, this.time, this.meter]), this.words);
    this.#show("idle");
  }

  get isRecording() {
    return this.#microphone !== null || this.#ending !== null;
  }

  async #begin() {
    this.record.disabled = true;
    this.silence();
    this.#say(phrase("mic.asking"));
    const isWanted = this.#begins.begin();
    const microphone = new Microphone();
    try {
      await microphone.start();
    } catch (problem) {
      await microphone.stop();
      if (!(problem instanceof Refusal)) throw problem;
      return this.#say(`${problem.why} ${problem.advice}`);
    } finally {
      this.record.disabled = false;
    }
    if (!isWanted()) {
      await microphone.stop();
      return this.#say("");
    }
    this.#microphone = microphone;
    this.#recent = [];
    microphone.addEventListener("lost", () => this.#microphone === microphone && this.finish(phrase("mic.lost")));
    microphone.addEventListener("level", ({ detail }) => this.#level(detail));
    this.#show("recording");
    this.dispatchEvent(new CustomEvent("begun"));
  }

  /** Pause the recording, such as when another area is shown, and keep it. One about to begin is cancelled. */
  hold() {
    if (!this.#ending) this.#begins.end();
    if (this.#microphone && !this.#microphone.isPaused) this.#pause();
  }

  /** Discard the recording. */
  drop() {
    this.#begins.end();
    this.#microphone?.stop();
    this.#microphone = null;
    this.#show("idle");
    this.#say("");
  }

  /** End the recording, and wait for its last samples. words: why it ends, if not by a click. */
  async finish(words = "") {
    if (!this.#ending) this.#begins.end();
    const microphone = this.#microphone;
    if (!microphone) return this.#ending;
    this.#microphone = null;
    this.#show("idle");
    this.#say(words);
    this.#ending = this.#end(microphone, words);
    return this.#ending;
  }

  async #end(microphone, words) {
    const isWanted = this.#begins.join();
    const blob = await microphone.stop();
    this.#ending = null;
    if (blob && isWanted()) this.dispatchEvent(new CustomEvent("recorded", { detail: { blob, seconds: microphone.seconds, words } }));
  }

  #pause() {
    if (!this.#microphone) return;
    if (this.#microphone.isPaused) this.silence();
    this.#microphone.isPaused = !this.#microphone.isPaused;
    this.#show(this.#microphone.isPaused ? "paused" : "recording");
  }

  #show(state) {
    this.root.dataset.state = state;
    this.record.textContent = phrase(state === "idle" ? "mic.record" : "mic.stop");
    this.pause.hidden = state === "idle";
    this.pause.textContent = phrase(state === "paused" ? "mic.continue" : "mic.pause");
    this.meter.hidden = this.time.hidden = state === "idle";
  }

  #level({ peak, rms }) {
    if (!this.#microphone) return;
    const now = performance.now();
    this.#recent = [...this.#recent.filter(({ at }) => now - at < MEMORY), { at: now, peak, rms }];
    const loudest = (name) => Math.max(...this.#recent.map((level) => level[name]));
    const [grade, words] = verdict(loudest("peak"), loudest("rms"));
    this.meter.dataset.grade = grade;
    this.meter.setAttribute("aria-valuenow", Math.round(Math.max(rms, LOWEST)));
    this.meter.setAttribute("aria-valuetext", words);
    this.meter.firstChild.style.transform = `scaleX(${Math.min(1, Math.max(0, 1 - peak / LOWEST))})`;
    const { seconds, isPaused } = this.#microphone;
    this.time.textContent = clock(seconds);
    this.#say(isPaused ? phrase("mic.paused") : phrase("mic.status", { level: words, hint: this.hint(seconds) }));
    if (seconds >= this.longest) this.finish();
  }

  #say(words) {
    if (this.words.textContent !== words) this.words.textContent = words;
  }
}

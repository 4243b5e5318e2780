// Polls the engine's health, shows it in the header's pill, and waits until the engine has started.

import { connection } from "../client/refusal.js";
import { health } from "../client/system.js";
import { Latest } from "../lib/latest.js";
import { phrase } from "../lib/phrases.js";
import { size } from "../models/model-card.js";

const [POLL_BUSY, POLL_IDLE] = [800, 5000]; // ms
const SOON = 400; // ms: leaves the connection and the machine to the first audio
const S2_FRAME_RATE = 44100 / 2048; // frames per second
const [FEW_FRAMES, MOST_OF_FEW] = [50, 2]; // of few frames, most of the work was reading prompts: no pace above this is believed

function busyWords(load) {
  if (!load?.running) return "";
  const waiting = load.waiting ? [phrase("shell.health.waiting", { count: load.waiting })] : [];
  return [phrase("shell.health.speaking", { count: load.running }), ...waiting].join(", ");
}

/** Steps of a start, as reported by the engine and the fleet. @type {[RegExp, import("../lib/phrases.js").Key][]} */
const STEPS = [
  [/^waiting to start$/, "shell.step.waiting"],
  [/^finding the checkpoint$/, "shell.step.finding"],
  [/^loading weights$/, "shell.step.weights"],
  [/^memory ran out, loading again with (?<gib>[\d.]+) GiB$/, "shell.step.lessMemory"],
  [/^compiling kernels$/, "shell.step.compiling"],
  [/^looking kernels up$/, "shell.step.kernels"],
  [/^capturing graphs$/, "shell.step.graphs"],
  [/^warming up$/, "shell.step.warming"],
  [/^starting Ray$/, "shell.step.ray"],
  [/^joining Ray at /, "shell.step.joining"],
  [/^joining the fleet$/, "shell.step.fleet"],
  [/^starting \d+ engines$/, "shell.step.engines"],
  [/^ready$/, "shell.step.ready"],
  [/^waiting for (?<count>\d+) requests to end, for streams (?<seconds>\d+) s at most$/, "shell.step.held"],
  [/^changing the model$/, "shell.step.changing"],
  [/^starting engines: (?<up>\d+) of (?<total>\d+) ready$/, "shell.step.enginesReady"],
];

/** A step in the reader's language; an unknown one, such as memory figures, is left as the server wrote it. */
export function stepWords(doing = "") {
  for (const [pattern, key] of STEPS) {
    const match = pattern.exec(doing);
    if (!match) continue;
    const { gib, ...groups } = match.groups ?? {};
    return phrase(key, gib ? { size: size(Number(gib) * 2 ** 30) } : groups);
  }
  return doing;
}

function wordsFor({ status, doing, progress, error, engine, load }) {
  const words = {
    starting: () => [phrase("shell.health.starting", { percent: Math.round((progress ?? 0) * 100) }), stepWords(doing)].filter(Boolean).join(" · "),
    ready: () => [phrase("shell.health.ready", { model: engine?.model, device: engine?.device }), busyWords(load)].filter(Boolean).join(" · "),
    failed: () => phrase("shell.health.failed", { why: error ?? phrase("shell.health.unknown") }),
    unreachable: () => phrase("shell.health.unreachable"),
  };
  return words[status]?.();
}

/**
 * Polls from construction on, so that the response may arrive before the page is rendered. Fires "back" when the studio
 * responds again after it was unreachable.
 */
export class EngineHealth extends EventTarget {
  /** @type {any} */
  #last = { status: "connecting" };
  #watchers = new Set();
  #waiting = new Set();
  #looks = new Latest();
  #timer = 0;

  #isWatched = false;

  constructor() {
    super();
    connection.addEventListener("lost", () => this.#last.status !== "unreachable" && this.look());
    this.look();
  }

  /** Call a listener with the last result, if any, and with every later one. */
  watch(watcher) {
    this.#watchers.add(watcher);
    if (this.#last.status !== "connecting") watcher(this.#last);
  }

  /** Show the status in the header; lines: shown in every area while the studio does not respond, and while takes wait to be saved. */
  showIn(pill, offline, unsaved) {
    const shown = pill.querySelector("[data-part=words]");
    this.watch((now) => {
      pill.dataset.status = now.status;
      const words = wordsFor(now);
      if (shown.textContent !== words) shown.textContent = words;
      offline.hidden = now.status !== "unreachable";
      unsaved.hidden = now.background?.recorder?.ok !== false;
    });
  }

  get isStarting() {
    return this.#last.status === "starting";
  }

  get frameRate() {
    const { engine } = this.#last;
    return engine ? engine.sample_rate / engine.frame_samples : S2_FRAME_RATE;
  }

  /** Seconds of work per second of audio, over all takes so far; null before the first one. */
  get pace() {
    const { load } = this.#last;
    if (!load?.frames) return null;
    const pace = (load.busy_seconds / load.frames) * this.frameRate;
    return load.frames < FEW_FRAMES ? Math.min(pace, MOST_OF_FEW) : pace;
  }

  /** Whether someone is waiting for the engine. If so, it is polled often, starting soon. */
  set isWatched(is) {
    this.#isWatched = is;
    if (is) this.#lookIn(SOON);
  }

  #lookIn(wait) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.look(), wait);
  }

  /** Poll, starting now. */
  async look() {
    clearTimeout(this.#timer);
    const isLatest = this.#looks.begin();
    const now = await health();
    if (!isLatest()) return; // outdated
    const isBack = this.#last.status === "unreachable" && now.status !== "unreachable";
    this.#last = now;
    if (!this.isStarting) {
      for (const go of this.#waiting) go();
      this.#waiting.clear();
    }
    for (const watcher of this.#watchers) watcher(now);
    if (isBack) this.dispatchEvent(new CustomEvent("back"));
    const isBusy = this.#isWatched || this.isStarting || now.status === "unreachable" || now.load?.running;
    this.#lookIn(isBusy ? POLL_BUSY : POLL_IDLE);
  }

  /** Resolves when the engine is no longer starting; rejects with AbortError after signal.abort(). */
  started(signal) {
    return new Promise((resolve, reject) => {
      this.#waiting.add(resolve);
      signal.addEventListener("abort", () => reject(signal.reason));
    });
  }
}

// The sound: one AudioContext, one worklet, one take at a time. It knows no takes of the server and no page.

import { notConnected } from "../client/refusal.js";
import { PlayoutDelay } from "./playout-delay.js";

const USUAL_RATE = 44100;

/**
 * Fires "heard" with {firstSampleAt?, needed?, position, rendered, underruns, state, loudest}: positions in samples, times in
 * milliseconds of performance.now(), loudest since the last report from 0 to 1. needed, once, when all has come: the seconds
 * that its start would have had to be held back for it to have no gap.
 */
export class Player extends EventTarget {
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {GainNode | null} */
  #gain = null;
  #volume = 1;
  /** @type {Promise<AudioWorkletNode> | null} */
  #preparing = null; // the node of the present context
  #take = 0;
  delay = new PlayoutDelay();
  /** @type {number | null} */
  fixedWait = null; // seconds of sound to have before it starts, in the place of what was learnt

  /** Build the audio graph for a sample rate, once; a second caller waits for the first. Raises Refusal. */
  prepare(sampleRate = this.#context?.sampleRate ?? USUAL_RATE) {
    if (this.#context?.sampleRate !== sampleRate || !this.#preparing) {
      const [before, preparing] = [this.#context, this.#preparing];
      Promise.allSettled([preparing]).then(() => before?.close()); // one that is being built may not be closed
      this.#context = new AudioContext({ sampleRate, latencyHint: "interactive" });
      this.#preparing = this.#build(this.#context);
    }
    return this.#preparing;
  }

  async #build(context) {
    try {
      await context.audioWorklet.addModule(new URL("player-worklet.js", import.meta.url));
    } catch (problem) {
      if (context === this.#context) this.#preparing = null; // the next sound tries again
      throw problem.name === "AbortError" ? notConnected() : problem;
    }
    const gain = new GainNode(context, { gain: this.#volume });
    const node = new AudioWorkletNode(context, "take-source", { numberOfInputs: 0, outputChannelCount: [1] });
    node.port.onmessage = ({ data }) => this.#hear(context, data);
    node.connect(gain).connect(context.destination);
    if (context === this.#context) this.#gain = gain;
    return node;
  }

  #hear(context, report) {
    if (report.take !== this.#take) return;
    const detail = { ...report };
    if (report.firstSampleAt !== undefined) {
      detail.firstSampleAt = performance.now() - (context.currentTime - report.firstSampleAt) * 1000;
    }
    this.dispatchEvent(new CustomEvent("heard", { detail }));
  }

  /** Browsers let sound start only after a press: call it from one. */
  wake() {
    if (this.#context?.state === "suspended") this.#context.resume();
  }

  /** Begin a take of its own and return its Sound; what played before falls silent. */
  async open(sampleRate) {
    this.#take += 1;
    const take = this.#take;
    const { port } = await this.prepare(sampleRate);
    this.wake();
    const delay = this.fixedWait === null ? this.delay.seconds : 0;
    port.postMessage({ order: "open", take, delay, prebuffer: Math.round((this.fixedWait ?? 0) * sampleRate) });
    return new Sound(port, take, sampleRate);
  }

  set volume(value) {
    this.#volume = value;
    if (this.#gain) this.#gain.gain.value = value;
  }

  /** Seconds between the worklet and the loudspeaker, as the browser tells it. */
  get outputLatency() {
    return this.#context?.outputLatency ?? 0;
  }
}

/** The hold on one take in the player; once another one is opened, it does nothing any more. */
export class Sound {
  #port;
  #take;
  #sampleRate;

  constructor(port, take, sampleRate) {
    this.#port = port;
    this.#take = take;
    this.#sampleRate = sampleRate;
  }

  /** samples: Float32Array, handed over and not usable afterwards. */
  append(samples) {
    this.#order({ order: "append", samples }, [samples.buffer]);
  }

  /** No more samples will come. */
  complete() {
    this.#order({ order: "complete" });
  }

  play() {
    this.#order({ order: "play" });
  }

  pause() {
    this.#order({ order: "pause" });
  }

  seek(seconds) {
    this.#order({ order: "seek", sample: Math.round(seconds * this.#sampleRate) });
  }

  #order(message, transfer = []) {
    this.#port.postMessage({ ...message, take: this.#take }, transfer);
  }
}

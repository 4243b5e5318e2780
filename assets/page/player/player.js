// Audio playback: one AudioContext, one worklet, one take at a time. Independent of the server and the page.

import { notConnected } from "../client/refusal.js";
import { PlayoutDelay } from "./playout-delay.js";

const USUAL_RATE = 44100;
const START_MS = 4000; // after which a sound device certainly runs
const SILENCE_MS = 2000; // then the sound device is released: in use, it keeps a processor and the computer awake

/**
 * Fires "soundless" if the browser does not play what it should, "followed" when the next take has begun by itself, and "heard" with {firstSampleAt?, needed?, position, rendered, underruns, state, loudest}: positions in samples, times in
 * milliseconds of performance.now(), loudest since the last report from 0 to 1. needed, once, when complete: the seconds of
 * delay at the start that would have avoided all gaps.
 */
export class Player extends EventTarget {
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {GainNode | null} */
  #gain = null;
  #volume = 1;
  #rate = 1;
  /** @type {Promise<AudioWorkletNode> | null} */
  #preparing = null; // the node of the current context
  #take = 0;
  #following = 0; // the take that plays on without a gap
  #isSilent = true; // no take plays or waits for samples
  #isResting = false; // the context ran, and is suspended until it is needed
  #resting = 0; // timer
  #starting = 0; // timer
  delay = new PlayoutDelay();
  /** @type {number | null} */
  fixedWait = null; // seconds to buffer before playback, instead of the learned delay

  /** Build the audio graph for a sample rate, once for concurrent callers. Throws Refusal. */
  prepare(sampleRate = this.#context?.sampleRate ?? USUAL_RATE) {
    if (this.#context?.sampleRate !== sampleRate || !this.#preparing) {
      const [before, preparing] = [this.#context, this.#preparing];
      Promise.allSettled([preparing]).then(() => before?.close()); // not while it is being built
      this.#context = new AudioContext({ sampleRate, latencyHint: "interactive" });
      this.#preparing = this.#build(this.#context);
    }
    return this.#preparing;
  }

  async #build(context) {
    try {
      await context.audioWorklet.addModule(new URL("player-worklet.js", import.meta.url));
    } catch (problem) {
      if (context === this.#context) this.#preparing = null; // the next track retries
      throw problem.name === "AbortError" ? notConnected() : problem;
    }
    const gain = new GainNode(context, { gain: this.#volume });
    const node = new AudioWorkletNode(context, "take-source", { numberOfInputs: 0, outputChannelCount: [1] });
    node.port.onmessage = ({ data }) => this.#hear(context, data);
    node.connect(gain).connect(context.destination);
    if (context === this.#context) this.#gain = gain;
    node.port.postMessage({ order: "rate", rate: this.#rate });
    return node;
  }

  #hear(context, report) {
    if (report.take === this.#following && this.#following > this.#take) {
      this.#take = report.take;
      this.#isSilent = false;
      this.dispatchEvent(new CustomEvent("followed"));
    }
    if (report.take !== this.#take) return;
    if (report.state === "over") this.#isSilent = true;
    this.#restLater();
    const detail = { ...report };
    if (report.firstSampleAt !== undefined) {
      detail.firstSampleAt = performance.now() - (context.currentTime - report.firstSampleAt) * 1000;
    }
    this.dispatchEvent(new CustomEvent("heard", { detail }));
  }

  /** Keep the context running for an order to a take, and let it rest in silence. @param {number} take @param {string} order */
  #attend(take, order) {
    if (take !== this.#take) return;
    if (order === "play" || order === "pause") this.#isSilent = order === "pause";
    this.#stayAwake();
    if (order === "play") this.#expectSound();
  }

  /** Firefox does not even fail without a sound device: its context waits for one. */
  #expectSound() {
    clearTimeout(this.#starting);
    this.#starting = setTimeout(() => {
      if (!this.#isSilent && this.#context?.state !== "running") this.dispatchEvent(new Event("soundless"));
    }, START_MS);
  }

  #stayAwake() {
    this.#isResting = false;
    this.#context?.resume();
    this.#restLater();
  }

  #restLater() {
    clearTimeout(this.#resting);
    this.#resting = setTimeout(() => {
      if (!this.#isSilent) return;
      this.#isResting = true;
      this.#context?.suspend();
    }, SILENCE_MS);
  }

  /** Allow audio. Browsers require a click before its first use: call it from the handler. */
  wake() {
    const { audioSession } = /** @type {any} */ (navigator);
    if (audioSession) audioSession.type = "playback"; // else an iPhone whose switch is on silent plays nothing
    if (!this.#isResting) this.#stayAwake();
  }

  /** Begin a new take and return its Sound; stop the previous one. length: its seconds, 0 if all of it is there. */
  async open(sampleRate, length = 0) {
    this.#take += 1;
    const take = this.#take;
    const { port } = await this.prepare(sampleRate);
    this.#attend(take, "play");
    const delay = this.fixedWait === null ? this.delay.before(length) : 0;
    port.postMessage({ order: "open", take, delay, prebuffer: Math.round((this.fixedWait ?? 0) * sampleRate) });
    return new Sound(port, take, sampleRate, delay, (order) => this.#attend(take, order));
  }

  /** Play samples (transferred) after the current take, which is complete, without a gap. Returns their Sound. Throws Refusal. */
  async follow(sampleRate, samples) {
    const take = this.#take;
    const { port } = await this.prepare(sampleRate);
    if (take !== this.#take) return null; // another one plays by now
    const next = take + 1;
    this.#following = next;
    this.#stayAwake();
    port.postMessage({ order: "follow", take, next, samples }, [samples.buffer]);
    return new Sound(port, next, sampleRate, 0, (order) => this.#attend(next, order));
  }

  /** End with the current take. */
  async endAfter() {
    const take = this.#take;
    const node = await this.#preparing;
    node?.port.postMessage({ order: "follow", take, samples: null });
  }

  set volume(value) {
    this.#volume = value;
    if (this.#gain) this.#gain.gain.value = value;
  }

  /** The speed of playback, which leaves the pitch as it is. */
  get rate() {
    return this.#rate;
  }

  set rate(rate) {
    if (rate === this.#rate) return;
    this.#rate = rate;
    this.#preparing?.then(({ port }) => port.postMessage({ order: "rate", rate }), () => {});
  }

  /** Seconds from the worklet to the loudspeaker, as reported by the browser. */
  get outputLatency() {
    return this.#context?.outputLatency ?? 0;
  }
}

/** The handle of a take in the player; has no effect once another take is opened. */
export class Sound {
  #port;
  #take;
  #sampleRate;
  #attend;

  /**
   * delay: seconds after the first samples in which it does not play unless it is complete; attend: called with each order.
   *
   * @param {(order: string) => void} attend
   */
  constructor(port, take, sampleRate, delay, attend) {
    this.delay = delay;
    this.#attend = attend;
    this.#port = port;
    this.#take = take;
    this.#sampleRate = sampleRate;
  }

  /** samples: Float32Array, transferred and not usable afterwards. */
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
    this.#attend(message.order);
    this.#port.postMessage({ ...message, take: this.#take }, transfer);
  }
}

// The microphone without the browser's filters: lossless pieces of audio and their level. Shows nothing.

import { Refusal, refusalOf } from "../client/refusal.js";
import { connected } from "../client/requests.js";
import { wavFile } from "../lib/wav.js";
import { phrase } from "../lib/phrases.js";

// Echo and noise filters distort a voice; automatic gain hides its level.
const RAW = { echoCancellation: false, noiseSuppression: false, autoGainControl: false, channelCount: 1 };

function silent(why, advice = phrase("mic.upload")) {
  return new Refusal({ what: phrase("mic.none"), why, advice });
}

/** Return why the microphone cannot be requested; null if it can. */
export function whyNoMicrophone() {
  if (window.isSecureContext && navigator.mediaDevices) return null;
  return silent(phrase("mic.insecure", { origin: location.origin }));
}

async function ask() {
  const refusal = whyNoMicrophone();
  if (refusal) throw refusal;
  try {
    return await navigator.mediaDevices.getUserMedia({ audio: RAW });
  } catch (problem) {
    if (problem.name === "NotAllowedError") {
      throw silent(phrase("mic.denied"), phrase("mic.denied.advice"));
    }
    if (problem.name === "NotFoundError") throw silent(phrase("mic.notFound"));
    throw silent(phrase("mic.broken", { why: problem.message }));
  }
}

const FLUSHED = 500; // ms to wait for the last samples
const STARTED = 4000; // ms after which a sound device certainly runs

/** Wait until audio is processed. Throws Refusal: Firefox, without a device to play on, would wait for one. @param {AudioContext} context */
const running = (context) => new Promise((resolve, reject) => {
  const look = () => context.state === "running" && resolve(null);
  context.addEventListener("statechange", look);
  setTimeout(() => reject(silent(phrase("mic.soundless"), phrase("mic.soundless.advice"))), STARTED);
  look();
});

/** The address of the worklet's script, of which this page has a copy. Throws Refusal. */
const readWorklet = () => connected(async () => {
  const response = await fetch(new URL("recorder-worklet.js", import.meta.url), { priority: "low" });
  if (!response.ok) throw await refusalOf(response);
  return URL.createObjectURL(await response.blob());
});
let worklet = readWorklet(); // at once: an upgraded studio has another one
worklet.catch(() => {}); // read again when it is needed

function decibel(amplitude) {
  return 20 * Math.log10(Math.max(amplitude, 1e-5));
}

/**
 * Fires "level" with {peak, rms} in dBFS, about twenty times a second, and "lost" when the input ends because it was
 * unplugged or taken by another program.
 */
export class Microphone extends EventTarget {
  isPaused = false;
  /** @type {MediaStream | null} */
  #stream = null;
  /** @type {AudioContext | null} */
  #context = null;
  /** @type {Int16Array<ArrayBuffer>[]} */
  #pieces = [];
  #samples = 0;
  #sampleRate = 0;
  /** @type {AudioWorkletNode | null} */
  #node = null;
  #flushed = () => {};

  /** Begin a recording. Throws Refusal if the microphone or the sound device is missing or unusable. */
  async start() {
    this.#pieces = [];
    this.#samples = 0;
    this.isPaused = false;
    this.#stream = await ask();
    this.#context = new AudioContext();
    worklet = worklet.catch(readWorklet);
    await this.#context.audioWorklet.addModule(await worklet);
    const context = this.#context;
    const lost = () => this.#context === context && this.dispatchEvent(new CustomEvent("lost"));
    for (const track of this.#stream.getTracks()) track.addEventListener("ended", lost); // not fired by our own stop()
    context.addEventListener("statechange", () => context.state !== "running" && lost());
    this.#sampleRate = context.sampleRate;
    const node = (this.#node = new AudioWorkletNode(context, "recorder", { numberOfInputs: 1, channelCount: 1, channelCountMode: "explicit" }));
    node.port.onmessage = ({ data }) => (data.length ? this.#take(data) : this.#flushed());
    // Its output is silent; only nodes connected to the destination are sure to run.
    context.createMediaStreamSource(this.#stream).connect(node).connect(context.destination);
    await running(context);
  }

  get seconds() {
    return this.#sampleRate ? this.#samples / this.#sampleRate : 0;
  }

  #take(floats) {
    let [peak, power] = [0, 0];
    for (const value of floats) {
      peak = Math.max(peak, Math.abs(value));
      power += value * value;
    }
    if (!this.isPaused) {
      this.#pieces.push(Int16Array.from(floats, (value) => Math.round(Math.max(-1, Math.min(1, value)) * 32767)));
      this.#samples += floats.length;
    }
    this.dispatchEvent(new CustomEvent("level", { detail: { peak: decibel(peak), rms: decibel(Math.sqrt(power / floats.length)) } }));
  }

  /** End the recording and release the microphone. Return the complete recording as a WAV blob, null if it is empty. */
  async stop() {
    const [context, stream] = [this.#context, this.#stream];
    this.#context = this.#stream = null;
    if (!context) return null;
    if (this.#node && context.state === "running") await this.#flush(this.#node);
    this.isPaused = true; // only silence comes until the device is closed
    for (const track of stream?.getTracks() ?? []) track.stop();
    await context.close();
    return this.#pieces.length ? wavFile(this.#pieces, this.#sampleRate) : null;
  }

  /** Get the worklet's last samples; they are lost if it does not respond, as in a context just suspended. */
  #flush(node) {
    return new Promise((resolve) => {
      this.#flushed = () => resolve(null);
      setTimeout(resolve, FLUSHED);
      node.port.postMessage("flush");
    });
  }
}

// The sound: one AudioContext, one worklet, one take at a time. It knows no network and no page.

const PREBUFFER_SECONDS = 0.06;
const USUAL_RATE = 44100;

/**
 * Fires "heard" with {firstSampleAt?, position, rendered, underruns, state}: positions in samples, times in
 * milliseconds of performance.now().
 */
export class Player extends EventTarget {
  #context = null;
  #node = null;
  #gain = null;
  #volume = 1;
  #preparing = null;
  #take = 0;

  /** Build the audio graph for a sample rate, once; a second caller waits for the first. */
  prepare(sampleRate = this.#context?.sampleRate ?? USUAL_RATE) {
    if (this.#context?.sampleRate !== sampleRate || !this.#preparing) {
      this.#context?.close();
      this.#context = new AudioContext({ sampleRate, latencyHint: "interactive" });
      this.#preparing = this.#build(this.#context);
    }
    return this.#preparing;
  }

  async #build(context) {
    await context.audioWorklet.addModule(new URL("worklet.js", import.meta.url));
    this.#gain = new GainNode(context, { gain: this.#volume });
    this.#node = new AudioWorkletNode(context, "take-source", { numberOfInputs: 0, outputChannelCount: [1] });
    this.#node.port.onmessage = ({ data }) => this.#hear(context, data);
    this.#node.connect(this.#gain).connect(context.destination);
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

  /** Begin a take of its own; what played before falls silent. */
  async open(sampleRate) {
    this.#take += 1;
    await this.prepare(sampleRate);
    this.wake();
    this.#order({ order: "open", prebuffer: Math.round(PREBUFFER_SECONDS * sampleRate) });
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
    this.wake();
    this.#order({ order: "play" });
  }

  pause() {
    this.#order({ order: "pause" });
  }

  seek(sample) {
    this.#order({ order: "seek", sample: Math.round(sample) });
  }

  set volume(value) {
    this.#volume = value;
    if (this.#gain) this.#gain.gain.value = value;
  }

  /** Seconds between the worklet and the loudspeaker, as the browser tells it. */
  get outputLatency() {
    return this.#context?.outputLatency ?? 0;
  }

  #order(message, transfer = []) {
    this.#node?.port.postMessage({ ...message, take: this.#take }, transfer);
  }
}

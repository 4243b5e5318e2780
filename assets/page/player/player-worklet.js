// Plays one take, sample by sample, while it is still growing, and reports its progress. Independent of network and page.

const SECONDS_AT_FIRST = 30;
// Samples between position reports. Drawing on each report may slow down generation, so report less often until that is done.
const [REPORT_EVERY, REPORT_EVERY_MAKING] = [2048, 4096];
const LONGEST_WAIT = 1; // second of sound, after a gap

class TakeSource extends AudioWorkletProcessor {
  take = 0;
  buffer = new Float32Array(0);
  length = 0; // samples received
  position = 0;
  rendered = 0; // samples given to the audio graph
  underruns = 0;
  prebuffer = 0; // samples required before playback starts or resumes
  delay = 0; // seconds from the first samples' arrival to their playback
  cameAt = 0; // when they arrived
  needed = -Infinity; // seconds of delay that would have avoided all gaps
  isComplete = false;
  state = "waiting"; // waiting for samples | playing | paused | over
  reported = 0;
  loudest = 0; // since the last report

  constructor() {
    super();
    this.open({ take: 0, prebuffer: 0, delay: 0 });
    /** @type {Record<string, (order: any) => void>} */
    const orders = {
      open: (order) => this.open(order),
      append: (order) => this.append(order),
      complete: () => this.complete(),
      play: () => this.play(),
      pause: () => (this.state = "paused"),
      seek: (order) => this.seek(order),
    };
    this.port.onmessage = ({ data }) => {
      if (data.order === "open" || data.take === this.take) orders[data.order](data);
    };
  }

  /** @param {{ take: number, prebuffer: number, delay: number }} order */
  open({ take, prebuffer, delay }) {
    this.take = take;
    this.buffer = new Float32Array(sampleRate * SECONDS_AT_FIRST);
    this.length = 0;
    this.position = 0;
    this.rendered = 0;
    this.underruns = 0;
    this.prebuffer = prebuffer;
    this.delay = delay;
    this.needed = -Infinity;
    this.isComplete = false;
    this.state = "waiting";
    this.reported = 0;
    this.loudest = 0;
  }

  /** @param {{ samples: Float32Array }} order */
  append({ samples }) {
    if (this.length) this.needed = Math.max(this.needed, currentTime - this.cameAt - this.length / sampleRate);
    else this.cameAt = currentTime;
    if (this.length + samples.length > this.buffer.length) {
      const larger = new Float32Array(Math.max(this.buffer.length * 2, this.length + samples.length));
      larger.set(this.buffer.subarray(0, this.length));
      this.buffer = larger;
    }
    this.buffer.set(samples, this.length);
    this.length += samples.length;
  }

  complete() {
    if (this.isComplete) return;
    this.isComplete = true;
    if (this.needed > -Infinity) this.report({ needed: this.needed });
  }

  play() {
    if (this.isComplete && this.position >= this.length) this.position = 0;
    this.state = "waiting";
  }

  /** @param {{ sample: number }} order */
  seek({ sample }) {
    this.position = Math.max(0, Math.min(sample, this.length));
    if (this.state === "over") this.state = "paused";
    this.report();
  }

  report(more = {}) {
    this.reported = this.rendered;
    const { take, position, rendered, underruns, state, loudest } = this;
    this.port.postMessage({ take, position, rendered, underruns, state, loudest, ...more });
    this.loudest = 0;
  }

  /**
   * Whether playback can start now. After a gap, require as much audio as the take was late: it may be late again.
   *
   * @param {number} ahead
   */
  isEnough(ahead) {
    if (this.isComplete) return true;
    const late = this.underruns ? Math.min(this.needed, LONGEST_WAIT) * sampleRate : 0;
    return ahead > 0 && ahead >= Math.max(this.prebuffer, late) && currentTime >= this.cameAt + this.delay;
  }

  /**
   * @param {Float32Array[][]} _inputs
   * @param {Float32Array[][]} outputs
   */
  process(_inputs, outputs) {
    const ahead = this.length - this.position;
    if (this.state === "waiting" && this.isEnough(ahead)) this.state = "playing";
    if (this.state !== "playing") return true;

    const [out] = outputs[0];
    const count = Math.min(out.length, ahead);
    out.set(this.buffer.subarray(this.position, this.position + count));
    for (let i = 0; i < count; i += 1) this.loudest = Math.max(this.loudest, Math.abs(out[i]));
    const isFirst = this.rendered === 0 && count > 0;
    this.position += count;
    this.rendered += count;

    if (isFirst) this.report({ firstSampleAt: currentTime });
    if (count < out.length && this.isComplete) {
      this.state = "over";
      this.report();
    } else if (count < out.length) {
      this.underruns += 1;
      this.state = "waiting";
      this.report();
    } else if (this.rendered - this.reported >= (this.isComplete ? REPORT_EVERY : REPORT_EVERY_MAKING)) {
      this.report();
    }
    return true;
  }
}

registerProcessor("take-source", TakeSource);

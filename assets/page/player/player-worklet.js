// Plays one take, sample by sample, while it is still growing, and reports its progress. Independent of network and page.

const SECONDS_AT_FIRST = 30;
// Samples between position reports. Drawing on each report may slow down generation, so report less often until that is done.
const [REPORT_EVERY, REPORT_EVERY_MAKING] = [2048, 4096];
// At another speed, pieces of HOP seconds are joined where the sound is most alike, at most REACH seconds away: longer than a
// period of the lowest voices, so that the pitch stays, and shorter than most sounds of speech. Every fourth sample is compared.
const [HOP, REACH, COMPARED] = [0.015, 0.009, 4];
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
  rate = 1; // speed of playback, without a change of pitch
  hop = new Float32Array(0); // a joined piece at another speed
  hopped = 0; // samples of it given to the audio graph
  natural = 0; // where the sound of that piece goes on
  /** The take that follows this one without a gap. @type {{ next: number, samples: Float32Array<ArrayBuffer> } | null} */
  following = null;

  constructor() {
    super();
    this.open({ take: 0, prebuffer: 0, delay: 0 });
    /** @type {Record<string, (order: any) => void>} */
    const orders = {
      open: (order) => this.open(order),
      append: (order) => this.append(order),
      complete: () => this.complete(),
      follow: ({ next, samples }) => (this.following = samples ? { next, samples } : null),
      play: () => this.play(),
      pause: () => (this.state = "paused"),
      seek: (order) => this.seek(order),
      rate: (order) => this.setRate(order),
    };
    this.port.onmessage = ({ data }) => {
      if (data.order === "open" || data.order === "rate" || data.take === this.take) orders[data.order](data);
    };
  }

  /** @param {{ take: number, prebuffer: number, delay: number, buffer?: Float32Array<ArrayBuffer> }} order */
  open({ take, prebuffer, delay, buffer = new Float32Array(sampleRate * SECONDS_AT_FIRST) }) {
    this.take = take;
    this.buffer = buffer;
    this.following = null;
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
    this.drop();
  }

  /** @param {{ rate: number }} order */
  setRate({ rate }) {
    this.rate = rate;
    this.drop();
  }

  /** Begin a new row of joined pieces at the position. */
  drop() {
    this.hop = new Float32Array(0);
    this.hopped = 0;
    this.natural = this.position = Math.round(this.position);
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
    this.drop();
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
   * Go on with the take that follows.
   *
   * @param {{ next: number, samples: Float32Array<ArrayBuffer> }} take
   */
  goOn({ next, samples }) {
    this.open({ take: next, prebuffer: 0, delay: 0, buffer: samples });
    this.length = samples.length;
    this.isComplete = true;
    this.state = "playing";
    this.report();
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
   * @param {Float32Array} out
   * @param {number} ahead
   */
  copy(out, ahead) {
    const count = Math.min(out.length, ahead);
    out.set(this.buffer.subarray(this.position, this.position + count));
    this.position += count;
    return count;
  }

  /** @param {Float32Array} out */
  fill(out) {
    return this.rate === 1 ? this.copy(out, this.length - this.position) : this.stretch(out);
  }

  /** @param {Float32Array} out */
  stretch(out) {
    let count = 0;
    while (count < out.length && (this.hopped < this.hop.length || this.join())) {
      const piece = this.hop.subarray(this.hopped, this.hopped + out.length - count);
      out.set(piece, count);
      this.hopped += piece.length;
      count += piece.length;
    }
    return count;
  }

  /** Make the next piece: the sound that follows fades into the most similar one near the position. Returns whether there is one. */
  join() {
    const [size, reach] = [Math.round(HOP * sampleRate), Math.round(REACH * sampleRate)];
    const at = Math.round(this.position);
    if (at + reach + size > this.length) {
      if (!this.isComplete || at >= this.length) return false;
      this.hop = this.buffer.slice(at, this.length);
      this.natural = this.position = this.length;
    } else {
      const from = this.likest(at, size, reach);
      this.hop = this.buffer.slice(from, from + size);
      for (let i = 0; i < size; i += 1) this.hop[i] += (1 - i / size) * (this.buffer[this.natural + i] - this.hop[i]);
      this.natural = from + size;
      this.position = Math.min(this.position + size * this.rate, this.length);
    }
    this.hopped = 0;
    return true;
  }

  /**
   * @param {number} at
   * @param {number} size
   * @param {number} reach
   */
  likest(at, size, reach) {
    let [best, most] = [at, -Infinity];
    if (this.natural + size > this.length) return best;
    for (let from = Math.max(0, at - reach); from <= at + reach; from += 1) {
      let [product, power] = [0, 1e-9];
      for (let i = 0; i < size; i += COMPARED) {
        product += this.buffer[this.natural + i] * this.buffer[from + i];
        power += this.buffer[from + i] ** 2;
      }
      const likeness = product / Math.sqrt(power);
      if (likeness > most) [best, most] = [from, likeness];
    }
    return best;
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
    let count = this.fill(out);
    if (count < out.length && this.isComplete && this.following) {
      this.goOn(this.following);
      count += this.fill(out.subarray(count));
    }
    for (let i = 0; i < count; i += 1) this.loudest = Math.max(this.loudest, Math.abs(out[i]));
    const isFirst = this.rendered === 0 && count > 0;
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

// How long to delay a take's first audio so that it plays without gaps: learned from previous takes. Plays nothing.

/*
 * As in telephony (Ramjee, Kurose, Towsley and Schulzrinne, INFOCOM 1994): the mean of the delays needed plus four times
 * their deviation. A delay needed may be negative: the audio was early by that much. So a fast engine causes no delay at all.
 * One near real time is treated as slower: occasionally it is, and previous takes do not predict when.
 */
const DEVIATIONS = 4;
const TAKES = 10; // that count: a bad one has an effect immediately, until this many more
const BEYOND = 0.015; // seconds, at most, beyond the worst of them
const LONGEST = 1.5; // seconds, for an engine that is as fast as the speech
const UNSURE = 1.1; // factor for a slower one, since the take's length is estimated from its text
const [UNKNOWN, EXPECTED] = [0.1, 0.3]; // seconds for the first take: while nothing is known, and at most

const SLOWER = 1.5; // factor by which an engine is occasionally slower, as the machine has other work too
const HINDERED = 0.035; // seconds by which the second chunk may also be late: browser and studio start on the first

/** For the chunks that are latest if an engine is slow: frames ready when the chunk is begun, and its own frames. */
const LATE = [[1, 1], [3, 2], [13, 4]];
/** Seconds of assumed variation: at most for few takes, at least for many. */
const [FEW, MANY] = [0.03, 0.005];

export class PlayoutDelay {
  #frame = 2048 / 44100; // seconds; S2's, until the model is known
  /** Delays needed by takes, the latest last. @type {number[]} */
  #needed = [];
  #expected = UNKNOWN;
  #least = 0; // lower bound: the delay needed when the engine is slower than usual
  #paces = { told: 0, heard: 0 }; // seconds per second of audio: by the engine, and of the latest complete take with its codec

  /** Seconds of work per second of audio. */
  get pace() {
    return Math.max(this.#paces.told, this.#paces.heard);
  }

  /**
   * Seconds to wait after the first audio of a take of this length has arrived. An engine slower than real time plays on without a
   * gap only if it has finished the take when the last second is due.
   *
   * @param {number} length seconds
   */
  before(length) {
    return Math.max(this.seconds, (this.pace - 1) * length * UNSURE);
  }

  /** Seconds to wait after the first audio has arrived. */
  get seconds() {
    return Math.min(Math.max(this.#needed.length ? this.#learnt : this.#expected, this.#least), LONGEST);
  }

  get #learnt() {
    const count = this.#needed.length;
    const mean = this.#needed.reduce((sum, delay) => sum + delay, 0) / count;
    const deviation = Math.sqrt(this.#needed.reduce((sum, delay) => sum + (delay - mean) ** 2, 0) / count);
    const likely = mean + DEVIATIONS * Math.max(deviation, count < 3 ? this.#unknown(mean) : MANY);
    return Math.min(likely, Math.max(...this.#needed) + BEYOND);
  }

  /**
   * Set the engine's seconds of work per second of audio. Yields the delay for the first take, and the lower bound for when the
   * engine is slower than usual. The engine's very first work is slower than the rest: hence the upper bound.
   *
   * @param {number} realTimeFactor
   * @param {number} [frame] seconds of audio in a frame
   */
  expect(realTimeFactor, frame = this.#frame) {
    this.#frame = frame;
    this.#paces.told = realTimeFactor;
    const needed = this.#neededAt(realTimeFactor);
    this.#expected = Math.min(needed + DEVIATIONS * this.#unknown(needed), EXPECTED);
    const slower = SLOWER * realTimeFactor;
    this.#least = Math.min(Math.max(this.#neededAt(slower), (slower - 1) * frame + HINDERED, 0), EXPECTED);
  }

  /**
   * Learn from a complete take.
   *
   * @param {number} needed seconds of delay that would have avoided all gaps; negative if it was early by that much
   * @param {number} [length] its seconds of audio
   */
  learn(needed, length = Infinity) {
    this.#paces.heard = needed > LONGEST ? 1 + needed / length : 0;
    this.#needed = [...this.#needed, Math.min(needed, LONGEST)].slice(-TAKES);
  }

  /** The possible variation while few takes are known: takes generated fast can only vary a little. */
  #unknown(/** @type {number} */ needed) {
    return Math.min((needed + this.#frame) / 2, FEW);
  }

  /** Return the delay in seconds that a take needs at this real-time factor. */
  #neededAt(/** @type {number} */ realTimeFactor) {
    return Math.max(...LATE.map(([there, more]) => realTimeFactor * (there + more - 1) - there)) * this.#frame; // its arrival less the audio played until then
  }
}

// How long to hold a take's first sound back, so that none of it comes too late: learnt from the takes before. It plays nothing.

/*
 * As players of calls do it (Ramjee, Kurose, Towsley and Schulzrinne, INFOCOM 1994): the mean of what was needed, and four
 * times its deviation. What was needed may be below zero: sound that is early by that much. So a fast engine is not waited
 * for at all. One near real time is waited for as if it were slower: now and then it is, and takes before do not tell when.
 */
const DEVIATIONS = 4;
const TAKES = 10; // that count: a bad one is heeded at once and forgotten after so many
const BEYOND = 0.015; // seconds more than the worst of them, at most
const LONGEST = 1.5; // seconds; whoever is slower than that plays with gaps
const [UNKNOWN, EXPECTED] = [0.1, 0.3]; // seconds before the first take: while nothing is known, and at most

const SLOWER = 1.5; // times its pace that an engine is now and then, since the machine does other things too
const HINDERED = 0.035; // seconds that the second chunk may come later besides: browser and studio begin with the first

const FRAME = 2048 / 44100; // seconds
/** Of the chunks that come last when an engine is slow: frames that are there when it is begun, and frames of its own. */
const LATE = [[1, 1], [3, 2], [13, 4]];
/** Seconds that few takes are thought to vary by at most, and many at least. */
const [FEW, MANY] = [0.03, 0.005];

export class PlayoutDelay {
  /** What takes needed, the latest last. @type {number[]} */
  #needed = [];
  #expected = UNKNOWN;
  #least = 0; // whatever takes needed: what one would that the engine makes more slowly than it mostly does

  /** Seconds to wait after the first sound has come. */
  get seconds() {
    return Math.min(Math.max(this.#needed.length ? this.#learnt : this.#expected, this.#least), LONGEST);
  }

  get #learnt() {
    const count = this.#needed.length;
    const mean = this.#needed.reduce((sum, delay) => sum + delay, 0) / count;
    const deviation = Math.sqrt(this.#needed.reduce((sum, delay) => sum + (delay - mean) ** 2, 0) / count);
    const likely = mean + DEVIATIONS * Math.max(deviation, count < 3 ? unknown(mean) : MANY);
    return Math.min(likely, Math.max(...this.#needed) + BEYOND);
  }

  /**
   * The engine works so many seconds for one of sound: what is known before the first take has been heard, and what tells how
   * far it may be from real time when it is slower than usual. Its first work of all is slower than what follows: hence the bound.
   *
   * @param {number} realTimeFactor
   */
  expect(realTimeFactor) {
    const needed = neededAt(realTimeFactor);
    this.#expected = Math.min(needed + DEVIATIONS * unknown(needed), EXPECTED);
    const slower = SLOWER * realTimeFactor;
    this.#least = Math.min(Math.max(neededAt(slower), (slower - 1) * FRAME + HINDERED, 0), EXPECTED);
  }

  /**
   * A take has come whole.
   *
   * @param {number} needed seconds that its sound would have had to be held back to have no gap; below zero: it was so much early
   */
  learn(needed) {
    this.#needed = [...this.#needed, Math.min(needed, LONGEST)].slice(-TAKES);
  }
}

/** How much takes may vary of which hardly any was heard: those that are made at once can only vary a little. */
const unknown = (/** @type {number} */ needed) => Math.min((needed + FRAME) / 2, FEW);

/** Seconds that a take needs whose engine works so many for one of sound. */
function neededAt(/** @type {number} */ realTimeFactor) {
  return Math.max(...LATE.map(([there, more]) => realTimeFactor * (there + more - 1) - there)) * FRAME; // when it comes, less what is heard till then
}

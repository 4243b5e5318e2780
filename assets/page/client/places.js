// Limits concurrent speech requests to the number that the studio allows per caller; the others wait here.

class Places {
  /** @type {number} */
  #most = Infinity;
  #taken = 0;
  /** @type {(() => void)[]} */
  #waiting = [];

  /** The limit; null: no limit. @param {number | null} most */
  set most(most) {
    this.#most = most ?? Infinity;
    this.#next();
  }

  /**
   * Wait for a place. Returns a function that releases it. Throws AbortError.
   *
   * @param {AbortSignal | null} signal
   * @returns {Promise<() => void>}
   */
  async enter(signal) {
    signal?.throwIfAborted();
    if (this.#taken >= this.#most || this.#waiting.length) await this.#turn(signal);
    else this.#taken += 1;
    return () => {
      this.#taken -= 1;
      this.#next();
    };
  }

  /** @param {AbortSignal | null} signal @returns {Promise<void>} */
  #turn(signal) {
    return new Promise((resolve, reject) => {
      const go = () => {
        signal?.removeEventListener("abort", leave);
        resolve();
      };
      const leave = () => {
        this.#waiting = this.#waiting.filter((other) => other !== go);
        reject(signal?.reason);
      };
      this.#waiting.push(go);
      signal?.addEventListener("abort", leave, { once: true });
    });
  }

  #next() {
    while (this.#taken < this.#most && this.#waiting.length) {
      this.#taken += 1;
      this.#waiting.shift()?.();
    }
  }
}

export const places = new Places();

const SOON = 2; // seconds after which a place may be free, unlike the per-minute quota

/**
 * Retry until a place is free: the studio refuses a request while another tab or program of this caller uses all places,
 * or while the previous request is still ending. Throws the errors of `ask`, and AbortError.
 *
 * @template T
 * @param {() => Promise<T>} ask
 * @param {AbortSignal | null} [signal]
 * @returns {Promise<T>}
 */
export async function untilFree(ask, signal = null) {
  for (;;) {
    try {
      return await ask();
    } catch (problem) {
      if (problem.code !== "rate_limit_exceeded" || problem.retryAfter > SOON) throw problem;
      await pause(1000 * (problem.retryAfter ?? 1), signal);
    }
  }
}

/** Wait this many milliseconds; throws AbortError after signal.abort(). @param {number} wait @param {AbortSignal | null} signal @returns {Promise<void>} */
function pause(wait, signal) {
  return new Promise((resolve, reject) => {
    const leave = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", leave);
      resolve();
    }, wait);
    signal?.addEventListener("abort", leave, { once: true });
  });
}

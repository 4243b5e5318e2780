// Limits the speech requests under way to the number that the studio allows one caller; the others wait here.

class Places {
  /** @type {number} */
  #most = Infinity;
  #taken = 0;
  /** @type {(() => void)[]} */
  #waiting = [];

  /** The limit; null: none. @param {number | null} most */
  set most(most) {
    this.#most = most ?? Infinity;
    this.#next();
  }

  /**
   * Wait for a place. Returns a function that releases it. Raises AbortError.
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

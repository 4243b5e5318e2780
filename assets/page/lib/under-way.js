// Tracks running work, so that a later request can wait for all of it and does not overtake it.

export class UnderWay {
  /** @type {Promise<unknown>} */
  #all = Promise.resolve();

  /**
   * Track this work until it has ended, successfully or not.
   *
   * @template T
   * @param {Promise<T>} work
   * @returns {Promise<T>} the same promise
   */
  add(work) {
    this.#all = Promise.allSettled([this.#all, work]);
    return work;
  }

  /** Resolves when all work added so far has ended. */
  ended() {
    return this.#all;
  }
}

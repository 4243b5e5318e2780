// Work that is under way, and a wait for all of it, so that what is asked for next does not overtake it.

export class UnderWay {
  /** @type {Promise<unknown>} */
  #all = Promise.resolve();

  /**
   * Count this until it has ended, well or not.
   *
   * @template T
   * @param {Promise<T>} work
   * @returns {Promise<T>} the same
   */
  add(work) {
    this.#all = Promise.allSettled([this.#all, work]);
    return work;
  }

  /** Until all has ended that was added before. */
  ended() {
    return this.#all;
  }
}

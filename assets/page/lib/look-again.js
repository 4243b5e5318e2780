// Looks again after a request that the studio did not answer: the rest of it may be there, and then nothing else calls for that.

const SOON = 2000; // ms

export class LookAgain {
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * Look once, soon, unless the request itself was at fault.
   *
   * @param {import("../client/refusal.js").Refusal} problem
   * @param {() => unknown} look
   */
  after(problem, look) {
    this.end();
    if (!problem.isOfRequest) this.#timer = setTimeout(look, SOON);
  }

  /** Look no more: it is done already, or not wanted any longer. */
  end() {
    clearTimeout(this.#timer);
  }
}

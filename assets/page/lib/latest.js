// Ignores outdated responses: of several requests for the same thing, only the latest counts.

export class Latest {
  #turn = 0;

  /** Begin a request. Returns a function that reports whether it is still the latest. */
  begin() {
    this.#turn += 1;
    return this.join();
  }

  /** Like begin, for a request that only adds to the previous one. */
  join() {
    const turn = this.#turn;
    return () => turn === this.#turn;
  }

  /** Make all requests begun so far obsolete. */
  end() {
    this.#turn += 1;
  }
}

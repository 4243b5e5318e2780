// Ignores outdated responses: of several requests for the same thing, only the latest counts.

export class Latest {
  #turn = 0;
  #control = new AbortController();

  /** Aborted once the latest request is obsolete: passed to requests whose answers take long. */
  get signal() {
    return this.#control.signal;
  }

  /** Begin a request. Returns a function that reports whether it is still the latest. */
  begin() {
    this.end();
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
    this.#control.abort();
    this.#control = new AbortController();
  }
}

// Of several requests for the same thing only the latest counts, in whatever order their answers come.

export class Latest {
  #turn = 0;

  /** Begin one. What it gives tells, after every wait, whether it still counts. */
  begin() {
    this.#turn += 1;
    return this.join();
  }

  /** As begin, for what only adds to the one before. */
  join() {
    const turn = this.#turn;
    return () => turn === this.#turn;
  }

  /** None counts any more. */
  end() {
    this.#turn += 1;
  }
}

// This caller's account: the name of its key, shown in the header, and its limit of requests at a time.

import { isZeroGpu } from "../client/host.js";
import { places } from "../client/places.js";
import { queue } from "../client/system.js";
import { phrase } from "../lib/phrases.js";

export class Account {
  #isKnown = false;

  /** name: where the caller's name is shown; health: tells when the studio can say. */
  constructor(name, health) {
    this.name = name;
    if (!isZeroGpu) health.watch(({ status }) => status === "ready" && !this.#isKnown && this.look());
  }

  /** Ask again: it may be another key. */
  async look() {
    this.#isKnown = true;
    const line = await queue().catch(() => null);
    this.#isKnown = line !== null;
    if (!line) return;
    places.most = line.max_per_caller;
    this.name.hidden = !line.caller;
    this.name.textContent = line.caller ?? "";
    this.name.title = line.caller ? phrase("shell.signedIn", { name: line.caller }) : "";
  }
}

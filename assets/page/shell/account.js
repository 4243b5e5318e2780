// This caller's account: the name of its key, shown in the header, and its limit of requests at a time.

import { isZeroGpu, needsKey } from "../client/host.js";
import { places } from "../client/places.js";
import { queue } from "../client/system.js";
import { once } from "../lib/once.js";
import { phrase } from "../lib/phrases.js";

const STALE = 10_000; // ms: a key may be revoked, and then nothing else on the page may ask for a long time

export class Account {
  #next = 0; // when to ask, as performance.now() has it

  /** name: where the caller's name is shown; health: tells when the studio can say. */
  constructor(name, health) {
    this.name = name;
    if (!isZeroGpu) health.watch(({ status }) => status === "ready" && performance.now() >= this.#next && this.look());
  }

  /** Ask again: it may be another key. */
  look = once(async () => {
    const line = await queue().catch(() => null);
    if (!line) return;
    this.#next = needsKey ? performance.now() + STALE : Infinity;
    places.most = line.max_per_caller;
    this.name.hidden = !line.caller;
    this.name.textContent = line.caller ?? "";
    this.name.title = line.caller ? phrase("shell.signedIn", { name: line.caller }) : "";
  });
}

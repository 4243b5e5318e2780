// The caller's account: shows the name of its key in the header and applies its limit of concurrent requests.

import { isThroughGradio, needsKey } from "../client/host.js";
import { places } from "../client/places.js";
import { queue, signOut } from "../client/system.js";
import { offerMenu } from "../lib/menu.js";
import { once } from "../lib/once.js";
import { phrase } from "../lib/phrases.js";

const STALE = 10_000; // ms: a key may be revoked while nothing else on the page sends a request

export class Account {
  #next = 0; // time of the next request, by performance.now()

  /** name: the button that shows the caller's name and opens a menu; health: reports when the studio can answer. */
  constructor(name, health) {
    this.name = offerMenu(name, () => [{ words: phrase("settings.signOut"), run: () => signOut() }]);
    if (!isThroughGradio) health.watch(({ status }) => status === "ready" && performance.now() >= this.#next && this.look());
  }

  /** Fetch the account again: the key may have changed. */
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

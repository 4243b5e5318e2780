// Where no recogniser is set up: one is offered, and fetched by the studio when its owner presses.

import { Refusal } from "../client/refusal.js";
import { fetchRecogniser, recogniser, stopFetchingRecogniser } from "../client/voices.js";
import { Latest } from "../lib/latest.js";
import { phrase } from "../lib/phrases.js";

const AGAIN = 1000; // ms between looks while it is fetched

const megabytes = (bytes) => Math.round(bytes / 1e6);

/** What is said of it. */
export function wordsFor({ installed, install, offered, may_fetch: mayFetch, fetching, error }) {
  if (fetching) return fetching.total ? phrase("recogniser.fetching.bytes", { bytes: megabytes(fetching.bytes), total: megabytes(fetching.total) }) : phrase("recogniser.fetching");
  const none = phrase("recogniser.none");
  if (!mayFetch) return none;
  if (!installed) return `${none} ${phrase("recogniser.install", { command: install })}`;
  const first = error ? phrase("recogniser.failed", { why: error }) : none;
  return `${first} ${phrase("recogniser.offer", { model: offered.model, size: megabytes(offered.bytes), licence: offered.licence })}`;
}

/** Fires "ready" once there is one. */
export class RecogniserOffer extends EventTarget {
  #isOpen = false;
  #isNeeded = false;
  #looks = new Latest();
  #timer = 0;
  /** @type {string | null} */
  name = null;

  constructor(part) {
    super();
    this.part = part;
    part("recogniser-fetch").addEventListener("click", () => this.#show(fetchRecogniser));
    part("recogniser-stop").addEventListener("click", () => this.#show(stopFetchingRecogniser));
  }

  /** Whether the studio has none, as far as the page knows. */
  set isNeeded(isNeeded) {
    if (isNeeded === this.#isNeeded) return;
    this.#isNeeded = isNeeded;
    this.part("no-recogniser").hidden = !isNeeded;
    if (this.#isOpen) this.open();
  }

  /** Its step is shown. */
  open() {
    this.#isOpen = true;
    if (this.#isNeeded) this.#show(recogniser);
  }

  close() {
    this.#isOpen = false;
    this.#looks.end();
    clearTimeout(this.#timer);
  }

  async #show(ask) {
    clearTimeout(this.#timer);
    const isLatest = this.#looks.begin();
    try {
      const now = await ask();
      if (!isLatest()) return;
      this.#draw(now);
      if (now.fetching) this.#timer = setTimeout(() => this.#show(recogniser), AGAIN);
      if (!now.name) return;
      this.name = now.name;
      this.dispatchEvent(new CustomEvent("ready"));
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (isLatest()) this.part("recogniser-words").textContent = problem.why;
    }
  }

  #draw(now) {
    const { installed, may_fetch: mayFetch, fetching } = now;
    this.part("recogniser-words").textContent = wordsFor(now);
    this.part("recogniser-progress").hidden = !fetching;
    if (fetching?.total) this.part("recogniser-progress").value = fetching.bytes / fetching.total;
    else this.part("recogniser-progress").removeAttribute("value");
    this.part("recogniser-fetch").hidden = Boolean(fetching) || !installed || !mayFetch;
    this.part("recogniser-stop").hidden = !fetching || !mayFetch;
  }
}

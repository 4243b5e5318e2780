// Where no recogniser is set up: one is offered, and fetched by the studio when its owner presses.

import { Refusal } from "../client/refusal.js";
import { fetchRecogniser, recogniser, stopFetchingRecogniser } from "../client/voices.js";
import { Latest } from "../lib/latest.js";

const AGAIN = 1000; // ms between looks while it is fetched
const LISTEN = "No speech recogniser is set up here: listen, and type what you hear.";

const megabytes = (bytes) => Math.round(bytes / 1e6);

/** What is said of it. */
export function wordsFor({ installed, install, offered, may_fetch: mayFetch, fetching, error }) {
  if (fetching) return fetching.total ? `Fetching: ${megabytes(fetching.bytes)} of ${megabytes(fetching.total)} MB` : "Fetching …";
  if (!mayFetch) return LISTEN;
  if (!installed) return `${LISTEN} For one, install the package faster-whisper where the studio runs (${install}), then come back here.`;
  const failed = error ? `It was not fetched: ${error}. ` : `${LISTEN} `;
  return `${failed}The studio can fetch Whisper base (${offered.model} on Hugging Face): ${megabytes(offered.bytes)} MB, licence ${offered.licence}, once. Clips stay on the studio's computer.`;
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

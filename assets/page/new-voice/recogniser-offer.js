// If no speech recogniser is set up, offers one, which the studio downloads at its owner's request.

import { Refusal } from "../client/refusal.js";
import { fetchRecogniser, recogniser, stopFetchingRecogniser } from "../client/voices.js";
import { element } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { phrase } from "../lib/phrases.js";

const AGAIN = 1000; // ms between polls during the download

const megabytes = (bytes) => Math.round(bytes / 1e6);

/** The text of the offer, or of the download's progress. */
export function wordsFor({ installed, install, offered, may_fetch: mayFetch, fetching, error }) {
  if (fetching) return fetching.total ? phrase("recogniser.fetching.bytes", { bytes: megabytes(fetching.bytes), total: megabytes(fetching.total) }) : phrase("recogniser.fetching");
  const none = phrase("recogniser.none");
  if (!mayFetch) return `${none} ${phrase("recogniser.owner")}`;
  if (!installed) return `${none} ${phrase("recogniser.install", { command: install })}`;
  const first = error ? phrase("recogniser.failed", { why: error }) : none;
  return `${first} ${phrase("recogniser.offer", { model: offered.model, size: megabytes(offered.bytes), licence: offered.licence })}`;
}

/** The caller puts `element` into the page. Fires "ready" once a recogniser is available. */
export class RecogniserOffer extends EventTarget {
  #isOpen = false;
  #isNeeded = false;
  #looks = new Latest();
  #timer = 0;
  /** @type {string | null} */
  name = null;

  constructor() {
    super();
    const button = (words, ask) => element("button", { type: "button", className: "plain", hidden: true, textContent: words, onclick: () => this.#show(ask) });
    this.words = element("p", { className: "quiet", textContent: phrase("recogniser.none") });
    this.words.setAttribute("role", "status");
    this.progress = element("progress", { max: 1, hidden: true });
    this.progress.setAttribute("aria-label", phrase("recogniser.progress"));
    this.fetch = button(phrase("recogniser.fetch"), fetchRecogniser);
    this.stop = button(phrase("recogniser.cancel"), stopFetchingRecogniser);
    const buttons = element("div", { className: "buttons" }, [this.fetch, this.stop]);
    this.element = element("div", { className: "panel recogniser", hidden: true }, [this.words, this.progress, buttons]);
  }

  /** Whether the studio has no recogniser, as far as known. */
  set isNeeded(isNeeded) {
    if (isNeeded === this.#isNeeded) return;
    this.#isNeeded = isNeeded;
    this.element.hidden = !isNeeded;
    if (this.#isOpen) this.#look();
  }

  /** To be called when its step is shown. */
  open() {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#look();
  }

  #look() {
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
      if (isLatest()) this.words.textContent = problem.why;
    }
  }

  #draw(now) {
    const { installed, may_fetch: mayFetch, fetching } = now;
    this.element.toggleAttribute("data-offered", mayFetch);
    this.words.textContent = wordsFor(now);
    this.progress.hidden = !fetching;
    if (fetching?.total) this.progress.value = fetching.bytes / fetching.total;
    else this.progress.removeAttribute("value");
    this.fetch.hidden = Boolean(fetching) || !installed || !mayFetch;
    this.stop.hidden = !fetching || !mayFetch;
  }
}

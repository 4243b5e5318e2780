// The card for errors: the failure, its reason and what to do.

import { partsOf } from "../lib/elements.js";
import { Refusal } from "../client/refusal.js";
import { phrase } from "../lib/phrases.js";
import { offerUndo } from "../trash/undo-toast.js";

const LATE = 700; // ms by which Gradio may report key presses late

/** Fires "told" with {what} when it shows an error, and "gone" with the same detail when it closes. */
export class ErrorCard extends EventTarget {
  /** @type {any} */
  #before = null; // the element focused before the card appeared
  /** @type {any} */
  #refusal = null; // the error shown
  #since = 0;

  constructor(element) {
    super();
    this.element = element;
    this.part = partsOf(element);
    this.part("close").addEventListener("click", () => {
      this.hide();
      this.#before?.focus();
    });
  }

  hide() {
    const { what } = this.#refusal ?? {};
    this.#refusal = null;
    this.element.hidden = true;
    if (what) this.dispatchEvent(new CustomEvent("gone", { detail: { what } }));
  }

  /** The studio responds again, or accepts this browser again. */
  reconnected() {
    if (this.#refusal?.isLost || this.#refusal?.status === 401) this.hide();
  }

  /** Hide an error about a request that has changed, except by keys pressed before Speak, which Gradio reports late. */
  changed({ isLate }) {
    if (this.#refusal?.isOfRequest && (!isLate || performance.now() - this.#since > LATE)) this.hide();
  }

  /** Show an error, also in the area shown if that is not the card's. If it is not a Refusal, it is a bug in the page and is thrown again. */
  tell(problem) {
    const known = problem instanceof Refusal;
    this.#since = performance.now();
    const refusal = known ? problem : { what: phrase("speak.pageFailed"), why: String(problem.message ?? problem), advice: phrase("speak.pageFailed.advice") };
    this.#refusal = refusal;
    for (const name of ["what", "why", "advice"]) this.part(name).textContent = refusal[name];
    if (this.element.hidden) this.#before = document.activeElement;
    this.element.hidden = false;
    this.element.scrollIntoView({ block: "nearest" });
    if (!this.element.closest(".area[data-shown]")) offerUndo([refusal.what, refusal.why, refusal.advice].filter(Boolean).join(" "), null);
    if (known && problem.field) this.#mark(/** @type {HTMLElement} */ (document.querySelector(problem.field)));
    this.dispatchEvent(new CustomEvent("told", { detail: { what: refusal.what } }));
    if (!known) throw problem;
  }

  /** Let the field be filled in. @param {HTMLElement} field */
  #mark(field) {
    field.setAttribute("aria-invalid", "true");
    field.addEventListener("input", () => field.removeAttribute("aria-invalid"), { once: true });
    field.focus();
  }

  async attempt(work) {
    try {
      await work();
    } catch (problem) {
      this.tell(problem);
    }
  }
}

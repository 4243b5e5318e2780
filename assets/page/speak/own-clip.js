// The Studio's own clip: waited for while it is on its way, judged as soon as it is there, and kept as a voice if wished.

import { partsOf } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { showAdvice, showNoAdvice } from "../voices/advice.js";
import { Refusal } from "../client/refusal.js";
import { advise } from "../client/voices.js";
import { clipBlob } from "./request.js";
import { phrase } from "../lib/phrases.js";

const SETTLED = 600; // ms without typing before the words are judged again
const PATIENCE = 10_000; // ms for Gradio to begin an upload, or to tell of its end
const UPLOAD = /\/gradio_api\/upload(\?|$)/;

function lost(why) {
  return new Refusal({ what: phrase("speak.clip.lost"), why, advice: phrase("speak.clip.again") });
}

/** Fires "keep" with {clip: Blob, words}. */
export class OwnClip extends EventTarget {
  /** @type {any} */
  #clip = null; // Gradio's file
  #words = "";
  #judgements = new Latest();
  #timer = 0;
  #patience = 0;
  /** @type {PromiseWithResolvers<any> | null} */
  #awaited = null; // {promise, resolve, reject} of the clip that is on its way

  /** recorder: Gradio's field for the clip. */
  constructor(element, recorder) {
    super();
    this.element = element;
    this.part = partsOf(element);
    this.part("keep").addEventListener("click", () => this.#keep());
    element.hidden = true;
    recorder.addEventListener("change", ({ target }) => target.type === "file" && this.#await(), true);
    recorder.addEventListener("drop", () => this.#await(), true);
    recorder.addEventListener("click", ({ target }) => target.closest(".stop-button") && this.#await(), true);
    this.#watchUploads();
  }

  /** The page's fields have changed. */
  consider({ clip, clipText }) {
    const isOther = clip?.path !== this.#clip?.path;
    if (isOther && clip) this.#settle("resolve", clip);
    if (!isOther && clipText === this.#words) return;
    this.#clip = clip;
    this.#words = clipText;
    this.element.hidden = !clip;
    clearTimeout(this.#timer);
    if (isOther) this.#judgements.end();
    if (clip) this.#timer = setTimeout(() => this.#judge(), isOther ? 0 : SETTLED);
  }

  get isOnItsWay() {
    return this.#awaited !== null;
  }

  /** The clip that is on its way, once it is there. Raises Refusal when it got lost, AbortError after signal.abort(). */
  arrived(signal) {
    const aborted = new Promise((_, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
    });
    return Promise.race([this.#awaited?.promise, aborted]);
  }

  /** A clip was recorded or chosen; Gradio reads it and then sends it. */
  #await() {
    if (this.#awaited) return;
    this.#awaited = Promise.withResolvers();
    this.#awaited.promise.catch(() => {}); // nobody may be waiting
    this.#expect(() => this.#settle("reject", lost(phrase("speak.clip.unplayable"))));
  }

  /** What to do when nothing more is heard of it: of a file that it has already, or does not want, Gradio says nothing. */
  #expect(otherwise) {
    clearTimeout(this.#patience);
    this.#patience = setTimeout(otherwise, PATIENCE);
  }

  #settle(how, what) {
    const awaited = this.#awaited;
    this.#awaited = null;
    clearTimeout(this.#patience);
    awaited?.[how](what);
  }

  /** Gradio tells nobody of its uploads, and this page has no others than the clip's. */
  #watchUploads() {
    const ask = window.fetch.bind(window);
    window.fetch = async (target, options) => {
      if (!UPLOAD.test(target instanceof Request ? target.url : String(target))) return ask(target, options);
      this.#await();
      clearTimeout(this.#patience);
      try {
        const response = await ask(target, options);
        if (response.ok) this.#expect(() => (this.#clip ? this.#settle("resolve", this.#clip) : this.#settle("reject", lost(phrase("speak.clip.unreadable")))));
        else this.#settle("reject", lost(response.status === 413 ? phrase("speak.clip.tooLarge") : phrase("speak.clip.answered", { status: String(response.status) })));
        return response;
      } catch (problem) {
        this.#settle("reject", lost(phrase("refusal.lost")));
        throw problem;
      }
    };
  }

  async #judge() {
    const isLatest = this.#judgements.begin();
    try {
      const advice = await advise({ clip: await clipBlob(this.#clip), words: this.#words, cut: null });
      if (isLatest()) showAdvice(this.part("advice"), advice);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (isLatest()) showNoAdvice(this.part("advice"), problem.why);
    }
  }

  async #keep() {
    const words = this.#words;
    const detail = { clip: await clipBlob(this.#clip), words };
    this.dispatchEvent(new CustomEvent("keep", { detail }));
  }
}

// The API area: explains how other programs use the studio, and tests a request.

import { partsOf } from "../lib/elements.js";
import { address } from "../client/address.js";
import { needsKey } from "../client/host.js";
import { Refusal } from "../client/refusal.js";
import { connected } from "../client/requests.js";
import { requestSpeech } from "../client/speech.js";
import { numeral, phrase } from "../lib/phrases.js";

/** Fires "present" {kind} to show the Studio area's current request as code; kind: the dialog's tab, undefined: the last one. */
export class Api extends EventTarget {
  /** @type {AbortController | null} */
  #testing = null; // set while a test is running

  /** request: returns the Studio area's current request, or a promise of it. */
  constructor(element, request) {
    super();
    this.request = request;
    this.part = partsOf(element);
    this.part("base").textContent = address("/v1");
    this.part("endpoint").textContent = address("/v1/audio/speech");
    this.part("keys").textContent = phrase(needsKey ? "api.keys.needed" : "api.keys.none");
    this.part("docs").href = address("/docs");
    this.part("openapi").href = address("/openapi.json");
    this.part("present").addEventListener("click", () => this.#present());
    this.part("test").addEventListener("click", () => this.#test());
    for (const button of element.querySelectorAll("[data-kind]")) button.addEventListener("click", () => this.#present(button.dataset.kind));
  }

  #present(kind) {
    this.dispatchEvent(new CustomEvent("present", { detail: { kind } }));
  }

  /** Send a real request, as a program would; a second press aborts it. */
  async #test() {
    if (this.#testing) return this.#testing.abort();
    const control = (this.#testing = new AbortController());
    this.part("test").textContent = phrase("api.test.stop");
    try {
      await this.#measure(control.signal);
    } catch (problem) {
      if (problem.name === "AbortError") this.#tell(phrase("api.stopped"));
      else if (problem instanceof Refusal) this.#tell(problem.isLost ? `${phrase("api.noAnswer")}: ${problem.why}` : [problem.status, problem.why].filter(Boolean).join(": "));
      else throw problem;
    } finally {
      this.#testing = null;
      this.part("test").textContent = phrase("api.test");
    }
  }

  async #measure(signal) {
    const request = await this.request();
    this.#tell(phrase("api.asking"));
    const start = performance.now();
    const response = await requestSpeech(request, signal);
    const facts = [`${response.status} ${response.headers.get("content-type")}`];
    let bytes = 0;
    for (const reader = response.body.getReader(); ; ) {
      const { done, value } = await connected(() => reader.read());
      if (done) break;
      if (!bytes) facts.push(phrase("api.firstByte", { ms: Math.round(performance.now() - start) }));
      bytes += value.length;
      this.#tell([...facts, phrase("api.bytes", { bytes })].join(" · "));
    }
    const seconds = (performance.now() - start) / 1000;
    this.#tell([...facts, phrase("api.bytes.in", { bytes, seconds: numeral(seconds, 1) }), response.headers.get("x-request-id")].join(" · "));
  }

  #tell(words) {
    this.part("told").textContent = words;
  }
}

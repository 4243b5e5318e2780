// Fields for how the selected parts are spoken: voice and speed, and behind a button character, delivery, tag and pause.

import { health } from "../../client/system.js";
import { labelOf } from "../../client/voices.js";
import { element } from "../../lib/elements.js";
import { numeral, phrase, worded } from "../../lib/phrases.js";
import { closeOnEscape } from "../../lib/typing.js";
import { presets } from "../../speak/sampling-presets.js";
import { bracketedIn, offered } from "../../speak/speech-tags.js";

const UNCHANGED = "-"; // first option of each list, which changes nothing
const PAUSE = /^pause|break/; // tags that do not affect the delivery
const WITHIN = 0.2; // s; set by imports between speech and narration within a paragraph

const PROJECT = "project"; // the project's own sampling

/** The sampling of a delivery, as the API expects it. @param {string} name */
function deliveryOf(name) {
  const { temperature, topP, topK } = name === PROJECT ? { temperature: -1, topP: -1, topK: -1 } : presets()[name];
  return { temperature, top_p: topP, top_k: topK };
}

const deliveryKey = (/** @type {string} */ name) => /** @type {import("../../lib/phrases.js").Key} */ (`speak.delivery.${name}`);

/** Describe a part's speed, delivery, pause and tags where they differ from the project; blank if none do. */
export function directionWords({ text, speed, pause, ...sampling }) {
  const { temperature, top_p: topP, top_k: topK } = sampling;
  const isDelivered = [temperature, topP, topK].some((value) => value !== null);
  const name = Object.keys(presets()).find((preset) => Object.entries(deliveryOf(preset)).every(([field, value]) => sampling[field] === value));
  const values = () => phrase("speak.delivery.values", { temperature: temperature ?? "–", topP: topP ?? "–", topK: topK ?? "–" });
  const tags = [...new Set(bracketedIn(text).filter((tag) => /\p{L}/u.test(tag)))];
  const facts = [
    speed === null ? "" : `${phrase("speak.speed")} ${numeral(speed, 2)}`,
    isDelivered ? (name ? phrase(deliveryKey(name)) : values()) : "",
    pause === null || pause === WITHIN ? "" : `${phrase("project.selection.gap")} ${phrase("time.seconds", { seconds: numeral(pause, 1) })}`,
    ...tags.map((tag) => `[${tag}]`),
  ].filter(Boolean);
  return facts.length ? phrase("part.direction", { facts: facts.join(" · ") }) : "";
}

const option = (value, textContent) => element("option", { value, textContent });

/** Fires "set" with {changes}, as the API expects them for many parts. */
export class Direction extends EventTarget {
  #cast = "";

  /**
   * part: finds the page's elements by name.
   *
   * @param {(name: string) => any} part
   * @param {{ signal: AbortSignal, voices: any[], attempt: (work: Promise<unknown>) => unknown }} project attempt: shows why work failed
   */
  constructor(part, { signal, voices, attempt }) {
    super();
    this.part = part;
    this.#fill("voice", phrase("project.selection.voice"), [option("", phrase("part.voice.project")), ...voices.map((voice) => option(voice.id, labelOf(voice)))]);
    this.#fill("delivery", "–", [PROJECT, ...Object.keys(presets())].map((name) => option(name, phrase(name === PROJECT ? "project.selection.delivery" : deliveryKey(name)))));
    this.#fill("tag", "–", []);
    this.showCast([]);
    const on = (name, work) => part(`selected-${name}`).addEventListener("change", ({ target }) => target.value !== UNCHANGED && target.reportValidity() && this.#set(work(target)), { signal });
    const number = ({ value, valueAsNumber }) => (value ? valueAsNumber : -1);
    on("voice", ({ value }) => ({ voice: value }));
    on("character", ({ value }) => ({ character: value }));
    on("delivery", ({ value }) => deliveryOf(value));
    on("tag", ({ value }) => ({ tags: value ? [value] : [] }));
    on("speed", (field) => ({ speed: number(field) }));
    on("gap", (field) => ({ pause: number(field) }));
    part("direct").addEventListener("click", () => attempt(this.#toggle()), { signal });
    closeOnEscape(part("direct"), part("directing"), signal);
    this.reset();
  }

  /** characters: {id, name}, as returned by the API. */
  showCast(characters) {
    const cast = JSON.stringify(characters.map(({ id, name }) => [id, name]));
    if (cast === this.#cast) return;
    this.#cast = cast;
    this.#fill("character", "–", [option("", phrase("cast.narrator")), ...characters.map(({ id, name }) => option(id, name))]);
    this.part("selected-character").closest("label").hidden = !characters.length;
  }

  /** Clear and close the fields, for an empty selection. */
  reset() {
    this.clear();
    this.#open(false);
  }

  /** Reset all fields, so that the next direction starts without any changes. */
  clear() {
    for (const name of ["voice", "character", "delivery", "tag"]) this.part(`selected-${name}`).value = UNCHANGED;
    for (const name of ["speed", "gap"]) this.part(`selected-${name}`).value = "";
  }

  #open(isOpen) {
    this.part("directing").hidden = !isOpen;
    this.part("direct").setAttribute("aria-expanded", String(isOpen));
  }

  async #toggle() {
    const isOpen = this.part("directing").hidden;
    this.#open(isOpen);
    if (isOpen) this.#offerTags((await health()).engine?.card.tags ?? null);
  }

  /** own: the model's tags; null if unknown. */
  #offerTags(own) {
    const tags = new Set(offered(own).groups.filter(({ isIdle }) => !isIdle).flatMap((group) => group.tags));
    this.#fill("tag", "–", [option("", phrase("project.selection.tag.none")), ...[...tags].filter((tag) => !PAUSE.test(tag)).map((tag) => option(tag, worded(tag) === tag ? tag : `${tag} · ${worded(tag)}`))]);
  }

  #fill(name, unchanged, options) {
    const select = this.part(`selected-${name}`);
    const { value } = select;
    select.replaceChildren(option(UNCHANGED, unchanged), ...options);
    select.value = options.some((choice) => choice.value === value) ? value : UNCHANGED;
  }

  #set(changes) {
    this.dispatchEvent(new CustomEvent("set", { detail: { changes } }));
  }
}

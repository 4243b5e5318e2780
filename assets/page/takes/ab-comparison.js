// Compares takes: a bar with their names, which switches to the next one at the same position.

import { element } from "../lib/elements.js";

/** Fires "switch" with {take} to play, and "change" when the compared takes change. */
export class AbComparison extends EventTarget {
  /** @type {any[]} */
  #takes = [];
  /** @type {any} */
  #heard = null;

  /** takes are tracks with an id. @param {(take: any) => string} nameOf */
  constructor(bar, nameOf = ({ name }) => name) {
    super();
    this.bar = bar;
    this.nameOf = nameOf;
    this.sides = bar.querySelector("[data-part=pair]");
    bar.querySelector("[data-part=done]").addEventListener("click", () => this.set([]));
  }

  get takes() {
    return this.#takes;
  }

  has(take) {
    return this.#takes.includes(take);
  }

  /** Add a take to the pair, or remove it. */
  toggle(take) {
    this.set(this.has(take) ? this.#takes.filter((other) => other !== take) : [...this.#takes, take].slice(-2));
  }

  drop(take) {
    if (this.has(take)) this.toggle(take);
  }

  /** Switch to the next take; the first follows the last. */
  other(take) {
    const { length } = this.#takes;
    if (length > 1) this.#tell("switch", { take: this.#takes[(this.#takes.indexOf(take) + 1) % length] });
  }

  /** Mark the playing take. */
  mark(take) {
    this.#heard = take;
    for (const side of this.sides.children) side.setAttribute("aria-pressed", String(side.dataset.id === take?.id));
  }

  /** Compare these takes; hide the bar for fewer than two. */
  set(takes) {
    this.#takes = takes;
    this.bar.hidden = takes.length < 2;
    this.sides.replaceChildren(...takes.map((take) => this.#side(take)));
    this.#tell("change");
  }

  #side(take) {
    const side = element("button", { type: "button", textContent: this.nameOf(take), onclick: () => this.#tell("switch", { take }) });
    side.dataset.id = take.id;
    side.setAttribute("aria-pressed", String(take.id === this.#heard?.id));
    return side;
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

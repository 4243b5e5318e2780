// Two takes to compare: a bar that names them, and a switch to the other at the same position.

import { element } from "../lib/elements.js";

/** Fires "switch" with {take} to play, and "change" when the pair changes. */
export class AbComparison extends EventTarget {
  /** @type {import("./take.js").Take[]} */
  #takes = [];
  /** @type {import("./take.js").Take | null} */
  #heard = null;

  constructor(bar) {
    super();
    this.bar = bar;
    this.sides = bar.querySelector("[data-part=pair]");
    bar.querySelector("[data-part=done]").addEventListener("click", () => this.#set([]));
  }

  get takes() {
    return this.#takes;
  }

  has(take) {
    return this.#takes.includes(take);
  }

  /** Add a take to the pair, or remove it. */
  toggle(take) {
    this.#set(this.has(take) ? this.#takes.filter((other) => other !== take) : [...this.#takes, take].slice(-2));
  }

  drop(take) {
    if (this.has(take)) this.toggle(take);
  }

  /** Go to the other one of the two. */
  other(take) {
    if (this.#takes.length === 2) this.#tell("switch", { take: this.#takes.find((other) => other !== take) });
  }

  /** Mark the playing take. */
  mark(take) {
    this.#heard = take;
    for (const side of this.sides.children) side.setAttribute("aria-pressed", String(side.dataset.id === take?.id));
  }

  #set(takes) {
    this.#takes = takes;
    this.bar.hidden = takes.length < 2;
    this.sides.replaceChildren(...takes.map((take) => this.#side(take)));
    this.#tell("change");
  }

  #side(take) {
    const side = element("button", { type: "button", textContent: take.name, onclick: () => this.#tell("switch", { take }) });
    side.dataset.id = take.id;
    side.setAttribute("aria-pressed", String(take.id === this.#heard?.id));
    return side;
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

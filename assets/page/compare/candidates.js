// The choice of candidates: up to eight voices with one text, or one voice with up to eight settings. Generates no audio.

import { Refusal } from "../client/refusal.js";
import { labelOf, voices } from "../client/voices.js";
import { element, Keyed, labelled, partsOf, setChildren } from "../lib/elements.js";
import { keepByTab, keptByTab } from "../lib/by-tab.js";
import { phrase } from "../lib/phrases.js";
import { presets } from "../speak/sampling-presets.js";
import { offerUndo } from "../trash/undo-toast.js";

const MOST = 8;
const STORE = "compare-1";
const OWN_CLIP = "clip"; // the user's clip, in place of a voice id

/**
 * A column of the table: the page's field, its heading, and the minimum, maximum and step of its number.
 *
 * @type {[string, import("../lib/phrases.js").Key, number, number, number][]}
 */
const COLUMNS = [
  ["temperature", "speak.temperature", 0, 1.5, 0.05],
  ["topP", "speak.topP", 0.05, 1, 0.05],
  ["topK", "speak.topK", 1, 200, 1],
  ["speed", "speak.speed", 0.5, 2, 0.05],
  ["seed", "speak.seed", 0, 4294967295, 1],
];
const SHORT = { temperature: "temp", topP: "top-p", topK: "top-k", speed: "speed", seed: "seed" };

const SEEDS = 2 ** 31;
const AUDITIONS = 5;

/** Buttons that fill the table: name to rows. Values missing from a row are the Studio's. */
const FILLINGS = {
  deliveries: () => Object.values(presets()),
  temperatures: () => [0.4, 0.6, 0.8, 1.0, 1.2].map((temperature) => ({ temperature })),
  seeds: () => Array.from({ length: AUDITIONS }, () => ({ seed: Math.floor(Math.random() * SEEDS) })),
  speeds: () => [0.85, 1, 1.15].map((speed) => ({ speed })),
};

export function unfit(why, advice) {
  return new Refusal({ what: phrase("compare.nothing"), why, advice });
}

/** Fires "change" when the choice changes. */
export class Candidates extends EventTarget {
  #voices = [];
  #chosen; // ids, in order of choice
  #rows;
  #isTyped = false; // whether numbers of the rows were typed
  #kind;
  #studio; // the Studio's fields, for values not set here
  #chips = new Keyed();

  constructor(root) {
    super();
    this.part = partsOf(root);
    const draft = keptByTab(STORE, {});
    [this.#kind, this.#chosen, this.#rows] = [draft.kind ?? "voices", draft.chosen ?? [], draft.rows ?? []];
    this.part("kinds").addEventListener("click", ({ target }) => target.dataset.kind && this.#take(target.dataset.kind));
    this.part("search").addEventListener("input", () => this.#drawVoices());
    this.part("add").addEventListener("click", () => this.#setRows([...this.#rows, this.#fullRow(this.#rows.at(-1) ?? {})]));
    this.part("columns").append(...[...COLUMNS.map(([, title]) => phrase(title)), ""].map((title) => element(title ? "th" : "td", { textContent: title, scope: "col" })));
    this.part("fillings").append(
      ...Object.entries(FILLINGS).map(([name, rows]) =>
        element("button", { type: "button", className: "chip", textContent: phrase(/** @type {import("../lib/phrases.js").Key} */ (`compare.fill.${name}`)), onclick: ({ target }) => this.#replace(rows().map((row) => this.#fullRow(row)), target.textContent) }),
      ),
    );
  }

  /** Offer the library's current voices; `studio`: the Studio's fields. */
  async open(studio) {
    this.#studio = studio;
    const listed = await voices();
    this.#voices = listed.toSorted((one, other) => Number(other.isFirstChoice) - Number(one.isFirstChoice)); // stable sort
    if (studio.source === "clip" && studio.clip) this.#voices.unshift({ id: OWN_CLIP, name: phrase("speak.clip.yours") });
    const known = new Set(this.#voices.map(({ id }) => id));
    this.#chosen = this.#chosen.filter((id) => known.has(id));
    if (!this.#rows.length) this.#rows = FILLINGS.deliveries().map((row) => this.#fullRow(row));
    this.part("voice").replaceChildren(...this.#voices.map((voice) => element("option", { value: voice.id, textContent: labelOf(voice) })));
    this.part("voice").value = studio.source === "clip" && studio.clip ? OWN_CLIP : studio.voice ?? this.#voices[0]?.id;
    this.#show(this.#kind);
    this.#drawRows();
  }

  /** Compare voices, the Studio's first, then those already chosen or, if fewer than two are, the library's first. */
  takeVoices() {
    const first = this.#studio.source === "clip" && this.#studio.clip ? OWN_CLIP : this.#studio.voice;
    const others = this.#chosen.length > 1 ? this.#chosen : this.#voices.map(({ id }) => id);
    this.#chosen = [first, ...others.filter((id) => id !== first)].slice(0, MOST);
    this.#take("voices");
  }

  get kind() {
    return this.#kind;
  }

  /** [{label, fields}]: the Studio's fields with each candidate's changes. Throws Refusal for unsuitable choices. */
  list(text) {
    const given = this.#kind === "voices" ? this.#chosenVoices() : this.#chosenSettings();
    if (given.length < 2) throw unfit(phrase("compare.atLeastTwo"), phrase(this.#kind === "voices" ? "compare.choose.voices" : "compare.choose.settings", { most: MOST }));
    return given.map(({ label, changes }) => ({ label, fields: { ...this.#studio, text, ...changes } }));
  }

  #chosenVoices() {
    return this.#chosen.map((id) => ({ label: this.#nameOf(id), changes: voiceFields(id) }));
  }

  #chosenSettings() {
    const voice = this.part("voice").value;
    for (const input of this.part("rows").querySelectorAll("input")) {
      const { badInput, rangeOverflow, rangeUnderflow } = input.validity;
      const isMissing = input.value === "" && input.dataset.field !== "seed";
      if (badInput || rangeOverflow || rangeUnderflow || isMissing) {
        input.focus();
        throw unfit(phrase("compare.number", { field: input.getAttribute("aria-label") ?? "", lowest: input.min, highest: input.max }), phrase("compare.number.advice"));
      }
    }
    return this.#rows.map((row) => {
      const words = COLUMNS.filter(([field]) => row[field] !== null).map(([field]) => `${SHORT[field]} ${row[field]}`);
      const { seed, ...drawing } = row;
      const changes = { ...voiceFields(voice), ...drawing, ...(seed === null ? {} : { seed }) };
      return { label: `${this.#nameOf(voice)}, ${words.join(" · ")}`, changes };
    });
  }

  #nameOf(id) {
    return this.#voices.find((voice) => voice.id === id)?.name ?? id;
  }

  /** A row with a number in every column; a seed only if given, as all others share one. */
  #fullRow(row) {
    const { temperature, topP, topK, speed } = this.#studio;
    return { temperature, topP, topK, speed, seed: null, ...row };
  }

  #show(kind) {
    this.#kind = kind;
    for (const button of this.part("kinds").children) button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
    this.part("voices").hidden = kind !== "voices";
    this.part("settings").hidden = kind !== "settings";
    this.#drawVoices();
  }

  #take(kind) {
    this.#show(kind);
    this.#keep();
  }

  #keep() {
    keepByTab(STORE, { kind: this.#kind, chosen: this.#chosen, rows: this.#rows });
    this.dispatchEvent(new Event("change"));
  }

  #choose(id) {
    this.#chosen = this.#chosen.includes(id) ? this.#chosen.filter((other) => other !== id) : [...this.#chosen, id];
    for (const chip of this.part("chips").children) this.#mark(chip);
    this.#count();
    this.#keep();
  }

  #mark(chip) {
    const isChosen = this.#chosen.includes(chip.dataset.voice);
    chip.setAttribute("aria-pressed", String(isChosen));
    chip.disabled = !isChosen && this.#chosen.length >= MOST;
  }

  #count() {
    this.part("count").textContent = phrase("compare.selected", { count: this.#chosen.length, most: MOST });
  }

  #drawVoices() {
    const sought = this.part("search").value.trim().toLowerCase();
    const shown = this.#voices.filter((voice) => labelOf(voice).toLowerCase().includes(sought) || this.#chosen.includes(voice.id));
    setChildren(this.part("chips"), this.#chips.of(shown, (voice, before) => this.#chip(voice, before)));
    this.#count();
  }

  #chip({ id, name }, before) {
    const chip = before ?? element("button", { type: "button", className: "chip", onclick: () => this.#choose(id) });
    if (chip.textContent !== name) chip.textContent = name;
    chip.dataset.voice = id;
    this.#mark(chip);
    return chip;
  }

  #setRows(rows) {
    this.#rows = rows.slice(0, MOST);
    this.#drawRows();
    this.#keep();
  }

  /** Set other rows; those with typed numbers can be brought back. */
  #replace(rows, words) {
    const before = this.#rows;
    this.#setRows(rows);
    if (this.#isTyped) offerUndo(words, () => this.#setRows(before), false);
  }

  #drawRows() {
    this.part("rows").replaceChildren(...this.#rows.map((row, i) => this.#row(row, i)));
    this.part("add").disabled = this.#rows.length >= MOST;
  }

  #row(row, i) {
    const cells = COLUMNS.map(([field, title, min, max, step]) => {
      const input = element("input", { type: "number", min, max, step, value: row[field] ?? "" });
      input.setAttribute("aria-label", phrase("compare.field", { field: phrase(title), row: i + 1 }));
      if (field === "seed") input.placeholder = phrase("compare.shared");
      input.dataset.field = field;
      input.addEventListener("input", () => {
        row[field] = input.value === "" ? null : input.valueAsNumber;
        this.#isTyped = true;
        this.#keep();
      });
      return element("td", {}, [input]);
    });
    const less = element("button", { type: "button", className: "compare-less", textContent: "×", onclick: () => this.#replace(this.#rows.filter((other) => other !== row), less.ariaLabel) });
    return element("tr", {}, [...cells, element("td", {}, [labelled(less, phrase("compare.remove", { row: i + 1 }))])]);
  }
}

function voiceFields(id) {
  return id === OWN_CLIP ? { source: "clip" } : { source: "bundled", voice: id };
}

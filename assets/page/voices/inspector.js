// The inspector of the library: one voice in full, what is said of it, and everything that can be done with it.

import { colourOf, initialOf } from "./initial.js";
import { introduce } from "./introduction.js";
import { Refusal } from "../client/refusal.js";
import { changeVoice, deleteVoice, duplicate, exportAddress, getVoice } from "../client/voices.js";
import { element, partsOf } from "../lib/elements.js";
import { Samples } from "./clips.js";

/** Fires "shown" {voice}, "choose" {id}, "add" {voice}, "changed" {said}, "deleted" {voice} and "closed" {id}. */
export class Inspector extends EventTarget {
  /** @type {any} */
  #voice = null;
  #colour = ""; // blank: drawn from the name

  constructor(area, playButtons) {
    super();
    this.playButtons = playButtons;
    this.root = area.querySelector("#inspector");
    this.part = partsOf(this.root);
    this.samples = new Samples(this.part, playButtons, (work) => this.#do(work));
    this.samples.addEventListener("changed", ({ detail }) => this.#saved(detail.said));
    this.part("close").addEventListener("click", () => this.close());
    this.part("add").addEventListener("click", () => this.#tell("add", { voice: this.#voice }));
    this.part("facts").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#do(() => this.#save());
    });
    this.part("colour").addEventListener("input", ({ target }) => (this.#colour = target.value));
    this.part("colour-drawn").addEventListener("click", () => this.#showColour(""));
    this.root.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation(); // it would stop the Studio's take too
      this.close();
    });
  }

  /** The id of the voice that is shown, null for none. */
  get shown() {
    return this.#voice?.id ?? null;
  }

  /** id: or another name of the voice. Raises Refusal. */
  async show(id) {
    this.#say("");
    await this.#load(id);
    this.root.hidden = false;
    this.root.focus({ preventScroll: true });
  }

  /** Read the voice again: it may have been changed elsewhere. */
  refresh() {
    if (this.#voice) this.#do(() => this.#load(this.#voice.id));
  }

  close() {
    const id = this.shown;
    if (!id) return;
    this.#voice = null;
    this.root.hidden = true;
    this.#tell("closed", { id });
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }

  async #do(work) {
    this.#say("");
    try {
      await work();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (problem.status === 404 && this.#voice) return this.close(); // deleted elsewhere
      this.#say(problem.status === 412 ? "Somebody else changed this voice in the meantime. This is its present state; make your change again." : problem.why);
      if (problem.status === 412) await this.#load(this.#voice.id);
    }
  }

  #say(words, isBad = true) {
    this.part("inspector-said").textContent = words;
    this.part("inspector-said").toggleAttribute("data-bad", isBad);
  }

  async #load(id) {
    const voice = (this.#voice = await getVoice(id));
    await this.samples.show(voice);
    if (this.part("dictionary").dataset.voice !== voice.id) this.part("dictionary").open = false;
    this.part("dictionary").dataset.voice = voice.id;
    this.part("title").replaceChildren(initialOf(voice), voice.name);
    this.#showColour(voice.colour);
    this.part("address").textContent = voice.address;
    this.part("made").textContent = `since ${new Date(voice.created_at * 1000).toLocaleDateString()}${voice.consent ? " · with a consent" : ""}`;
    for (const field of this.root.querySelectorAll("[data-fact]")) {
      const value = voice[field.dataset.fact];
      field.value = Array.isArray(value) ? value.join(", ") : value;
    }
    for (const field of this.root.querySelectorAll("[data-preset]")) field.value = voice.defaults[field.dataset.preset] ?? "";
    this.#offer(voice);
  }

  #showColour(colour) {
    this.#colour = colour;
    this.part("colour").value = colourOf({ name: this.#voice.name, colour });
  }

  #offer(voice) {
    this.#tell("shown", { voice });
    const does = (textContent, label, onclick, className = "plain") => {
      const button = element("button", { type: "button", className, textContent });
      button.setAttribute("aria-label", label);
      button.onclick = () => this.#do(() => onclick(button));
      return button;
    };
    const pack = element("a", { href: exportAddress(voice.id), download: "", className: "plain", textContent: "Export" });
    pack.setAttribute("aria-label", `Export ${voice.name}`);
    this.part("actions").replaceChildren(
      does("Use in the Studio", `Use ${voice.name} in the Studio`, () => this.#tell("choose", { id: voice.slug }), "primary"),
      does("Hear it speak", `Hear ${voice.name} speak`, (button) => this.#introduce(button)),
      does("Duplicate", `Duplicate ${voice.name}`, () => this.#duplicate()),
      pack,
      does("Delete", `Delete ${voice.name}`, () => this.#delete()),
    );
  }

  async #introduce(button) {
    if (button.dataset.playing) return this.playButtons.press(button, null);
    this.#say("Loading …", false);
    const track = await introduce(this.#voice, null);
    this.#say("");
    await this.playButtons.press(button, track);
  }

  async #saved(said) {
    await this.#load(this.#voice.id);
    this.#tell("changed", { said });
  }

  async #save() {
    const told = Object.fromEntries([...this.root.querySelectorAll("[data-fact]")].map((field) => [field.dataset.fact, field.value]));
    const changes = { ...told, tags: told.tags.split(","), colour: this.#colour };
    if (told.slug === this.#voice.slug) delete changes.slug; // a new name brings its own
    const presets = [...this.root.querySelectorAll("[data-preset]")];
    const wrong = presets.find((field) => !field.validity.valid);
    if (wrong) {
      wrong.focus();
      return this.#say(`${wrong.labels[0].textContent.trim()}: ${wrong.validationMessage}`);
    }
    changes.defaults = Object.fromEntries(presets.filter(({ value }) => value !== "").map((field) => [field.dataset.preset, field.valueAsNumber]));
    await changeVoice(this.#voice.id, changes, this.#voice.etag);
    await this.#saved(`Saved “${told.name.trim()}”.`);
  }

  async #duplicate() {
    const { id, name } = this.#voice;
    const copy = await this.#copyOf(id, name);
    this.#tell("changed", { said: `Saved as “${copy.name}”.` });
    await this.#load(copy.id);
  }

  /** The first of "NAME copy", "NAME copy 2" … that is free. */
  async #copyOf(id, name) {
    for (let number = 1; ; number += 1) {
      try {
        return await duplicate(id, number === 1 ? `${name} copy` : `${name} copy ${number}`);
      } catch (problem) {
        if (problem.status !== 409) throw problem;
      }
    }
  }

  async #delete() {
    const voice = this.#voice;
    await deleteVoice(voice.id);
    this.close();
    this.#tell("deleted", { voice });
  }
}

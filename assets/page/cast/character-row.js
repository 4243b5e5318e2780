// A character as a card: name, other names, a line to hear, gender, voice, and other fields behind three dots. One card dragged onto another merges the two.

import { labelOf } from "../client/voices.js";
import { element, icon, labelled, listBox } from "../lib/elements.js";
import { MORE, PLAY } from "../lib/icons.js";
import { phrase } from "../lib/phrases.js";
import { isBeingTyped } from "../lib/typing.js";
import { initialOf } from "../voices/initial.js";
import { foldedName } from "./people.js";

const GENDERS = ["", "female", "male", "neutral"];
const KIND = "application/x-studio-character";

/** The card being dragged by its initial. @type {CharacterRow | null} */
let dragged = null;

/** Fires "change" with the changed fields, "hear" (to play the sample, or else the voice), "lines", "merge" with {into}, "split" with {alias}, and "delete". */
export class CharacterRow extends EventTarget {
  /** @type {any} */
  member = null;
  #isFound;
  /** @type {any[]} */
  #others = [];
  /** The member's values as its fields show them. @type {Record<string, any>} */
  shown = {};

  /** isFound: the character is of a document that is not a project yet: names can be split off, and lines are not listed. */
  constructor(voices, isFound = false) {
    super();
    const tell = (type, detail = {}) => this.dispatchEvent(new CustomEvent(type, { detail }));
    const key = (/** @type {string} */ name) => /** @type {import("../lib/phrases.js").Key} */ (name);
    const option = (value, textContent) => element("option", { value, textContent });
    this.#isFound = isFound;
    this.voices = voices;
    this.face = element("span", { className: "cast-face", title: phrase("cast.drag") });
    this.name = element("input", { className: "cast-name", dir: "auto", maxLength: 200, onfocus: () => this.#enter(), onchange: () => tell("change", { name: this.name.value }) });
    this.aliases = element("span", { className: "quiet", dir: "auto" });
    this.line = element("p", { className: "cast-line", dir: "auto" });
    this.figures = isFound ? element("span", { className: "cast-figures" }) : element("button", { type: "button", className: "cast-figures", onclick: () => tell("lines") });
    this.play = element("button", { type: "button", className: "cast-play", onclick: () => tell("hear") }, [icon(PLAY)]);
    const named = [["", phrase("part.voice.project")], ...voices.map((voice) => [voice.id, labelOf(voice)])];
    this.voice = listBox(named, { className: "cast-voice", onchange: () => tell("change", { voice: this.voice.value }) });
    this.others = element("input", { dir: "auto", onchange: () => tell("change", { aliases: this.others.value.split(",").filter((name) => name.trim()) }) });
    this.gender = element("select", { className: "cast-gender", onchange: () => tell("change", { gender: this.gender.value }) },
      GENDERS.map((gender) => option(gender, phrase(gender ? key(`voice.sounds.${gender}`) : "cast.gender.unknown"))));
    this.narrator = element("input", { type: "checkbox", onchange: () => tell("change", { narrator: this.narrator.checked }) });
    this.into = element("select", { onchange: () => this.into.value && tell("merge", { into: this.into.value }) });
    this.split = element("span", { className: "cast-split" });
    const remove = element("button", { type: "button", className: "plain", textContent: phrase("cast.delete"), onclick: () => tell("delete") });
    const field = (words, control) => element("label", {}, [words, " ", control]);
    this.rare = element("div", { className: "cast-rare", hidden: true }, [
      isFound ? this.split : field(phrase("cast.aliases"), this.others),
      element("label", {}, [this.narrator, " ", phrase("cast.narrates")]), field(phrase("cast.merge"), this.into), ...(isFound ? [] : [remove]),
    ]);
    this.more = element("button", { type: "button", className: "cast-more", onclick: () => this.#open(this.rare.hidden) }, [icon(MORE)]);
    this.element = element("li", {}, [
      this.face, element("div", { className: "cast-names" }, [this.name, this.aliases]), this.more,
      element("div", { className: "cast-said" }, [this.play, this.line]), element("div", { className: "cast-facts" }, [this.figures, this.gender]), this.voice, this.rare,
    ]);
    this.#open(false);
    this.#takeDrops();
  }

  #takeDrops() {
    const over = (event) => {
      if (!dragged || dragged === this || dragged.element.parentElement !== this.element.parentElement || this.member.id === null) return null;
      event.preventDefault();
      return dragged;
    };
    const mark = (isOver) => this.element.toggleAttribute("data-over", isOver);
    this.face.addEventListener("dragstart", (event) => {
      dragged = this;
      event.dataTransfer.setData(KIND, this.member.id);
      event.dataTransfer.effectAllowed = "move";
      event.dataTransfer.setDragImage(this.element, 20, 20);
    });
    this.face.addEventListener("dragend", () => (dragged = null));
    this.element.addEventListener("dragover", (event) => mark(Boolean(over(event))));
    this.element.addEventListener("dragleave", () => mark(false));
    this.element.addEventListener("drop", (event) => {
      const from = over(event);
      mark(false);
      from?.dispatchEvent(new CustomEvent("merge", { detail: { into: this.member.id } }));
    });
  }

  #enter() {
    if (this.element.closest("[data-right=read]")) this.name.readOnly = true;
  }

  #open(isOpen) {
    if (isOpen) this.#offerOthers();
    this.rare.hidden = !isOpen;
    this.more.setAttribute("aria-expanded", String(isOpen));
  }

  /** Listed when they are wanted: a cast of a thousand would otherwise be a million options. */
  #offerOthers() {
    const names = this.#others.filter(({ id }) => id !== this.member.id).map((other) => element("option", { value: other.id, textContent: other.name }));
    this.into.replaceChildren(element("option", { value: "", textContent: phrase("cast.merge.choose") }), ...names);
  }

  /** Show a character, except in a field being typed in. others: the characters to merge with; mark: as in the reading view. */
  show(member, others, mark) {
    const isNarrator = member.id === null;
    const name = isNarrator ? phrase("cast.narrator") : member.name;
    this.member = member;
    this.#others = others;
    const fill = (/** @type {string} */ key, /** @type {any} */ field, /** @type {() => void} */ set) => {
      if (isBeingTyped(field) || field.hasAttribute("aria-invalid")) return;
      set();
      this.shown[key] = member[key];
    };
    const face = `${mark} ${name}`;
    if (this.face.dataset.shown !== face) this.face.replaceChildren(initialOf({ name }, mark));
    this.face.dataset.shown = face;
    this.face.draggable = !isNarrator;
    fill("name", this.name, () => (this.name.value = name));
    this.name.readOnly = isNarrator;
    this.name.setAttribute("aria-label", phrase("cast.name", { name }));
    this.aliases.textContent = member.aliases.filter((alias) => foldedName(alias) !== foldedName(name)).join(", ");
    this.line.textContent = member.sample?.text ?? "";
    this.figures.textContent = [phrase("cast.lines", { count: member.lines }), ...(member.words === undefined ? [] : [phrase("cast.words", { count: member.words })])].join(" · ");
    this.figures.hidden = !Number.isFinite(member.lines);
    if (!this.#isFound) Object.assign(this.figures, { title: phrase("cast.show", { name }), disabled: !member.lines });
    this.play.setAttribute("aria-label", phrase("cast.hear", { name }));
    labelled(this.voice, phrase("speak.cast.voice", { name }));
    const voice = this.voices.find(({ id, name: words }) => [id, words.toLowerCase()].includes((member.voice ?? "").toLowerCase()));
    fill("voice", this.voice, () => this.voice.choose(voice?.id ?? ""));
    this.voice.disabled = member.narrator && !isNarrator;
    this.more.hidden = this.gender.hidden = isNarrator;
    labelled(this.more, phrase("cast.more", { name }));
    labelled(this.gender, phrase("cast.gender.of", { name }));
    fill("aliases", this.others, () => (this.others.value = member.aliases.join(", ")));
    fill("gender", this.gender, () => (this.gender.value = member.gender));
    this.narrator.checked = member.narrator;
    if (this.#isFound) this.split.replaceChildren(...member.aliases.map((alias) => this.#splitter(alias)));
    if (!this.rare.hidden && document.activeElement !== this.into) this.#offerOthers();
  }

  /** Keep what was typed here and refused because of another's change, which typing again replaces. @param {object} changes */
  hold(changes) {
    for (const [name, field] of Object.entries({ name: this.name, aliases: this.others })) {
      if (!(name in changes)) continue;
      field.setAttribute("aria-invalid", "true");
      field.addEventListener("change", () => field.removeAttribute("aria-invalid"), { once: true });
      delete this.shown[name];
    }
  }

  #splitter(alias) {
    const split = () => this.dispatchEvent(new CustomEvent("split", { detail: { alias } }));
    return element("button", { type: "button", className: "plain", textContent: phrase("cast.split", { name: alias }), onclick: split });
  }
}

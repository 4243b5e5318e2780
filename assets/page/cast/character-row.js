// A character of a project as a row: name, other names, lines, a sample, the voice, and other fields behind three dots.

import { labelOf } from "../client/voices.js";
import { element, icon, labelled } from "../lib/elements.js";
import { MORE, PLAY } from "../lib/icons.js";
import { phrase } from "../lib/phrases.js";

const GENDERS = ["", "female", "male", "neutral"];

/** Fires "change" with the changed fields, "hear" (to play the sample, or else the voice), "lines", "merge" with {into}, and "delete". */
export class CharacterRow extends EventTarget {
  /** @type {any} */
  member = null;

  constructor(voices) {
    super();
    const tell = (type, detail = {}) => this.dispatchEvent(new CustomEvent(type, { detail }));
    const key = (/** @type {string} */ name) => /** @type {import("../lib/phrases.js").Key} */ (name);
    const option = (value, textContent) => element("option", { value, textContent });
    this.voices = voices;
    this.name = element("input", { className: "cast-name", dir: "auto", maxLength: 200, onfocus: () => this.#enter(), onchange: () => tell("change", { name: this.name.value }) });
    this.aliases = element("span", { className: "quiet", dir: "auto" });
    this.figures = element("button", { type: "button", className: "cast-figures", onclick: () => tell("lines") });
    this.play = element("button", { type: "button", className: "cast-play", onclick: () => tell("hear") }, [icon(PLAY)]);
    this.voice = element("select", { onchange: () => tell("change", { voice: this.voice.value }) }, [
      option("", phrase("part.voice.project")), ...voices.map((voice) => option(voice.id, labelOf(voice))),
    ]);
    this.others = element("input", { dir: "auto", onchange: () => tell("change", { aliases: this.others.value.split(",").filter((name) => name.trim()) }) });
    this.gender = element("select", { onchange: () => tell("change", { gender: this.gender.value }) },
      GENDERS.map((gender) => option(gender, phrase(gender ? key(`voice.sounds.${gender}`) : "cast.gender.unknown"))));
    this.narrator = element("input", { type: "checkbox", onchange: () => tell("change", { narrator: this.narrator.checked }) });
    this.into = element("select", { onchange: () => this.into.value && tell("merge", { into: this.into.value }) });
    const remove = element("button", { type: "button", className: "plain", textContent: phrase("cast.delete"), onclick: () => tell("delete") });
    const field = (words, control) => element("label", {}, [words, " ", control]);
    this.rare = element("div", { className: "cast-rare", hidden: true }, [
      field(phrase("cast.aliases"), this.others), field(phrase("cast.gender"), this.gender),
      element("label", {}, [this.narrator, " ", phrase("cast.narrates")]), field(phrase("cast.merge"), this.into), remove,
    ]);
    this.more = element("button", { type: "button", className: "cast-more", onclick: () => this.#open(this.rare.hidden) }, [icon(MORE)]);
    this.element = element("li", {}, [
      element("div", { className: "cast-names" }, [this.name, this.aliases]), this.figures, this.play, this.voice, this.more, this.rare,
    ]);
    this.#open(false);
  }

  #enter() {
    if (this.element.closest("[data-right=read]")) this.name.readOnly = true;
  }

  #open(isOpen) {
    this.rare.hidden = !isOpen;
    this.more.setAttribute("aria-expanded", String(isOpen));
  }

  /** Show a character, except in a field being edited. others: the characters to merge with. */
  show(member, others) {
    const isNarrator = member.id === null;
    const name = isNarrator ? phrase("cast.narrator") : member.name;
    this.member = member;
    const fill = (/** @type {any} */ field, /** @type {string} */ value) => {
      if (document.activeElement !== field) field.value = value;
    };
    fill(this.name, name);
    this.name.readOnly = isNarrator;
    this.name.setAttribute("aria-label", phrase("cast.name", { name }));
    this.aliases.textContent = member.aliases.join(", ");
    this.figures.textContent = `${phrase("cast.lines", { count: member.lines })} · ${phrase("cast.words", { count: member.words })}`;
    this.figures.title = phrase("cast.show", { name });
    this.figures.disabled = !member.lines;
    this.play.title = member.sample?.text ?? "";
    this.play.setAttribute("aria-label", phrase("cast.hear", { name }));
    labelled(this.voice, phrase("speak.cast.voice", { name }));
    const voice = this.voices.find(({ id, name: words }) => [id, words.toLowerCase()].includes((member.voice ?? "").toLowerCase()));
    fill(this.voice, voice?.id ?? "");
    this.voice.disabled = member.narrator && !isNarrator;
    this.more.hidden = isNarrator;
    labelled(this.more, phrase("cast.more", { name }));
    fill(this.others, member.aliases.join(", "));
    fill(this.gender, member.gender);
    this.narrator.checked = member.narrator;
    if (document.activeElement === this.into) return;
    const names = others.map((other) => element("option", { value: other.id, textContent: other.name }));
    this.into.replaceChildren(element("option", { value: "", textContent: phrase("cast.merge.choose") }), ...names);
  }
}

// The filter of the library's list: gender, accent, language and tags, as far as any voice has them.

import { element, setChildren } from "../lib/elements.js";
import { LANGUAGE, phrase, worded } from "../lib/phrases.js";

/** @type {Record<string, import("../lib/phrases.js").Key>} */
const CHOICES = { gender: "voice.gender", accent: "voice.accent", language: "voice.language" };
/** @type {Record<string, import("../lib/phrases.js").Key>} */
const GENDERS = { female: "voice.gender.female", male: "voice.gender.male", neutral: "voice.gender.neutral" };
const languages = new Intl.DisplayNames(LANGUAGE, { type: "language" });

function inWords(language) {
  try {
    return languages.of(language) ?? language;
  } catch (problem) {
    if (problem instanceof RangeError) return language; // the library accepts anything shaped like a language tag
    throw problem;
  }
}

const titled = (word) => word[0].toLocaleUpperCase() + word.slice(1);

/** Fires "change" when the filter changes. */
export class VoiceFilter extends EventTarget {
  #tags = new Set();

  constructor(part) {
    super();
    this.part = part;
    for (const name of Object.keys(CHOICES)) part(name).addEventListener("change", () => this.#changed());
  }

  /** {gender, accent, language, tags}, blank where any will do. */
  get wishes() {
    const chosen = Object.keys(CHOICES).map((name) => [name, this.part(name).value]);
    return { ...Object.fromEntries(chosen), tags: [...this.#tags] };
  }

  get isOn() {
    const { tags, ...chosen } = this.wishes;
    return tags.length > 0 || Object.values(chosen).some(Boolean);
  }

  /** Offer the values found in the whole library; drop choices that no voice matches any longer. */
  offer({ tags, genders, accents, languages: spoken }) {
    this.#offerTags(tags);
    this.#offerChoice("gender", genders.map((gender) => [gender, gender in GENDERS ? phrase(GENDERS[gender]) : titled(gender)]));
    this.#offerChoice("accent", accents.map((accent) => [accent, worded(accent)]));
    const known = new Set(spoken.map((language) => language.split("-")[0].toLowerCase())); // of any region
    this.#offerChoice("language", [...known].map((language) => [language, inWords(language)]));
  }

  #offerChoice(name, offered) {
    const select = this.part(name);
    const { value } = select;
    const options = [["", phrase(CHOICES[name])], ...offered].map(([id, textContent]) => element("option", { value: id, textContent }));
    select.replaceChildren(...options);
    select.value = offered.some(([id]) => id === value) ? value : "";
    select.hidden = offered.length === 0;
  }

  #offerTags(tags) {
    this.#tags = new Set([...this.#tags].filter((tag) => tags.includes(tag)));
    const present = new Map([...this.part("tags").children].map((button) => [button.value, button]));
    setChildren(this.part("tags"), tags.map((tag) => present.get(tag) ?? this.#tag(tag)));
    for (const button of this.part("tags").children) button.setAttribute("aria-pressed", String(this.#tags.has(button.value)));
  }

  #tag(tag) {
    const button = element("button", { type: "button", className: "tag", value: tag, textContent: worded(tag) });
    button.onclick = () => {
      if (!this.#tags.delete(tag)) this.#tags.add(tag);
      this.#changed();
    };
    return button;
  }

  #changed() {
    this.dispatchEvent(new Event("change"));
  }
}

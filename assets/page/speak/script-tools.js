// The script's tools: inserts tags at the caret and shows a line of facts and warnings. Sends nothing.

import { duration } from "../lib/time.js";
import { typeInto } from "../lib/typing.js";
import { expectedSeconds } from "./request.js";
import { BRACKETS, bracketedIn, KNOWN, offered } from "./speech-tags.js";
import { LANGUAGE, phrase, worded } from "../lib/phrases.js";

const MOST_CHARACTERS = 16384; // the API's limit for a request
const PART_BYTES = 300; // the API splits longer scripts at sentence ends
const PAUSE = /^pause:\s*\d{1,5}(\.\d{1,3})?\s*(ms|s)$/i;
const CITATION = /^(\d{1,3}(\s?[,;–-]\s?\d{1,3})*|\^\S{1,40}|(note|n) \d{1,3}|(citation|clarification) needed)$/i;

/** @type {{ tags: string[] | null, languages: string[] }} */
const NO_CARD = { tags: null, languages: [] };

/**
 * Return facts and warnings about a script, cut off after `cutAfter` seconds (0: never): {facts, notes}, each note {grave, words}.
 * card: the model's; language: the script's probable language, null if unknown.
 *
 * @param {string} text
 * @param {number} cutAfter
 * @param {{ tags: string[] | null, languages: string[] }} card
 * @param {string | null} language
 */
export function lint(text, cutAfter, card = NO_CARD, language = null) {
  const length = [...text].length;
  const seconds = expectedSeconds(text);
  const facts = text.trim() ? [phrase("speak.lint.characters", { count: length }), phrase("speak.lint.about", { duration: duration(seconds) })] : [];
  const isTag = (/** @type {string} */ name) => !card.tags || PAUSE.test(name) || card.tags.includes(name.toLowerCase().replace(/\s+/g, " "));
  const bracketed = bracketedIn(text);
  const tags = bracketed.filter(isTag);
  if (tags.length) facts.push(phrase("speak.lint.tags", { count: tags.length }));
  const parts = Math.ceil(new TextEncoder().encode(text).length / PART_BYTES);
  if (parts > 1) facts.push(phrase("speak.lint.parts", { count: parts }));
  const notes = [];
  const note = (words, grave = false) => notes.push({ words, grave });
  if (length > MOST_CHARACTERS) note(phrase("speak.lint.tooMany", { count: length - MOST_CHARACTERS, most: MOST_CHARACTERS }), true);
  if (text.lastIndexOf("[") > text.lastIndexOf("]")) note(phrase("speak.lint.open"), true);
  const words = text.replace(BRACKETS, (_, escaped, name) => (!escaped && isTag(name.trim()) ? "" : name));
  if (tags.length && !words.trim()) note(phrase("speak.lint.onlyTags"), true);
  if (cutAfter > 0 && seconds > cutAfter) note(phrase("speak.lint.cut", { seconds: cutAfter }), true);
  if (text.trim() && !/[\p{L}\p{N}]/u.test(text)) note(phrase("speak.lint.noLetters"), true);
  if (language && card.languages.length && !card.languages.includes(language)) {
    note(phrase("speak.lint.language", { languages: card.languages.map(named).join(", "), language: named(language) }), true);
  }
  const listed = (/** @type {string[]} */ names) => [...new Set(names)].map((name) => `[${name}]`).join(", ");
  const others = bracketed.filter((name) => !isTag(name));
  const [marks, readAloud] = [others.filter((name) => CITATION.test(name)), others.filter((name) => !CITATION.test(name))];
  if (marks.length) note(phrase("speak.lint.citations", { tags: listed(marks) }));
  if (readAloud.length) note(phrase("speak.lint.notOfModel", { tags: listed(readAloud) }));
  const unknown = card.tags ? [] : tags.filter((tag) => !PAUSE.test(tag) && !KNOWN.has(tag.toLowerCase()));
  if (unknown.length) note(phrase("speak.lint.unknown", { tags: listed(unknown) }));
  return { facts, notes };
}

const LANGUAGES = new Intl.DisplayNames(LANGUAGE, { type: "language" });
const named = (/** @type {string} */ code) => LANGUAGES.of(code) ?? code;

/** Insert a tag before the selection, with the necessary spaces. Other parts of the page see it as typing. */
export function insertTag(area, tag) {
  const { selectionStart: start, selectionEnd: end, value } = area;
  const before = start === 0 || /\s$/.test(value.slice(0, start)) ? "" : " ";
  const after = /^\s/.test(value.slice(start)) ? "" : " ";
  const written = `${before}[${tag}]${after}`;
  typeInto(area, start, start, written);
  const caret = start + written.length;
  if (start === end) area.setSelectionRange(caret, caret);
  else area.setSelectionRange(caret, end + written.length);
}

/** Fires "project" when a script too long for a take is to become a long-form project. */
export class ScriptTools extends EventTarget {
  #cutAfter = 0;
  #card = NO_CARD;
  #shown = "[]"; // the displayed notes as JSON
  #offered = offered(null);
  /** @type {string | null} */
  #language = null;

  /** hasProjects: whether the studio supports long-form projects. */
  constructor(area, element, hasProjects) {
    super();
    this.area = area;
    this.hasProjects = hasProjects;
    this.panel = element.querySelector("#tag-panel");
    this.facts = element.querySelector("[data-part=facts]");
    this.notes = element.querySelector("[data-part=notes]");
    this.project = element.querySelector("[data-part=project]");
    this.project.hidden = true;
    this.project.addEventListener("click", () => this.dispatchEvent(new CustomEvent("project")));
    this.search = element.querySelector("[data-part=search]");
    this.groups = element.querySelector("[data-part=groups]");
    const row = element.querySelector("[data-part=often]");
    this.toggle = Object.assign(document.createElement("button"), { type: "button", textContent: phrase("speak.tags.all"), className: "tag-more" });
    this.toggle.setAttribute("aria-expanded", "false");
    this.toggle.setAttribute("aria-controls", "tag-panel");
    this.toggle.addEventListener("click", () => this.#open(this.panel.hidden));
    this.often = row;
    this.search.addEventListener("input", () => this.#list());
    this.search.addEventListener("keydown", (event) => this.#key(event));
    this.panel.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      this.#open(false);
      this.toggle.focus();
    });
    this.panel.addEventListener("focusout", ({ relatedTarget }) => {
      const staysBy = [this.panel, this.toggle, this.area]; // each inserted tag moves focus to the script
      if (relatedTarget && !staysBy.some((holder) => holder.contains(relatedTarget))) this.#open(false);
    });
    document.addEventListener("pointerdown", ({ target }) => {
      if (!this.panel.contains(target) && target !== this.toggle) this.#open(false);
    });
    area.addEventListener("input", () => this.say());
    this.#offer();
    this.say();
  }

  /** The model's card: {tags, languages}. */
  set card(card) {
    if (JSON.stringify(card) === JSON.stringify(this.#card)) return;
    this.#card = card;
    this.#offered = offered(card.tags);
    this.#offer();
    this.say();
  }

  /** The script's probable language as a code; null if unknown. */
  set language(code) {
    this.#language = code;
    this.say();
  }

  set cutAfter(seconds) {
    this.#cutAfter = seconds;
    this.say();
  }

  say() {
    const { facts, notes } = lint(this.area.value, this.#cutAfter, this.#card, this.#language);
    this.project.hidden = !this.hasProjects || [...this.area.value].length <= MOST_CHARACTERS;
    this.facts.textContent = facts.join(" · "); // change with every key press: should not be read aloud
    const content = JSON.stringify(notes);
    if (content === this.#shown) return;
    this.#shown = content;
    this.notes.replaceChildren(...notes.map(({ words, grave }) => Object.assign(document.createElement("span"), { textContent: words, className: grave ? "grave" : "" })));
  }

  #chip(tag) {
    const chip = Object.assign(document.createElement("button"), { type: "button", className: "tag", textContent: tag, title: worded(tag) });
    chip.setAttribute("aria-label", phrase("speak.tags.insert", { tag }));
    chip.addEventListener("click", () => insertTag(this.area, tag));
    return chip;
  }

  #offer() {
    this.often.replaceChildren(...this.#offered.often.map((tag) => this.#chip(tag)), this.toggle);
    this.#list();
  }

  #open(open) {
    if (this.panel.hidden === !open) return;
    this.panel.hidden = !open;
    this.toggle.setAttribute("aria-expanded", String(open));
    if (open) this.search.focus();
  }

  #list() {
    const query = this.search.value.trim().toLowerCase();
    const groups = this.#offered.groups
      .map((group) => ({ ...group, tags: group.tags.filter((tag) => tag.includes(query)) }))
      .filter(({ tags }) => tags.length);
    const isKnown = this.#offered.groups.some(({ tags }) => tags.includes(query));
    if (query && !isKnown) groups.push({ name: phrase("speak.tags.own"), tags: [query.replace(/[[\]]/g, "")], isIdle: false });
    this.groups.replaceChildren(
      ...groups.map(({ name, tags, isIdle }) => {
        const group = Object.assign(document.createElement("div"), { className: isIdle ? "tag-group idle" : "tag-group" });
        const title = Object.assign(document.createElement("h2"), { textContent: name });
        const row = Object.assign(document.createElement("div"), { className: "tag-row" });
        row.append(...tags.map((tag) => this.#chip(tag)));
        group.append(title, row);
        return group;
      }),
    );
  }

  /** Enter inserts the first tag found; Ctrl+Enter is the page's shortcut for Speak. */
  #key(event) {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.groups.querySelector(".tag")?.click();
  }
}

// The reading view of a project: a chapter as continuous prose, with each character's words marked.

import { markOf, marksOf } from "../cast/people.js";
import { readCast, readOutline, readParts } from "../client/projects.js";
import { Refusal } from "../client/refusal.js";
import { element } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { phrase } from "../lib/phrases.js";
import { isScrolling } from "../shell/opened.js";

const AT_ONCE = 200; // parts per request
const SEEN = 0.7; // share of the window in which the playing part is read on without scrolling; the player is below

/**
 * Group parts into paragraphs of pieces of text. A part begins a paragraph unless it continues the one before it, and may have several.
 *
 * @param {any[]} parts
 * @returns {{ isTitle: boolean, pieces: { part: any, text: string }[] }[]}
 */
export function paragraphsOf(parts) {
  const all = [];
  for (const part of parts) {
    const isTitle = Boolean(part.chapter) && part.text.trim() === part.chapter.trim();
    for (const [i, text] of part.text.split(/\n{2,}/).entries()) {
      if (i || !part.continues || !all.length) all.push({ isTitle, pieces: [] });
      all[all.length - 1].pieces.push({ part, text });
    }
  }
  return all;
}

export class Prose {
  #looks = new Latest();
  #isOpen = false;
  /** Elements with their part as `of`. @type {any[]} */
  #pieces = [];
  #words = ""; // the text shown, as JSON

  /** @param {HTMLElement} container @param {any} context the ProjectContext of panels.js */
  constructor(container, context) {
    this.context = context;
    this.chapter = element("select", { ariaLabel: phrase("project.chapters"), onchange: () => this.#attempt(this.#show()) });
    this.legend = element("ul", { className: "prose-legend", ariaLabel: phrase("cast.title") });
    this.direct = element("button", { type: "button", className: "plain", hidden: true, onclick: () => context.direct(this.#selected) });
    this.told = element("p", { className: "quiet" });
    this.told.setAttribute("role", "status");
    this.text = element("article", { className: "prose-text", dir: "auto", onclick: ({ target }) => this.#press(target), onkeydown: (event) => this.#key(event) });
    container.append(element("div", { className: "long-bar prose-bar" }, [this.chapter, this.direct]), this.legend, element("p", { className: "quiet", textContent: phrase("prose.about") }), this.told, this.text);
    const { signal, playback: { nowPlaying } } = context;
    document.addEventListener("selectionchange", () => this.#offerDirection(), { signal });
    nowPlaying.addEventListener("state", () => this.#mark(), { signal });
    nowPlaying.addEventListener("show", () => {
      this.#mark();
      if (this.#isOpen && !isScrolling() && getSelection()?.isCollapsed !== false) this.#attempt(this.follow());
    }, { signal });
  }

  open() {
    this.#isOpen = true;
    this.#attempt(this.#read());
  }

  close() {
    this.#isOpen = false;
    this.#looks.end();
  }

  /** Show the playing part, in its chapter, unless it is in view. Throws Refusal. */
  async follow() {
    const { heard } = this.context.playback;
    const at = this.chapters?.findLastIndex(({ position }) => position <= heard?.position) ?? -1;
    if (at < 0) return;
    if (at !== this.chapter.selectedIndex) {
      this.chapter.selectedIndex = at;
      await this.#show();
    }
    const piece = this.#pieces.find(({ of }) => of.id === heard.part);
    const { top, bottom } = piece?.getBoundingClientRect() ?? { top: 0, bottom: 0 };
    if (top < 0 || bottom > innerHeight * SEEN) piece?.scrollIntoView({ block: "center" });
  }

  /** @param {Promise<unknown>} work */
  async #attempt(work) {
    try {
      this.told.textContent = "";
      await work;
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.told.textContent = problem.why;
    }
  }

  /** Show the playing part, or else the chapter that was shown before, or the first. */
  async #read() {
    if (await this.#look()) await this.follow();
  }

  /** Show the chapter as it is by now: parts may have been spoken, or changed by somebody else. Text in which words are selected stays. */
  refresh() {
    this.#attempt(this.#look());
  }

  /** Read and show chapters, cast and text; false if that is outdated. Throws Refusal. */
  async #look() {
    const isLatest = this.#looks.begin();
    const [chapters, { data: characters }] = await Promise.all([readOutline(this.context.id), readCast(this.context.id)]);
    if (!isLatest()) return false;
    const [before, titles] = [Math.max(0, this.chapter.selectedIndex), chapters.map(({ title }) => title || phrase("project.chapter.none"))];
    this.chapters = chapters;
    this.characters = characters;
    const isSame = titles.join("\n") === [...this.chapter.options].map(({ textContent }) => textContent).join("\n");
    if (!isSame) this.chapter.replaceChildren(...titles.map((textContent) => element("option", { textContent })));
    this.chapter.selectedIndex = Math.min(before, chapters.length - 1);
    this.chapter.hidden = chapters.length < 2;
    await this.#show();
    return true;
  }

  async #show() {
    const isLatest = this.#looks.begin();
    const { position, parts: { total } } = this.chapters[Math.max(0, this.chapter.selectedIndex)];
    const parts = [];
    while (parts.length < total) {
      const { data } = await readParts(this.context.id, position + parts.length, Math.min(AT_ONCE, total - parts.length));
      if (!isLatest()) return;
      if (!data.length) break; // deleted meanwhile
      parts.push(...data);
    }
    this.#draw(parts);
  }

  #draw(parts) {
    const marks = marksOf(this.characters);
    const name = (character) => this.characters.find(({ id }) => id === character)?.name ?? phrase("cast.narrator");
    const paragraphs = paragraphsOf(parts);
    const words = JSON.stringify(paragraphs.map(({ isTitle, pieces }) => [isTitle, pieces.map(({ part, text }) => [part.id, text])]));
    if (words !== this.#words && this.#selected.length) return;
    if (words !== this.#words) this.#write(paragraphs);
    this.#words = words;
    for (const [i, { part }] of paragraphs.flatMap(({ pieces }) => pieces).entries()) { // in place: a press may be under way
      const piece = Object.assign(this.#pieces[i], { of: part, title: name(part.character) });
      piece.setAttribute("aria-disabled", String(!part.chosen));
      piece.dataset.mark = markOf(marks, part.character);
    }
    const here = [...new Set(parts.map(({ character }) => character).filter(Boolean))].sort((one, other) => Number(markOf(marks, one)) - Number(markOf(marks, other)));
    this.legend.replaceChildren(...here.map((character) => {
      const sample = element("span", { textContent: name(character) });
      sample.dataset.mark = markOf(marks, character);
      return element("li", {}, [sample]);
    }));
    this.#mark();
  }

  /** Put the text into the page, with the focus on the part that had it. */
  #write(paragraphs) {
    const focused = /** @type {any} */ (document.activeElement)?.of?.id;
    this.#pieces = [];
    this.text.replaceChildren(...paragraphs.map(({ isTitle, pieces }) => element(isTitle ? "h2" : "p", {}, pieces.flatMap(({ part, text }) => {
      const piece = element("span", { textContent: text, tabIndex: this.#pieces.length ? -1 : 0, of: part });
      piece.setAttribute("role", "button");
      piece.dataset.id = part.id;
      this.#pieces.push(piece);
      return [piece, " "];
    }))));
    if (focused) this.#pieces.find(({ of }) => of.id === focused)?.focus({ preventScroll: true });
  }

  /** Play from a part on to the end, unless its words have just been selected. */
  #press(target) {
    const piece = target.closest("[data-id]");
    if (!piece?.of.chosen || !(getSelection()?.isCollapsed ?? true)) return;
    this.#attempt(this.context.playback.play(this.context.project(), piece.of, true));
  }

  /** Arrow keys move from part to part, as only one of them is a tab stop; Enter and Space press it. */
  #key(event) {
    const at = this.#pieces.indexOf(event.target);
    const step = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[event.key];
    if (at < 0 || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    if (step) {
      const next = this.#pieces[at + step];
      if (!next) return;
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    } else if (event.key === "Enter" || event.key === " ") {
      this.#press(event.target);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation(); // Space plays and pauses elsewhere
  }

  /** The parts in the browser's selection. */
  get #selected() {
    const selection = getSelection();
    if (!selection || selection.isCollapsed || !this.text.contains(selection.anchorNode)) return [];
    const pieces = this.#pieces.filter((piece) => selection.containsNode(piece, true));
    return [...new Set(pieces.map(({ of }) => of))];
  }

  #offerDirection() {
    const count = this.#selected.length;
    this.direct.hidden = !count || this.context.project()?.right === "read";
    if (count) this.direct.textContent = phrase("prose.direct", { count });
  }

  /** Mark the part that is playing. */
  #mark() {
    const { heard } = this.context.playback;
    for (const piece of this.#pieces) piece.toggleAttribute("data-playing", piece.of.id === heard?.part);
    this.context.marked();
  }
}

/** @param {HTMLElement} container @param {any} context the ProjectContext of panels.js */
export const mountProse = (container, context) => new Prose(container, context);

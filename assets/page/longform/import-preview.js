// The preview of a document before its import: choice of chapters, title, speakers and their voices, and splitting into parts.

import { folded, speakers, voiceNamed } from "../speak/dialogue.js";
import { createProject, findSpeakers, previewCover, previewDocument } from "../client/projects.js";
import { labelOf } from "../client/voices.js";
import { element, icon, labelled } from "../lib/elements.js";
import { PLAY } from "../lib/icons.js";
import { Latest } from "../lib/latest.js";
import { once, onceMore } from "../lib/once.js";
import { duration } from "../lib/time.js";
import { phrase } from "../lib/phrases.js";

const TEXTS = /\.(txt|text|md|markdown|srt|vtt)$/i; // also read here, to find names in them
const MOST_NAMES = 24;
const MOST_SHOWN = 60; // characters; the others get their proposed voices
const MOST_CAST = 1000; // characters per request

/** Fires "read" once a document is shown, "left" when the preview is closed, and "imported" with {id}. */
export class ImportPreview extends EventTarget {
  #reads = new Latest();
  /** @type {File | string | null} */
  #source = null;
  /** As returned by the API. @type {any} */
  #preview = null;
  #voices = [];
  #finds = new Latest();
  #isFinding = false;
  /** Names that precede a colon in the text. @type {string[]} */
  #names = [];
  /** Voices chosen by hand, by folded name. @type {Map<string, string>} */
  #chosen = new Map();
  /** Proposed voices of characters that are not shown, by name. @type {Record<string, string>} */
  #unshown = {};

  /**
   * part: finds the page's elements by name; run: runs work and shows why it failed; say: shows the status; hear: plays a voice.
   *
   * @param {(name: string) => any} part
   * @param {{ run: (work: () => Promise<unknown>) => Promise<void>, say: (words: string) => void, hear: (voice: any) => unknown }} of
   */
  constructor(part, { run, say, hear }) {
    super();
    this.part = part;
    this.say = say;
    this.hear = hear;
    part("import-form").addEventListener("submit", (event) => event.preventDefault());
    part("make").addEventListener("click", once(() => run(() => this.#import())));
    part("leave").addEventListener("click", () => this.leave());
    part("notes").addEventListener("change", () => this.#source !== null && run(() => this.#read()));
    part("speakers").addEventListener("change", () => this.#source !== null && run(() => this.#offerCast()));
    part("voice").addEventListener("change", () => part("speakers").checked && this.#source !== null && run(() => this.#offerCast()));
    const recount = onceMore(() => this.#source !== null && part("speakers").checked && run(() => this.#offerCast()));
    part("import-all").addEventListener("change", ({ target }) => this.#boxes.forEach((box) => (box.checked = target.checked)));
    part("import-map").addEventListener("change", () => {
      this.#sum();
      recount();
    });
  }

  /** Read a document and show its contents. Throws Refusal. */
  async open(source, voices) {
    this.#voices = voices;
    this.part("notes").checked = this.part("speakers").checked = false;
    this.#chosen.clear();
    this.#source = source;
    await this.#read();
  }

  /** Whether a document is shown, to which Back and Forward then return. */
  get isOpen() {
    return this.#preview !== null;
  }

  /** Close the preview. */
  leave() {
    this.#reads.end();
    this.#finds.end();
    this.#source = this.#preview = null;
    this.part("names").replaceChildren();
    this.dispatchEvent(new CustomEvent("left"));
  }

  async #read() {
    const isLatest = this.#reads.begin();
    const source = this.#source;
    this.say(phrase("longform.reading"));
    const [preview, text] = await Promise.all([previewDocument(source, this.part("notes").checked), this.#text(source)]);
    if (!isLatest()) return;
    this.say("");
    this.#names = speakers(text, typeof source === "string" ? 1 : 2);
    this.#show(preview);
    this.dispatchEvent(new CustomEvent("read"));
    this.part("make").focus({ preventScroll: true });
    await this.#offerCast();
  }

  async #text(source) {
    if (typeof source === "string") return source;
    return TEXTS.test(source.name) ? source.text() : "";
  }

  #show(preview) {
    this.#preview = preview;
    const { title, author, language, cover, chapters, notes, notes_left_out: left, skipped } = preview;
    for (const [name, value] of [["import-title", title], ["import-author", author], ["import-language", language]]) this.part(name).value = value;
    this.part("import-cover").hidden = !cover;
    this.part("import-picture").src = cover ? previewCover(preview.id) : "";
    this.part("with-cover").checked = true;
    this.part("notes").closest("label").hidden = !(notes || left);
    this.part("import-map").hidden = chapters.length < 2;
    this.part("import-chapters").replaceChildren(...chapters.map((chapter, number) => this.#chapter(chapter, number)));
    this.part("import-skipped").hidden = !skipped.length;
    this.part("import-skipped-count").textContent = phrase("project.skipped", { count: skipped.length });
    this.part("import-skipped-list").replaceChildren(...skipped.map((sentence) => element("li", { textContent: sentence })));
    this.#sum();
  }

  #chapter({ title, matter, included, words, expected_s: seconds }, number) {
    const box = element("input", { type: "checkbox", value: number, defaultChecked: included });
    const facts = [phrase("project.words", { count: words }), duration(seconds), ...(matter === "body" ? [] : [phrase(matter === "front" ? "import.front" : "import.back")])];
    return element("li", {}, [
      element("label", {}, [box, element("span", { textContent: title || phrase("project.chapter.none") }), element("span", { className: "quiet", textContent: facts.join(" · ") })]),
    ]);
  }

  get #boxes() {
    return [...this.part("import-chapters").querySelectorAll("input")];
  }

  /** The numbers of the ticked chapters; null: all. */
  get #ticked() {
    const boxes = this.#boxes;
    return boxes.every((box) => box.checked) ? null : boxes.filter((box) => box.checked).map((box) => Number(box.value));
  }

  /** Show the totals of the ticked chapters. */
  #sum() {
    const { chapters } = this.#preview;
    const numbers = this.#ticked;
    const ticked = numbers ? numbers.map((number) => chapters[number]) : chapters;
    const total = (name) => ticked.reduce((sum, chapter) => sum + chapter[name], 0);
    const facts = [phrase("import.chapters", { ticked: ticked.length, count: chapters.length }), phrase("project.words", { count: total("words") }), phrase("import.length", { duration: duration(total("expected_s")) })];
    this.part("import-sum").textContent = (chapters.length < 2 ? facts.slice(1) : facts).join(" · ");
    this.part("make").disabled = !ticked.length || this.#isFinding;
    Object.assign(this.part("import-all"), { checked: ticked.length === chapters.length, indeterminate: ticked.length > 0 && ticked.length < chapters.length });
  }

  /** Show the speakers in the ticked chapters: characters found by the studio, or else names before colons. Throws Refusal. */
  async #offerCast() {
    const isLatest = this.#finds.begin();
    if (!this.part("speakers").checked) {
      this.say("");
      this.#find(false);
      return this.#showCast(this.#names.filter((name) => !voiceNamed(name, this.#voices)).slice(0, MOST_NAMES).map((name) => ({ name })), "longform.who.about");
    }
    const chapters = this.#ticked;
    const isFirst = this.part("cast").hidden;
    this.#find(true);
    this.say(phrase("longform.speakers.finding"));
    try {
      const isEmpty = chapters?.length === 0;
      const { data } = isEmpty ? { data: [] } : await this.#withPreview((id) => findSpeakers(id, chapters, this.part("voice").value));
      if (!isLatest()) return;
      this.say(data.length ? phrase("longform.speakers.found", { count: data.length }) : phrase("longform.speakers.none"));
      this.#showCast(data.slice(0, MOST_CAST), "longform.speakers.about");
      if (isFirst) this.part("cast").scrollIntoView({ block: "nearest" });
    } finally {
      if (isLatest()) this.#find(false);
    }
  }

  #find(isFinding) {
    this.#isFinding = isFinding;
    this.#sum();
  }

  /**
   * characters: each with its name; characters found by the studio also with other names, lines and proposed voice.
   *
   * @param {any[]} characters
   * @param {import("../lib/phrases.js").Key} about
   */
  #showCast(characters, about) {
    for (const select of this.#selects) if (select.value !== select.dataset.proposed) this.#chosen.set(folded(select.name), select.value);
    this.part("cast").hidden = !characters.length;
    this.part("who-about").textContent = phrase(about);
    this.part("names").replaceChildren(...characters.slice(0, MOST_SHOWN).map((character) => this.#character(character)));
    const others = characters.slice(MOST_SHOWN);
    this.part("who-more").hidden = !others.length;
    this.part("who-more").textContent = phrase("longform.speakers.more", { count: others.length });
    this.#unshown = Object.fromEntries(others.filter(({ voice }) => voice).map(({ name, voice }) => [name, voice]));
  }

  #character({ name, names = [name], lines, voice }) {
    const isFound = lines !== undefined;
    const option = (value, textContent) => element("option", { value, textContent });
    const none = option("", phrase(isFound ? "part.voice.project" : "longform.who.asWritten"));
    const select = labelled(element("select", { name }, [none, ...this.#voices.map((candidate) => option(candidate.id, labelOf(candidate)))]), phrase("speak.cast.voice", { name }));
    select.dataset.proposed = voice ?? "";
    select.value = this.#chosen.get(folded(name)) ?? voice ?? ""; // keep a voice chosen before the speakers were found
    const hear = () => {
      const chosen = this.#voices.find(({ id }) => id === select.value);
      if (chosen) this.hear(chosen);
    };
    const play = labelled(element("button", { type: "button", className: "plain", onclick: hear }, [icon(PLAY)]), phrase("cast.hear", { name }));
    const facts = isFound ? [element("small", { className: "quiet", textContent: phrase("cast.lines", { count: lines }) })] : [];
    return element("label", {}, [element("span", { textContent: name, title: names.join(", ") }), ...facts, select, play]);
  }

  get #selects() {
    return [...this.part("names").querySelectorAll("select")];
  }

  get #cast() {
    const chosen = this.#selects.filter((select) => select.value);
    return { ...this.#unshown, ...Object.fromEntries(chosen.map((select) => [select.name, select.value])) };
  }

  /** Settings for splitting the document into parts. */
  get #cut() {
    const { value } = this.part("cut");
    return Number(value) ? { split_by: "length", part_length: Number(value) } : { split_by: value };
  }

  async #import() {
    const about = { title: this.part("import-title").value, author: this.part("import-author").value, language: this.part("import-language").value.trim() };
    const body = { ...about, ...this.#cut, chapters: this.#ticked, voice: this.part("voice").value, cast: this.#cast, speakers: this.part("speakers").checked, with_cover: this.part("with-cover").checked };
    this.say(phrase("longform.reading"));
    const { id } = await this.#withPreview((preview) => createProject({ ...body, preview }));
    this.say("");
    this.leave();
    this.dispatchEvent(new CustomEvent("imported", { detail: { id } }));
  }

  /** Send the document again if its preview in the studio has expired. Throws Refusal. */
  async #withPreview(work) {
    try {
      return await work(this.#preview.id);
    } catch (problem) {
      if (problem.status !== 404) throw problem;
      this.#preview = { ...this.#preview, id: (await previewDocument(this.#source, this.part("notes").checked)).id };
      return work(this.#preview.id);
    }
  }
}

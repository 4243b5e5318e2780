// The preview of a document before its import: choice of chapters, title, speakers and their voices, and splitting into parts.

import { folded, speakers, voiceNamed } from "../speak/dialogue.js";
import { PeopleList } from "../cast/people-list.js";
import { createProject, findSpeakers, previewCover, previewDocument } from "../client/projects.js";
import { labelOf } from "../client/voices.js";
import { element, icon, labelled, listBox } from "../lib/elements.js";
import { PLAY } from "../lib/icons.js";
import { Latest } from "../lib/latest.js";
import { once, onceMore } from "../lib/once.js";
import { duration } from "../lib/time.js";
import { phrase } from "../lib/phrases.js";
import { askBeforeLeaving, focusAfterwards, isWritten } from "../lib/typing.js";
import { chosenRoles, showSheet } from "./sheet.js";

const TEXTS = /\.(txt|text|md|markdown|srt|vtt|ass|ssa)$/i; // also read here, to find names in them
const FIELDS = /\.(ass|ssa)$/i; // their lines begin with the name of a field, such as "Dialogue:"; the studio reads the speakers
const ANY = "mac_roman"; // in which every byte is a letter: a text whose encoding is unknown can be shown, and another one chosen
const MOST_NAMES = 24;
const ABOUT = ["title", "author", "language"];

/** Fires "read" once a document is shown, and "left" when the preview is closed. */
export class ImportPreview extends EventTarget {
  #reads = new Latest();
  /** @type {File | string | null} */
  #source = null;
  #encoding = ""; // chosen by hand
  /** As returned by the API. @type {any} */
  #preview = null;
  #voices = [];
  #finds = new Latest();
  #isFinding = false;
  #isCast = false; // whether it is a script, or a table that says who speaks
  /** Names that precede a colon in the text. @type {string[]} */
  #names = [];
  /** Voices chosen by hand, by folded name. @type {Map<string, string>} */
  #chosen = new Map();

  /**
   * part: finds the page's elements by name; run: runs work and shows why it failed; say: shows the status; hear: plays a voice; show: shows the project of a source.
   *
   * @param {(name: string) => any} part
   * @param {{ run: (work: () => Promise<unknown>) => Promise<void>, say: (words: string) => void, hear: (voice: any) => unknown, show: (id: string, source: any) => Promise<void> }} of
   */
  constructor(part, { run, say, hear, show }) {
    super();
    this.part = part;
    this.run = run;
    this.say = say;
    this.hear = hear;
    this.show = show;
    this.people = new PeopleList(part("people"), { run, hear });
    part("import-form").addEventListener("submit", (event) => event.preventDefault());
    part("make").addEventListener("click", once(() => run(() => this.#import().finally(() => this.#enter()))));
    part("leave").addEventListener("click", () => this.leave());
    part("notes").addEventListener("change", () => this.#source !== null && run(() => this.#read()));
    part("encoding").addEventListener("change", ({ target }) => {
      this.#encoding = target.value;
      if (this.#source !== null) run(() => this.#read());
    });
    part("speakers").addEventListener("change", () => this.#source !== null && run(() => this.#offerCast(true)));
    part("voice").addEventListener("change", () => part("speakers").checked && this.#source !== null && run(() => this.#offerCast()));
    const recount = onceMore(() => this.#source !== null && part("speakers").checked && run(() => this.#offerCast()));
    part("import-all").addEventListener("change", ({ target }) => this.#boxes.forEach((box) => (box.checked = target.checked)));
    part("import-map").addEventListener("change", () => {
      this.#sum();
      recount();
    });
    askBeforeLeaving(() => this.#isChanged);
  }

  /** Read a document and show its contents; changes to another one that is shown are discarded only if the person agrees. Throws Refusal. */
  async open(source, voices) {
    if (this.#isChanged && !window.confirm(phrase("import.leave"))) return;
    this.leave(); // if the document cannot be read, the list is shown
    this.#voices = voices;
    for (const field of this.#about) field.value = field.defaultValue;
    this.part("import-chapters").replaceChildren();
    this.part("with-cover").checked = true;
    this.part("notes").checked = this.part("speakers").checked = false;
    this.#chosen.clear();
    this.part("sheet").hidden = true;
    [this.#source, this.#encoding, this.#isCast] = [source, "", false];
    await this.#read();
  }

  /** Throws Refusal. */
  async #readAs(source, signal = /** @type {AbortSignal | null} */ (null)) {
    const [notes, columns] = [this.part("notes").checked, chosenRoles(this.part("sheet"))];
    try {
      return await previewDocument(source, notes, { columns, encoding: this.#encoding, signal });
    } catch (problem) {
      if (problem.status !== 400 || this.#encoding || typeof source === "string" || !TEXTS.test(source.name)) throw problem;
      return previewDocument(source, notes, { columns, encoding: ANY, signal }).catch(() => Promise.reject(problem)); // the reason was another one
    }
  }

  /** Whether a document is shown, to which Back and Forward then return. */
  get isOpen() {
    return this.#preview !== null;
  }

  /** Whether a person has changed what would take a while to change again. */
  get #isChanged() {
    return this.isOpen && (this.people.edited.length > 0 || this.#selects.some(({ value }) => value) || isWritten([...this.#about, ...this.#boxes]));
  }

  get #about() {
    return ABOUT.map((name) => this.part(`import-${name}`));
  }

  /** Close the preview. */
  leave() {
    this.#reads.end();
    this.#finds.end();
    this.#source = this.#preview = null;
    this.#enter();
    this.say("");
    this.part("names").replaceChildren();
    this.people.clear();
    this.dispatchEvent(new CustomEvent("left"));
  }

  /** Let what was read be changed, or not. */
  #enter(isPossible = true) {
    for (const one of this.part("import-form").children) one.inert = !isPossible && !one.contains(this.part("leave"));
  }

  async #read() {
    const isLatest = this.#reads.begin();
    const source = this.#source;
    this.say(phrase("longform.reading"));
    const [preview, text] = await Promise.all([this.#readAs(source, this.#reads.signal), this.#text(source)]).catch((problem) => (isLatest() ? Promise.reject(problem) : [])); // another document may be shown by now
    if (!isLatest()) return;
    this.say("");
    this.#names = speakers(text, typeof source === "string" ? 1 : 2);
    const isCast = preview.script || preview.columns.some(({ role }) => role === "character");
    if (isCast !== this.#isCast) this.part("speakers").checked = this.#isCast = isCast;
    this.#show(preview);
    this.dispatchEvent(new CustomEvent("read"));
    focusAfterwards(this.part("make"), { preventScroll: true });
    await this.#offerCast();
  }

  async #text(source) {
    if (typeof source === "string") return source;
    return TEXTS.test(source.name) && !FIELDS.test(source.name) ? source.text() : "";
  }

  /** Show a document as read, with what a person has changed in an earlier reading. */
  #show(preview) {
    const [before, boxes] = [this.#preview?.chapters, this.#boxes];
    this.#preview = preview;
    const { cover, chapters, notes, notes_left_out: left, skipped } = preview;
    for (const [i, field] of this.#about.entries()) {
      const value = preview[ABOUT[i]] ?? "";
      if (!isWritten([field])) field.value = value;
      field.defaultValue = value;
    }
    showSheet(this.part("sheet"), preview, () => this.#source !== null && this.run(() => this.#read()));
    this.part("import-cover").hidden = !cover;
    this.part("import-picture").src = cover ? previewCover(preview.id) : "";
    this.part("notes").closest("label").hidden = !(notes || left);
    const encodings = Object.entries(preview.encodings);
    this.part("encoding").closest("label").hidden = !preview.encoding;
    this.part("encoding").replaceChildren(...encodings.map(([value, textContent]) => element("option", { value, textContent, selected: value === preview.encoding })));
    this.part("import-map").hidden = chapters.length < 2;
    this.part("import-chapters").replaceChildren(...chapters.map((chapter, number) => this.#chapter(chapter, number)));
    const [titles, read] = [chapters.map(({ title }) => title), this.#boxes];
    for (const [i, box] of boxes.entries()) {
      const { title } = before[i];
      const isHere = titles[i] === title || (read.length === boxes.length && !titles.includes(title)); // another encoding changes titles
      const same = read[isHere ? i : titles.indexOf(title)];
      if (same && isWritten([box])) same.checked = box.checked;
    }
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

  /** Show the speakers in the ticked chapters: characters found by the studio, or else names before colons. isAsked: just now, so scroll to them. Throws Refusal. */
  async #offerCast(isAsked = false) {
    const isLatest = this.#finds.begin();
    if (!this.part("speakers").checked) {
      this.say("");
      this.#find(false);
      this.people.hide();
      return this.#showCast(this.#names.filter((name) => !voiceNamed(name, this.#voices)).slice(0, MOST_NAMES));
    }
    const chapters = this.#ticked;
    this.#find(true);
    this.say(phrase("longform.speakers.finding"));
    try {
      const isEmpty = chapters?.length === 0;
      const known = this.people.edited;
      const { data, earlier } = isEmpty ? { data: [], earlier: [] } : await this.#withPreview((id) => findSpeakers(id, chapters, this.part("voice").value, known));
      if (!isLatest()) return;
      if (JSON.stringify(known) !== JSON.stringify(this.people.edited)) return await this.#offerCast(isAsked); // edited meanwhile
      this.say(data.length ? phrase("longform.speakers.found", { count: data.length }) : phrase("longform.speakers.none"));
      this.#showCast([]);
      this.part("cast").hidden = !data.length;
      this.part("who-about").textContent = phrase("longform.speakers.about");
      this.people.show(data, earlier, this.#voices, (name) => this.#chosen.get(folded(name)));
      if (isAsked) this.part("cast").scrollIntoView({ block: "nearest" });
    } finally {
      if (isLatest()) this.#find(false);
    }
  }

  #find(isFinding) {
    this.#isFinding = isFinding;
    this.#sum();
  }

  /** Show the names that precede a colon. @param {string[]} names */
  #showCast(names) {
    for (const select of this.#selects) this.#chosen.set(folded(select.name), select.value);
    this.part("cast").hidden = !names.length;
    this.part("who-about").textContent = phrase("longform.who.about");
    this.part("names").replaceChildren(...names.map((name) => this.#character(name)));
  }

  #character(name) {
    const none = ["", phrase("longform.who.asWritten")];
    const select = labelled(listBox([none, ...this.#voices.map((candidate) => [candidate.id, labelOf(candidate)])], { name }), phrase("speak.cast.voice", { name }));
    select.choose(this.#chosen.get(folded(name)) ?? ""); // keep a voice chosen before the speakers were found
    const chosen = () => this.#voices.find(({ id }) => id === select.value);
    const play = labelled(element("button", { type: "button", className: "plain", onclick: () => chosen() && this.hear(chosen()) }, [icon(PLAY)]), phrase("cast.hear", { name }));
    return element("label", {}, [element("span", { textContent: name }), select, play]);
  }

  get #selects() {
    return [...this.part("names").querySelectorAll("select")];
  }

  get #cast() {
    const chosen = this.#selects.filter((select) => select.value);
    return Object.fromEntries(chosen.map((select) => [select.name, select.value]));
  }

  /** Settings for splitting the document into parts. */
  get #cut() {
    const { value } = this.part("cut");
    return Number(value) ? { split_by: "length", part_length: Number(value) } : { split_by: value };
  }

  async #import() {
    const about = Object.fromEntries(this.#about.map(({ value }, i) => [ABOUT[i], value.trim()]));
    const body = { ...about, ...this.#cut, chapters: this.#ticked, voice: this.part("voice").value, cast: this.#cast, speakers: this.part("speakers").checked, people: this.part("speakers").checked ? this.people.all : [], with_cover: this.part("with-cover").checked };
    this.say(phrase("longform.reading"));
    this.#enter(false); // later changes would not be part of what is sent
    const source = this.#source;
    const { id } = await this.#withPreview((preview) => createProject({ ...body, preview }));
    if (this.#source !== source) return; // left meanwhile, perhaps for another document; the project is in the list
    await this.people.takeAlong(id);
    await this.show(id, source).finally(() => this.#source === source && this.leave()); // until then, it is in place of the list
  }

  /** Send the document again if its preview in the studio has expired. Throws Refusal. */
  async #withPreview(work, source = this.#source) {
    try {
      return await work(this.#preview.id);
    } catch (problem) {
      if (problem.status !== 404 || this.#source !== source) throw problem;
      this.#preview = { ...this.#preview, id: (await this.#readAs(this.#source)).id };
      return work(this.#preview.id);
    }
  }
}

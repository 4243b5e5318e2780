// A document before it becomes a project: its chapters to choose from, what it is called, who speaks, and how it is split.

import { speakers, voiceNamed } from "../speak/dialogue.js";
import { createProject, previewCover, previewDocument } from "../client/projects.js";
import { labelOf } from "../client/voices.js";
import { element, labelled } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { once } from "../lib/once.js";
import { duration } from "../lib/time.js";
import { phrase } from "../lib/phrases.js";

const TEXTS = /\.(txt|text|md|markdown|srt|vtt)$/i; // read here too, for the names in them
const WITH_NOTES = ["epub", "docx"];
const MOST_NAMES = 24;

/** Fires "imported" with {id}, and "left" when nothing is to be imported. */
export class ImportPreview extends EventTarget {
  #reads = new Latest();
  /** @type {File | string | null} */
  #source = null;
  /** As the API gave it. @type {any} */
  #preview = null;
  #voices = [];

  /**
   * part: finds what the page shows; run: does some work and shows why it failed; say: tells how it stands.
   *
   * @param {(name: string) => any} part
   * @param {{ run: (work: () => Promise<unknown>) => Promise<void>, say: (words: string) => void }} of
   */
  constructor(part, { run, say }) {
    super();
    this.part = part;
    this.say = say;
    part("import-form").addEventListener("submit", (event) => event.preventDefault());
    part("make").addEventListener("click", once(() => run(() => this.#import())));
    part("leave").addEventListener("click", () => this.leave());
    part("notes").addEventListener("change", () => this.#source !== null && run(() => this.#read()));
    part("import-all").addEventListener("change", ({ target }) => this.#tickAll(target.checked));
    part("import-chapters").addEventListener("change", () => this.#sum());
  }

  /** Read a document and show what it has. Raises Refusal. */
  async open(source, voices) {
    this.#voices = voices;
    this.part("notes").checked = false;
    this.#source = source;
    await this.#read();
  }

  /** Show nothing of a document any more. */
  leave() {
    this.#reads.end();
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
    this.#show(preview);
    this.#offerCast(speakers(text, typeof source === "string" ? 1 : 2));
    this.dispatchEvent(new CustomEvent("read"));
    this.part("make").focus({ preventScroll: true });
  }

  async #text(source) {
    if (typeof source === "string") return source;
    return TEXTS.test(source.name) ? source.text() : "";
  }

  #show(preview) {
    this.#preview = preview;
    const { title, author, language, cover, chapters, kind, skipped } = preview;
    for (const [name, value] of [["import-title", title], ["import-author", author], ["import-language", language]]) this.part(name).value = value;
    this.part("import-cover").hidden = !cover;
    this.part("import-picture").src = cover ? previewCover(preview.id) : "";
    this.part("with-cover").checked = true;
    this.part("notes").closest("label").hidden = !WITH_NOTES.includes(kind);
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

  #tickAll(isTicked) {
    for (const box of this.#boxes) box.checked = isTicked;
    this.#sum();
  }

  /** How much is ticked. */
  #sum() {
    const { chapters } = this.#preview;
    const boxes = this.#boxes;
    const ticked = chapters.filter((_, i) => boxes[i].checked);
    const total = (name) => ticked.reduce((sum, chapter) => sum + chapter[name], 0);
    const facts = [phrase("import.chapters", { ticked: ticked.length, count: chapters.length }), phrase("project.words", { count: total("words") }), phrase("import.length", { duration: duration(total("expected_s")) })];
    this.part("import-sum").textContent = (chapters.length < 2 ? facts.slice(1) : facts).join(" · ");
    this.part("make").disabled = !ticked.length;
    Object.assign(this.part("import-all"), { checked: ticked.length === chapters.length, indeterminate: ticked.length > 0 && ticked.length < chapters.length });
  }

  #offerCast(found) {
    const names = found.filter((name) => !voiceNamed(name, this.#voices)).slice(0, MOST_NAMES);
    this.part("cast").hidden = !names.length;
    const option = (value, textContent) => element("option", { value, textContent });
    this.part("names").replaceChildren(
      ...names.map((name) => {
        const options = [option("", phrase("longform.who.asWritten")), ...this.#voices.map((voice) => option(voice.id, labelOf(voice)))];
        const select = labelled(element("select", { name }, options), phrase("speak.cast.voice", { name }));
        return element("label", {}, [element("span", { textContent: name }), select]);
      }),
    );
  }

  get #cast() {
    const chosen = [...this.part("names").querySelectorAll("select")].filter((select) => select.value);
    return Object.fromEntries(chosen.map((select) => [select.name, select.value]));
  }

  /** How the document is split into parts. */
  get #cut() {
    const { value } = this.part("cut");
    return Number(value) ? { split_by: "length", part_length: Number(value) } : { split_by: value };
  }

  async #import() {
    const boxes = this.#boxes;
    const chapters = boxes.every((box) => box.checked) ? null : boxes.filter((box) => box.checked).map((box) => Number(box.value));
    const told = { title: this.part("import-title").value, author: this.part("import-author").value, language: this.part("import-language").value.trim() };
    const body = { ...told, ...this.#cut, chapters, voice: this.part("voice").value, cast: this.#cast, with_cover: this.part("with-cover").checked };
    this.say(phrase("longform.reading"));
    const { id } = await this.#create(body);
    this.say("");
    this.leave();
    this.dispatchEvent(new CustomEvent("imported", { detail: { id } }));
  }

  /** The studio keeps what it has read only for a while: then the document is sent again. Raises Refusal. */
  async #create(body) {
    try {
      return await createProject({ ...body, preview: this.#preview.id });
    } catch (problem) {
      if (problem.status !== 404) throw problem;
      this.#preview = { ...this.#preview, id: (await previewDocument(this.#source, this.part("notes").checked)).id };
      return createProject({ ...body, preview: this.#preview.id });
    }
  }
}

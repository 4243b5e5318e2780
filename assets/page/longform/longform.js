// The area of long form: documents become projects, the list of them, and one of them opened.

import { speakers, voiceNamed } from "../speak/dialogue.js";
import { Refusal } from "../client/refusal.js";
import { labelOf, voices } from "../client/voices.js";
import { element, icon, Keyed, labelled, partsOf, setChildren } from "../lib/elements.js";
import { PLAY } from "../lib/icons.js";
import { Latest } from "../lib/latest.js";
import { once } from "../lib/once.js";
import { keep, kept } from "../lib/storage.js";
import { duration } from "../lib/time.js";
import { Playback } from "./playback.js";
import { Project } from "./project.js";
import { findSpeakers, listProjects, makeProject } from "../client/projects.js";
import { restore } from "../client/trash.js";
import { offerUndo } from "../trash/undo-toast.js";
import { phrase } from "../lib/phrases.js";

const REFRESH = 2000; // ms, while the list is shown
const TEXTS = /\.(txt|text|md|markdown|srt|vtt)$/i; // read here too, for the names in them
const MOST_NAMES = 24;
const OPENED = "voice-studio-project-1";

/** A dot and a word for a state. */
export function stateWord(state, words) {
  const word = element("span", { className: "long-word" });
  showState(word, state, words);
  return word;
}

function showState(word, state, words) {
  word.dataset.state = state;
  word.textContent = words;
}

/** Fires "about" with {item, title, isSame} when another project is opened, or none: its id for the address. */
export class LongForm extends EventTarget {
  #isOpen = false;
  #shows = new Latest();
  #sources = new Latest();
  #timer = 0;
  /** @type {Project | null} */
  #project = null;
  #voices = [];
  /** @type {File | string | null} */
  #source = null; // a document that waits for its cast
  #rows = new Keyed();

  /** nowPlaying: the player. */
  constructor(root, nowPlaying) {
    super();
    this.part = partsOf(root);
    this.nowPlaying = nowPlaying;
    const takePasted = once(async () => {
      const text = this.part("paste").value;
      if (text.trim()) await this.#take(text);
      else this.#say(phrase("longform.paste.first"));
    });
    this.part("form").addEventListener("submit", (event) => {
      event.preventDefault();
      takePasted();
    });
    this.part("file").addEventListener("change", ({ target }) => target.files[0] && this.#take(target.files[0]));
    this.part("make").addEventListener("click", once(() => this.#make(this.#source, this.#cast)));
    this.part("names").addEventListener("click", ({ target }) => this.#hear(target.closest("button")));
    this.part("leave").addEventListener("click", () => this.#askForCast(null, []));
    this.#takeDrops(this.part("drop"));
    this.part("back").addEventListener("click", () => this.#show(null));
  }

  /** id: of a project to show, else the one that was shown last, if any. */
  async open(id = "") {
    this.#isOpen = true;
    this.#say("");
    const isLatest = this.#shows.begin();
    const listed = (this.#voices = await voices());
    this.#offer(listed);
    if (isLatest()) this.#show(id || kept(OPENED, null), listed, true);
  }

  /** The studio answers again: unsaved text is kept. */
  back() {
    if (this.#project) return this.#project.look();
    return this.open();
  }

  /** Show a project, or the list: the address says so. */
  go(id) {
    this.#do(() => this.#show(id));
  }

  /** Create a project from a file or text from elsewhere on the page. */
  async bring(source) {
    await this.#show(null);
    await this.#take(source);
  }

  close() {
    this.#isOpen = false;
    this.#leave();
  }

  /** Show nothing, and ignore answers under way. */
  #leave() {
    this.#shows.end();
    clearTimeout(this.#timer);
    this.#project?.close();
    this.#project = null;
  }

  #say(words) {
    this.part("said").textContent = words;
  }

  async #do(work) {
    try {
      await work();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.#say(problem.why);
    }
  }

  #offer(listed) {
    const select = this.part("voice");
    const chosen = select.value;
    select.replaceChildren(...listed.map((voice) => element("option", { value: voice.id, textContent: labelOf(voice), defaultSelected: voice.isFirstChoice })));
    if (listed.some(({ id }) => id === chosen)) select.value = chosen;
  }

  #takeDrops(zone) {
    const over = (event, isOver) => {
      event.preventDefault();
      zone.toggleAttribute("data-over", isOver);
    };
    zone.addEventListener("dragover", (event) => over(event, true));
    zone.addEventListener("dragleave", (event) => over(event, false));
    zone.addEventListener("drop", (event) => {
      over(event, false);
      const [file] = event.dataTransfer.files;
      if (file) this.#take(file);
    });
  }

  /** A document has arrived: ask for the cast where names begin lines, else create the project at once. */
  #take(source) {
    const isLatest = this.#sources.begin();
    return this.#do(async () => {
      const isText = typeof source === "string" || TEXTS.test(source.name);
      const text = typeof source === "string" ? source : isText ? await source.text() : "";
      this.#voices = await voices(); // the area may have been opened only just now
      if (isLatest()) await this.#begin(source, text);
    });
  }

  async #begin(source, text) {
    if (this.part("speakers").checked) return this.#findSpeakers(source);
    const names = speakers(text, typeof source === "string" ? 1 : 2).filter((name) => !voiceNamed(name, this.#voices));
    if (!names.length) return this.#make(source, {});
    this.#say("");
    return this.#askForCast(source, names.slice(0, MOST_NAMES).map((name) => ({ name })));
  }

  async #findSpeakers(source) {
    this.#say(phrase("longform.speakers.finding"));
    const isLatest = this.#sources.join();
    const { data } = await findSpeakers(source, this.part("voice").value);
    if (!isLatest()) return;
    this.#say(data.length ? "" : phrase("longform.speakers.none"));
    this.#askForCast(source, data);
  }

  /** Play the sample of the voice chosen beside a button. */
  #hear(button) {
    const voice = button && this.#voices.find(({ id }) => id === button.previousElementSibling.value);
    if (voice) new Playback("", this.nowPlaying).sample(voice);
  }

  /** found: names, and of those that the server has found the lines and a proposed voice. */
  #askForCast(source, found) {
    this.#source = source;
    this.part("cast").hidden = !source;
    this.part("who-about").textContent = phrase(found[0]?.lines === undefined ? "longform.who.about" : "longform.speakers.about");
    this.part("file").value = "";
    const option = (value, textContent) => element("option", { value, textContent });
    this.part("names").replaceChildren(
      ...found.map(({ name, names = [name], lines, voice = "" }) => {
        const first = phrase(lines === undefined ? "longform.who.asWritten" : "part.voice.project");
        const select = labelled(element("select", { name }, [option("", first), ...this.#voices.map((each) => option(each.id, labelOf(each)))]), phrase("speak.cast.voice", { name }));
        select.value = voice ?? "";
        const play = labelled(element("button", { type: "button", className: "plain" }, [icon(PLAY)]), phrase("cast.hear", { name }));
        const about = lines === undefined ? [] : [element("small", { className: "quiet", textContent: phrase("cast.lines", { count: lines }) })];
        return element("label", {}, [element("span", { textContent: name, title: names.join(", ") }), ...about, select, play]);
      }),
    );
    if (source) (this.part("names").querySelector("select") ?? this.part("make")).focus();
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

  async #make(source, cast) {
    this.#say(phrase("longform.reading"));
    await this.#do(async () => {
      const how = { ...this.#cut, notes: this.part("notes").checked, speakers: this.part("speakers").checked };
      const project = await makeProject(source, this.part("voice").value, cast, how);
      this.#say("");
      this.#askForCast(null, []);
      this.part("form").reset();
      await this.#show(project.id);
    });
    this.part("file").value = "";
  }

  /** Show one project, or the list where there is none. */
  async #show(id, listed = null, isSame = false) {
    this.#leave();
    const isLatest = this.#shows.join();
    keep(OPENED, id || null);
    if (!id) {
      this.#about({ item: "", isSame });
      this.#reveal("shelf");
      return this.#list();
    }
    const present = listed ?? (await voices());
    if (!this.#isOpen || !isLatest()) return;
    const project = (this.#project = new Project(this.part, { id, voices: present, nowPlaying: this.nowPlaying }));
    project.addEventListener("gone", ({ detail }) => {
      if (this.#project !== project) return;
      this.#show(null, null, true); // Back leads to it still
      this.#say(detail.words);
    });
    project.addEventListener("deleted", ({ detail }) => this.#putAway(detail));
    project.addEventListener("titled", ({ detail }) => this.#project === project && this.#about({ item: id, title: detail.title, isSame }));
    await project.look(); // before it is seen: a press on what the last one said would be lost
    if (this.#project === project) this.#reveal("project");
  }

  #about(detail) {
    this.dispatchEvent(new CustomEvent("about", { detail }));
  }

  #reveal(name) {
    for (const view of ["shelf", "project"]) this.part(view).hidden = view !== name;
  }

  async #list() {
    clearTimeout(this.#timer);
    const isShown = this.#shows.join();
    await this.#do(async () => {
      const { data } = await listProjects();
      if (!isShown() || this.#project) return;
      setChildren(this.part("projects"), this.#rows.of(data, (project, before) => this.#row(project, before)));
    });
    if (!isShown() || this.#project) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#list(), REFRESH);
  }

  async #putAway({ id, title, seconds }) {
    this.#say("");
    await this.#show(null);
    offerUndo(phrase("trash.deleted", { title }), seconds ? () => this.#restore(id) : null);
  }

  async #restore(id) {
    await restore("project", [id]);
    if (this.#isOpen && !this.#project) await this.#list();
  }

  /** Updates the existing row: replacing it would lose a press on it. */
  #row(project, before) {
    const row = before ?? this.#newRow(project);
    const [title, word, line] = row.firstElementChild.children;
    const { parts, seconds, eta_s: eta } = project;
    const facts = [phrase("longform.row", { done: parts.done, count: parts.total }), seconds ? duration(seconds) : "", eta === null ? "" : phrase("longform.left", { duration: duration(eta) })];
    title.textContent = project.title;
    showState(word, project.state, phrase(/** @type {import("../lib/phrases.js").Key} */ (`longform.state.${project.state}`)));
    line.textContent = facts.filter(Boolean).join(" · ");
    return row;
  }

  #newRow({ id }) {
    const words = [element("strong"), stateWord("", ""), element("span", { className: "quiet" })];
    const button = element("button", { type: "button", onclick: () => this.#do(() => this.#show(id)) }, words);
    button.dataset.key = id;
    return element("li", {}, [button]);
  }
}

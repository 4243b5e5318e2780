// The long-form area: the import of documents, the list of projects, and the open project.

import { Refusal } from "../client/refusal.js";
import { labelOf, voices } from "../client/voices.js";
import { Drafts } from "../lib/drafts.js";
import { element, Keyed, partsOf, setChildren } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { LookAgain } from "../lib/look-again.js";
import { once } from "../lib/once.js";
import { keepByTab, keptByTab } from "../lib/by-tab.js";
import { duration } from "../lib/time.js";
import { ImportPreview } from "./import-preview.js";
import { Playback } from "./playback.js";
import { Project } from "./project.js";
import { followListening } from "./stopped-at.js";
import { listProjects } from "../client/projects.js";
import { restore } from "../client/trash.js";
import { offerUndo } from "../trash/undo-toast.js";
import { phrase } from "../lib/phrases.js";
import { useFirst } from "../shell/drops.js";
import { sharingWords } from "../shell/sharing.js";

const REFRESH = 2000; // ms between two reads of the list
const OPENED = "project-1";
const PASTED = "pasted-1";
const SETTLED = 300; // ms after the last key press

/** Return the label for a state: a dot and a word. */
export function stateWord(state, words) {
  const word = element("span", { className: "long-word" });
  showState(word, state, words);
  return word;
}

function showState(word, state, words) {
  word.dataset.state = state;
  word.textContent = words;
}

/** Fires "about" with {item, title, isSame}: the id of the open project, or blank; isSame: without a step for Back. */
export class LongForm extends EventTarget {
  #isOpen = false;
  #shows = new Latest();
  #again = new LookAgain();
  #timer = 0;
  #writing = 0;
  /** @type {Project | null} */
  #project = null;
  #voices = [];
  #rows = new Keyed();
  #pages = 1; // of the list

  /** nowPlaying: the player; usualVoice: returns the id of the voice that was last used, if any. */
  constructor(root, nowPlaying, usualVoice) {
    super();
    this.usualVoice = usualVoice;
    this.part = partsOf(root);
    this.nowPlaying = nowPlaying;
    followListening(nowPlaying);
    this.#keepPasted(this.part("paste"));
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
    this.preview = new ImportPreview(this.part, { run: (work) => this.#do(work), say: (words) => this.#say(words), hear: (voice) => new Playback("", nowPlaying).sample(voice), show: (id, source) => this.#imported(id, source) });
    this.preview.addEventListener("read", () => this.#isOpen && !this.#project && this.#reveal("import"));
    this.preview.addEventListener("left", () => this.part("project").hidden && this.#reveal("shelf"));
    this.#takeDrops(this.part("drop"));
    this.part("back").addEventListener("click", () => this.#show(null));
    this.part("more-projects").addEventListener("click", () => {
      this.#pages += 1;
      this.#list();
    });
  }

  /** Show the project of a document. */
  #imported(id, source) {
    if (source === this.part("paste").value) {
      this.part("form").reset();
      clearTimeout(this.#writing);
      keepByTab(PASTED, "");
    }
    return this.#show(id);
  }

  /** Restore text that was not imported yet after a reload. @param {HTMLTextAreaElement} field */
  #keepPasted(field) {
    field.value = keptByTab(PASTED, "");
    if (field.value) field.closest("details")?.setAttribute("open", "");
    const save = () => {
      this.#writing = 0;
      keepByTab(PASTED, field.value);
    };
    field.addEventListener("input", () => {
      clearTimeout(this.#writing);
      this.#writing = setTimeout(save, SETTLED);
    });
    addEventListener("pagehide", () => this.#writing && save());
  }

  /** id: of the project to show; blank: the last one shown, if any. */
  async open(id = "") {
    this.#isOpen = true;
    this.#say("");
    const isLatest = this.#shows.begin();
    const listed = await voices().catch((problem) => {
      if (!(problem instanceof Refusal) || problem.isOfRequest) throw problem;
      if (!isLatest()) return;
      this.#say(problem.why, true);
      this.#again.after(problem, () => isLatest() && this.open(id));
    });
    if (!listed) return;
    this.#voices = listed;
    this.#offer(listed);
    if (!isLatest()) return;
    const shown = id || keptByTab(OPENED, "");
    if (shown) this.part("shelf").hidden = true; // or it would disappear under what is being typed or pressed there
    this.#show(shown, listed, true);
  }

  /** Reload once the studio responds again, keeping unsaved text. */
  back() {
    if (this.#project) return this.#project.look();
    return this.open();
  }

  /** Show the project in the address, or the list. */
  go(id) {
    this.#do(() => this.#show(id));
  }

  /** Switch to the next take in a comparison. */
  other(track) {
    this.#project?.parts.comparison.other(track);
  }

  /** Preview a file or text from elsewhere on the page for import. */
  async bring(source) {
    await this.#show(null);
    await this.#take(source);
  }

  close() {
    this.#isOpen = false;
    this.#leave();
  }

  /** Close the current view and ignore pending responses. */
  #leave() {
    this.#shows.end();
    clearTimeout(this.#timer);
    this.#project?.close();
    this.#project = null;
  }

  #say(words, isBad = false) {
    this.part("said").textContent = words;
    this.part("said").toggleAttribute("data-bad", isBad);
  }

  async #do(work) {
    try {
      await work();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.#say(problem.why, true);
    }
  }

  #offer(listed) {
    const select = this.part("voice");
    const wanted = this.preview.isOpen ? select.value : this.usualVoice();
    const isKnown = listed.some(({ id }) => id === wanted);
    select.replaceChildren(...listed.map((voice) => element("option", { value: voice.id, textContent: labelOf(voice), defaultSelected: isKnown ? voice.id === wanted : voice.isFirstChoice })));
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
      useFirst(event.dataTransfer.files, (file) => this.#take(file));
    });
  }

  /** Show the preview of a document. */
  #take(source) {
    this.part("file").value = "";
    return this.#do(async () => {
      this.#voices = await voices(); // perhaps not loaded yet by `open`
      if (!this.preview.isOpen) this.#offer(this.#voices);
      await this.preview.open(source, this.#voices);
    });
  }

  /** Show a project, or the list without an id. */
  async #show(id, listed = null, isSame = false) {
    this.#leave();
    const isLatest = this.#shows.join();
    keepByTab(OPENED, id || "");
    if (!id) {
      this.#about({ item: "", isSame });
      this.#reveal(this.preview.isOpen ? "import" : "shelf");
      return this.#list();
    }
    this.#say(""); // perhaps that this project was gone
    const present = listed ?? (await voices());
    if (!this.#isOpen || !isLatest()) return;
    const drafts = await Drafts.of(id);
    if (!this.#isOpen || !isLatest()) return drafts.close();
    const project = (this.#project = new Project(this.part, { drafts, voices: present, nowPlaying: this.nowPlaying }));
    project.addEventListener("gone", ({ detail }) => {
      if (this.#project !== project) return;
      this.#show(null, null, true); // without a step for Back
      this.#say(detail.words);
    });
    project.addEventListener("deleted", ({ detail }) => this.#putAway(detail));
    project.addEventListener("titled", ({ detail }) => this.#project === project && this.#about({ item: id, title: detail.title, isSame }));
    await project.look(); // before it is shown: a click on the last project's contents would be lost
    if (this.#project === project) this.#reveal("project");
  }

  #about(detail) {
    this.dispatchEvent(new CustomEvent("about", { detail }));
  }

  #reveal(name) {
    if (this.part(name).hidden) scrollTo(0, 0); // another view begins at its top
    for (const view of ["shelf", "import", "project"]) this.part(view).hidden = view !== name;
  }

  async #list() {
    clearTimeout(this.#timer);
    const isShown = this.#shows.join();
    await this.#do(async () => {
      const { data, hasMore } = await this.#listed();
      if (!isShown() || this.#project) return;
      setChildren(this.part("projects"), this.#rows.of(data, (project, before) => this.#row(project, before)));
      this.part("more-projects").hidden = !hasMore;
    });
    if (!isShown() || this.#project) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#list(), REFRESH);
  }

  /** Read the pages of the list that are shown. Throws Refusal. */
  async #listed() {
    let page = await listProjects();
    const data = [...page.data];
    for (let shown = 1; shown < this.#pages && page.has_more; shown += 1) {
      page = await listProjects(page.last_id);
      data.push(...page.data);
    }
    return { data, hasMore: page.has_more };
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

  /** Update the existing row: replacing it would lose a click in progress. */
  #row(project, before) {
    const row = before ?? this.#newRow(project);
    const [title, word, line] = row.firstElementChild.children;
    const { parts, seconds, eta_s: eta } = project;
    const facts = [phrase("longform.row", { done: parts.done, count: parts.total }), seconds ? duration(seconds) : "", eta === null ? "" : phrase("longform.left", { duration: duration(eta) }), sharingWords(project)];
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

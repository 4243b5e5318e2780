// An open project: its progress, its parts page by page, their actions, and playback.

import { foldCast } from "../cast/cast-fold.js";
import { Refusal } from "../client/refusal.js";
import { labelOf } from "../client/voices.js";
import { element, setChildren } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { once } from "../lib/once.js";
import { UnderWay } from "../lib/under-way.js";
import { Arranging } from "./arranging.js";
import { FindReplace } from "./find-replace.js";
import { FinishedFiles } from "./finished-files.js";
import { showLeftOut } from "./left-out.js";
import { PartRow } from "./part-row.js";
import { Playback } from "./playback.js";
import { filterChoices, stateWords } from "./project-words.js";
import { Selection } from "./selection.js";
import {
  changePart, changeProject, deleteProject, fileAddress, orderProject, readParts, readProject, savedAddress, speakParts,
} from "../client/projects.js";
import { phrase } from "../lib/phrases.js";

const PAGE = 50; // parts shown at a time
const [BUSY, IDLE] = [1000, 4000]; // ms between two reads
const SETTINGS = /** @type {const} */ ([["project-voice", "voice", String], ["speed", "speed", Number], ["normalize", "normalize", JSON.parse], ["gap", "pause", Number], ["chapter-gap", "chapter_pause", Number], ["scene-gap", "scene_pause", Number]]);
const FILES = [["wav", "WAV"], ["mp3", "MP3"], ["flac", "FLAC"], ["m4b", phrase("project.file.m4b")]];

/** Fires "titled" with {title} when it is known, "deleted" with {id, title, seconds} once it can be restored for so long, and "gone" with {words} when there is no such project any more. */
export class Project extends EventTarget {
  #rows = new Map(); // by part id
  #page = 0;
  #filter = ""; // the state whose parts alone are shown
  #timer = 0;
  #looks = new Latest();
  #changes = new UnderWay(); // to parts
  #leave = new AbortController();
  /** @type {any} */
  #project = null;

  constructor(part, { id, voices, nowPlaying }) {
    super();
    this.part = part;
    this.id = id;
    this.voices = voices;
    this.nowPlaying = nowPlaying;
    this.part("rows").replaceChildren();
    this.part("told").textContent = "";
    this.#offerVoices();
    this.playback = new Playback(id, nowPlaying);
    this.finish = new FinishedFiles(part, { id, signal: this.#leave.signal, run: (work) => this.#do(work) });
    this.arranging = new Arranging(id, () => this.#leave.signal.aborted || this.look());
    this.selection = new Selection(part, { signal: this.#leave.signal });
    this.selection.addEventListener("change", () => this.#markSelected());
    this.finding = new FindReplace(part, { id, signal: this.#leave.signal, ready: () => this.#changes.ended(), changed: () => this.look() });
    this.part("dictionary").open = false;
    this.part("dictionary").dataset.project = id;
    foldCast(part("cast-panel"), { id, voices, signal: this.#leave.signal, playback: this.playback, changed: async () => void (await this.look()), project: () => this.#project });
    this.#listen();
  }

  close() {
    this.#leave.abort();
    this.#looks.end();
    clearTimeout(this.#timer);
  }

  /** Read the project again and again. */
  async look() {
    clearTimeout(this.#timer);
    const isLatest = this.#looks.begin();
    try {
      const [project, parts] = await Promise.all([readProject(this.id), readParts(this.id, this.#page * PAGE, PAGE, this.#filter)]);
      if (!isLatest()) return;
      this.#project = project;
      this.#showProject(project);
      this.#showParts(parts);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (!isLatest()) return;
      if (problem.status === 404) return this.dispatchEvent(new CustomEvent("gone", { detail: { words: phrase("project.gone") } }));
      this.part("told").textContent = problem.why;
    }
    this.#timer = setTimeout(() => this.look(), this.#project?.state === "running" ? BUSY : IDLE);
  }

  #listen() {
    const { signal } = this.#leave;
    const on = (name, type, work) => this.part(name).addEventListener(type, (event) => this.#do(() => work(event)), { signal });
    on("speak", "click", () => this.#afterChanges(() => speakParts(this.id, "missing")));
    on("all", "click", () => this.#afterChanges(() => speakParts(this.id, "all")));
    on("stale", "click", () => this.#afterChanges(() => speakParts(this.id, "stale")));
    on("selected", "click", () => this.#afterChanges(() => this.#speakSelected()));
    on("delete-selected", "click", () => this.#afterChanges(() => this.#deleteSelected()));
    on("pause", "click", () => orderProject(this.id, this.#project?.state === "paused" ? "resume" : "pause"));
    on("cancel", "click", () => orderProject(this.id, "cancel"));
    on("delete", "click", once(() => this.#delete()));
    on("title", "change", ({ target }) => changeProject(this.id, { title: target.value }));
    for (const [name, field, read] of SETTINGS) on(name, "change", ({ target }) => changeProject(this.id, { [field]: read(target.value) }));
    on("hear", "click", () => this.#hearVoice());
    on("earlier", "click", () => this.#turnOver(this.#page - 1));
    on("later", "click", () => this.#turnOver(this.#page + 1));
    on("filter", "change", ({ target }) => this.#show(target.value));
    on("play-all", "click", () => this.#project && this.playback.play(this.#project, null));
    this.part("every").addEventListener("change", ({ target }) => this.selection.set([...this.#rows.keys()], target.checked), { signal });
    this.nowPlaying.addEventListener("show", () => this.#follow(), { signal });
    this.nowPlaying.addEventListener("state", ({ detail }) => (detail.state === "over" ? this.#follow() : this.#mark()), { signal });
  }

  /** Do something and show its result, or the reason for a failure. */
  async #do(work) {
    try {
      this.part("told").textContent = "";
      await work();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (!this.#leave.signal.aborted) this.part("told").textContent = problem.why;
    }
    if (!this.#leave.signal.aborted) await this.look();
  }

  #offerVoices() {
    const options = this.voices.map((voice) => element("option", { value: voice.id, textContent: labelOf(voice) }));
    this.part("project-voice").replaceChildren(element("option", { value: "", textContent: phrase("project.voice.default") }), ...options);
  }

  #hearVoice() {
    const chosen = this.part("project-voice").value;
    return this.playback.sample(this.voices.find(({ id, isFirstChoice }) => (chosen ? id === chosen : isFirstChoice)));
  }

  #showProject(project) {
    const { title, kind, state, parts, settings } = project;
    this.finish.show(project);
    showLeftOut(this.part, project);
    const fill = (name, value) => {
      if (document.activeElement !== this.part(name)) this.part(name).value = value;
    };
    this.part("pauses").hidden = kind === "srt"; // its cues say when each part begins
    fill("title", title);
    this.dispatchEvent(new CustomEvent("titled", { detail: { title } }));
    fill("project-voice", settings.voice ?? "");
    fill("speed", settings.speed);
    fill("normalize", JSON.stringify(settings.normalize));
    for (const [name, field] of [["gap", "pause"], ["chapter-gap", "chapter_pause"], ["scene-gap", "scene_pause"]]) fill(name, settings[field]);
    const summary = stateWords(project);
    if (this.part("state").textContent !== summary) this.part("state").textContent = summary;
    this.part("progress").value = parts.done / parts.total;
    const isUnderWay = state === "running" || state === "paused";
    const missing = parts.new + parts.stale + parts.failed;
    this.part("speak").hidden = !missing;
    this.part("speak").textContent = phrase(parts.done ? "project.speak" : "project.speak.all");
    this.part("stale").hidden = !parts.stale || parts.stale === missing;
    this.part("stale").textContent = phrase("project.speak.stale", { count: parts.stale });
    if (document.activeElement !== this.part("filter")) this.#offerFilters(parts);
    this.part("all").hidden = !parts.done || isUnderWay;
    this.part("pause").hidden = this.part("cancel").hidden = !isUnderWay;
    this.part("pause").textContent = phrase(state === "paused" ? "project.resume" : "project.pause");
    this.part("whole").hidden = !parts.done;
    const left = parts.total - parts.done;
    this.part("left-out").textContent = left > 0 ? phrase("project.leftOut", { count: left }) : "";
    if (!this.part("exports").children.length || this.part("exports").dataset.of !== this.id) this.#offerFiles();
  }

  #offerFilters(parts) {
    this.part("filter").replaceChildren(...filterChoices(parts).map(([value, textContent]) => element("option", { value, textContent })));
    this.part("filter").value = this.#filter;
  }

  #offerFiles() {
    const link = (href, words) => element("a", { href, download: "", textContent: words });
    this.part("exports").dataset.of = this.id;
    this.part("exports").replaceChildren(
      ...FILES.map(([format, words]) => link(savedAddress(this.id, format), words)),
      link(fileAddress(this.id, "chapters"), phrase("project.file.chapters")),
      link(fileAddress(this.id, "subtitles"), phrase("project.file.subtitles")),
      link(fileAddress(this.id, "zip"), phrase("project.file.zip")),
    );
  }

  #showParts({ data, total }) {
    if (!data.length && this.#page) return this.#turnTo(Math.ceil(total / PAGE) - 1); // the page is empty now
    const { total: all } = this.#project.parts;
    const shown = new Map(data.map((part) => [part.id, this.#rows.get(part.id) ?? this.#row()]));
    for (const part of data) shown.get(part.id).show(part, all, all === 1);
    const focused = /** @type {HTMLElement | null} */ (document.activeElement);
    setChildren(this.part("rows"), [...shown.values()].map((row) => row.element));
    if (focused !== document.activeElement && focused?.isConnected) focused.focus(); // its row was moved
    this.#rows = shown;
    this.#mark();
    this.part("pager").hidden = total <= PAGE;
    this.part("range").textContent = phrase("project.range", { first: this.#page * PAGE + 1, last: this.#page * PAGE + data.length, total });
    this.part("earlier").disabled = this.#page === 0;
    this.part("later").disabled = (this.#page + 1) * PAGE >= total;
    this.part("none").hidden = data.length > 0;
    this.#markSelected();
  }

  #row() {
    const row = new PartRow(this.voices);
    const on = (type, work) => row.addEventListener(type, ({ detail }) => this.#do(() => work(row.part, detail)));
    on("change", (part, changes) => this.#changes.add(this.#afterChanges(() => changePart(this.id, part.id, changes))));
    on("again", (part) => this.#afterChanges(() => speakParts(this.id, [part.id])));
    on("play", (part) => this.playback.play(this.#project, part));
    on("arrange", (part, order) => this.#afterChanges(() => this.#arrange(row, order)));
    row.addEventListener("select", ({ detail }) => this.selection.press(row.part.id, row.isSelected, [...this.#rows.keys()], detail.isRange));
    return row;
  }

  /** Leaving a text for a button sends the text, which must not arrive after the button's own change and undo it. */
  async #afterChanges(work) {
    await this.#changes.ended();
    return work();
  }

  async #arrange(row, order) {
    const shown = [...this.#rows.values()];
    const following = shown[shown.indexOf(row) + 1];
    const before = shown[shown.indexOf(row) - 1];
    row.tools.say("");
    try {
      const done = await this.arranging.arrange(row, this.#filter ? null : following?.part, order);
      if (order.verb === "delete") {
        this.selection.set([row.part.id], false);
        (following ?? before)?.tools.toggle.focus();
      }
      if (order.verb === "up" || order.verb === "down") this.#turnToPart(done.position);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      row.tools.say(problem.why);
    }
  }

  #turnToPart(position) {
    const page = Math.floor(position / PAGE);
    if (page !== this.#page && !this.#filter) this.#turnTo(page);
  }

  /** As by its buttons: from the page's first part on. */
  async #turnOver(page) {
    this.#turnTo(page);
    await this.look();
    this.part("every").focus({ preventScroll: true }); // the pager is out of sight
    this.part("rows").closest("table").scrollIntoView({ block: "start" });
  }

  #show(filter) {
    this.#filter = filter;
    this.#turnTo(0);
  }

  #turnTo(page) {
    this.#page = Math.max(0, page);
    this.#rows.clear();
  }

  #markSelected() {
    const rows = [...this.#rows.values()];
    for (const row of rows) row.isSelected = this.selection.has(row.part.id);
    this.part("every").checked = rows.length > 0 && rows.every((row) => row.isSelected);
  }

  async #speakSelected() {
    await speakParts(this.id, this.selection.ids);
    this.selection.clear();
  }

  async #deleteSelected() {
    await this.arranging.delete(this.selection.ids);
    this.selection.clear();
  }

  async #delete() {
    if (!this.#project) return; // it could not be read yet
    const { id, title, parts } = this.#project;
    if (!window.confirm(phrase("project.delete.sure", { title, count: parts.total }))) return;
    const { undo_seconds: seconds } = await deleteProject(id);
    this.playback.pause();
    this.dispatchEvent(new CustomEvent("deleted", { detail: { id, title, seconds } }));
  }

  /** Mark the playing part, and go to its page. */
  #follow() {
    const { heard } = this.playback;
    const page = heard && !this.#filter ? Math.floor(heard.position / PAGE) : this.#page;
    if (page !== this.#page) {
      this.#turnTo(page);
      this.look();
    }
    this.#mark();
  }

  #mark() {
    const { heard } = this.playback;
    for (const [id, row] of this.#rows) {
      row.element.toggleAttribute("aria-current", id === heard?.part);
      row.isPlaying = id === heard?.part && this.playback.isPlaying;
    }
  }
}

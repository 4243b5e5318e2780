// One project opened: how far it is, its parts page by page, what can be done with them, and hearing the whole.

import { Refusal } from "../client/refusal.js";
import { labelOf } from "../client/voices.js";
import { element, setChildren } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { UnderWay } from "../lib/under-way.js";
import { duration } from "../lib/time.js";
import { Arranging } from "./arranging.js";
import { FindReplace } from "./find-replace.js";
import { FinishedFiles } from "./finished-files.js";
import { showLeftOut } from "./left-out.js";
import { PartRow } from "./part-row.js";
import { Recorded } from "../player/track.js";
import { inARow } from "./timeline.js";
import {
  changePart, changeProject, fileAddress, orderProject, readParts, readProject, readTimeline, speakParts,
  savedAddress, takeAddress, timesAddress,
} from "../client/projects.js";
import { phrase } from "../lib/phrases.js";

const PAGE = 50; // parts shown at a time
const [BUSY, IDLE] = [1000, 4000]; // ms between two looks
const FILES = [["wav", "WAV"], ["mp3", "MP3"], ["flac", "FLAC"], ["m4b", "M4B with chapters"]];

/** Fires "titled" with {title} when it is known, "delete" with {id, title}, and "gone" with {words} when there is no such project any more. */
export class Project extends EventTarget {
  #rows = new Map(); // by part id
  #page = 0;
  #timer = 0;
  #looks = new Latest();
  #plays = new Latest();
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
    this.finish = new FinishedFiles(part, { id, signal: this.#leave.signal, run: (work) => this.#do(work) });
    this.arranging = new Arranging(part, { id, signal: this.#leave.signal });
    this.arranging.addEventListener("change", () => this.look());
    this.finding = new FindReplace(part, { id, signal: this.#leave.signal, ready: () => this.#changes.ended(), changed: () => this.look() });
    this.part("dictionary").open = false;
    this.part("dictionary").dataset.project = id;
    this.#listen();
  }

  close() {
    this.#leave.abort();
    this.#looks.end();
    clearTimeout(this.#timer);
  }

  /** Read the project anew, and again and again. */
  async look() {
    clearTimeout(this.#timer);
    const isLatest = this.#looks.begin();
    try {
      const [project, parts] = await Promise.all([readProject(this.id), readParts(this.id, this.#page * PAGE, PAGE)]);
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
    const wait = this.#project?.state === "running" ? BUSY : IDLE;
    this.#timer = setTimeout(() => this.look(), wait);
  }

  #listen() {
    const { signal } = this.#leave;
    const on = (name, type, work) => this.part(name).addEventListener(type, (event) => this.#do(() => work(event)), { signal });
    on("speak", "click", () => this.#afterChanges(() => speakParts(this.id, "missing")));
    on("all", "click", () => this.#afterChanges(() => speakParts(this.id, "all")));
    on("selected", "click", () => this.#afterChanges(() => this.#speakSelected()));
    on("pause", "click", () => orderProject(this.id, this.#project?.state === "paused" ? "resume" : "pause"));
    on("cancel", "click", () => orderProject(this.id, "cancel"));
    this.part("delete").addEventListener("click", () => this.#delete(), { signal });
    on("title", "change", ({ target }) => changeProject(this.id, { title: target.value }));
    on("project-voice", "change", ({ target }) => changeProject(this.id, { voice: target.value }));
    on("normalize", "change", ({ target }) => changeProject(this.id, { normalize: JSON.parse(target.value) }));
    on("gap", "change", ({ target }) => changeProject(this.id, { pause: Number(target.value) }));
    on("chapter-gap", "change", ({ target }) => changeProject(this.id, { chapter_pause: Number(target.value) }));
    on("earlier", "click", () => this.#turnTo(this.#page - 1));
    on("later", "click", () => this.#turnTo(this.#page + 1));
    on("play-all", "click", () => this.#play(null));
    this.part("every").addEventListener("change", ({ target }) => this.#select(target.checked), { signal });
    this.nowPlaying.addEventListener("show", () => this.#follow(), { signal });
    this.nowPlaying.addEventListener("state", ({ detail }) => detail.state === "over" && this.#follow(), { signal });
    this.part("rows").addEventListener("change", () => this.#countSelected(), { signal });
  }

  /** Do something and show what became of it, or why not. */
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

  #showProject(project) {
    const { title, kind, state, parts, seconds, eta_s: eta, settings } = project;
    this.finish.show(project);
    showLeftOut(this.part, project);
    const fill = (name, value) => {
      if (document.activeElement !== this.part(name)) this.part(name).value = value;
    };
    this.part("pauses").hidden = kind === "srt"; // its cues say when each part begins
    fill("title", title);
    this.dispatchEvent(new CustomEvent("titled", { detail: { title } }));
    fill("project-voice", settings.voice ?? "");
    fill("normalize", JSON.stringify(settings.normalize));
    fill("gap", settings.pause);
    fill("chapter-gap", settings.chapter_pause);
    const words = [phrase("project.spoken", { done: parts.done, count: parts.total })];
    if (seconds) words.push(duration(seconds));
    if (state === "running") words.push(eta === null ? phrase("project.speaking") : phrase("project.left", { duration: duration(eta) }));
    if (state === "paused") words.push(phrase("project.paused"));
    if (parts.failed) words.push(phrase("project.failed", { count: parts.failed }));
    if (parts.stale) words.push(phrase("project.stale", { count: parts.stale }));
    const told = words.join(" · ");
    if (this.part("state").textContent !== told) this.part("state").textContent = told;
    this.part("progress").value = parts.done / parts.total;
    const isUnderWay = state === "running" || state === "paused";
    const missing = parts.new + parts.stale + parts.failed;
    this.part("speak").hidden = !missing;
    this.part("speak").textContent = phrase(parts.done ? "project.speak" : "project.speak.all");
    this.part("all").hidden = !parts.done || isUnderWay;
    this.part("pause").hidden = this.part("cancel").hidden = !isUnderWay;
    this.part("pause").textContent = phrase(state === "paused" ? "project.resume" : "project.pause");
    this.part("whole").hidden = !parts.done;
    const left = parts.total - parts.done;
    this.part("left-out").textContent = left > 0 ? phrase("project.leftOut", { count: left }) : "";
    if (!this.part("exports").children.length || this.part("exports").dataset.of !== this.id) this.#offerFiles();
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
    const parts = data.filter(({ id }) => !this.arranging.deleted.has(id));
    const shown = new Map(parts.map((part) => [part.id, this.#rows.get(part.id) ?? this.#row()]));
    for (const part of parts) shown.get(part.id).show(part, total, total - this.arranging.deleted.count === 1);
    const focused = /** @type {HTMLElement | null} */ (document.activeElement);
    setChildren(this.part("rows"), [...shown.values()].map((row) => row.element));
    if (focused !== document.activeElement && focused?.isConnected) focused.focus(); // its row was moved
    this.#rows = shown;
    this.#mark();
    this.part("pager").hidden = total <= PAGE;
    this.part("range").textContent = phrase("project.range", { first: this.#page * PAGE + 1, last: this.#page * PAGE + data.length, total });
    this.part("earlier").disabled = this.#page === 0;
    this.part("later").disabled = (this.#page + 1) * PAGE >= total;
    this.#countSelected();
  }

  #row() {
    const row = new PartRow(this.voices);
    const on = (type, work) => row.addEventListener(type, ({ detail }) => this.#do(() => work(row.part, detail)));
    on("change", (part, changes) => this.#changes.add(this.#afterChanges(() => changePart(this.id, part.id, changes))));
    on("again", (part) => this.#afterChanges(() => speakParts(this.id, [part.id])));
    on("play", (part) => this.#play(part));
    on("arrange", (part, order) => this.#afterChanges(() => this.#arrange(row, order)));
    return row;
  }

  /** Leaving a text for a button sends its words: they must not come after what the button does, and undo that. */
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
      const done = await this.arranging.arrange(row, following?.part, order);
      if (order.verb === "delete") (following ?? before)?.tools.toggle.focus();
      if (order.verb === "up" || order.verb === "down") this.#turnToPart(done.position);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      row.tools.say(problem.why);
    }
  }

  #turnToPart(position) {
    const page = Math.floor(position / PAGE);
    if (page !== this.#page) this.#turnTo(page);
  }

  #turnTo(page) {
    this.#page = Math.max(0, page);
    this.#rows.clear();
    this.part("every").checked = false;
  }

  #select(isSelected) {
    for (const row of this.#rows.values()) row.isSelected = isSelected;
    this.#countSelected();
  }

  #countSelected() {
    const count = [...this.#rows.values()].filter((row) => row.isSelected).length;
    this.part("selected").hidden = !count;
    this.part("selected").textContent = phrase("project.speak.count", { count });
  }

  async #speakSelected() {
    const chosen = [...this.#rows.values()].filter((row) => row.isSelected);
    await speakParts(this.id, chosen.map((row) => row.part.id));
    this.part("every").checked = false;
    this.#select(false);
  }

  #delete() {
    if (!this.#project) return; // it could not be read yet
    const { id, title } = this.#project;
    if (this.nowPlaying.current instanceof Recorded && this.nowPlaying.current.of?.project === id) this.nowPlaying.pause();
    this.dispatchEvent(new CustomEvent("delete", { detail: { id, title } }));
  }

  /** Play a part, the others beside it; null: all that are spoken, one after the other. */
  async #play(part) {
    this.nowPlaying.player.wake();
    const isLatest = this.#plays.begin();
    const { parts } = await readTimeline(this.id);
    if (!isLatest() || !this.#project) return;
    const placed = inARow(parts);
    if (!part) return this.nowPlaying.playRow(placed.map((each) => this.#track(each)), 0, true);
    const at = placed.findIndex(({ take }) => take === part.chosen);
    const one = this.#track({ part: part.id, position: part.position, take: part.chosen });
    const row = at < 0 ? [one] : placed.map((each) => this.#track({ ...each, pause: 0 })); // what is not of its present words is not in the whole
    return this.nowPlaying.playRow(row, Math.max(at, 0), false);
  }

  #track({ part, position, take, pause = 0 }) {
    const name = phrase("project.track", { title: this.#project.title, number: position + 1, total: this.#project.parts.total });
    const of = { project: this.id, part, position };
    return new Recorded({ name, source: takeAddress(this.id, take), pause, of, times: timesAddress(this.id, take) });
  }

  /** Mark the part that is heard, and go to its page. */
  #follow() {
    const heard = this.#heard;
    const page = heard ? Math.floor(heard.position / PAGE) : this.#page;
    if (page !== this.#page) {
      this.#turnTo(page);
      this.look();
    }
    this.#mark();
  }

  /** {part, position} of what the player is about, if it is of this project and not over. */
  get #heard() {
    const { current, isOver } = this.nowPlaying;
    return current instanceof Recorded && current.of?.project === this.id && !isOver ? current.of : null;
  }

  #mark() {
    const heard = this.#heard;
    for (const [id, row] of this.#rows) row.element.toggleAttribute("aria-current", id === heard?.part);
  }
}

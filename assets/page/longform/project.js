// An open project: its progress, settings and panels, and the actions on it.

import { needsKey } from "../client/host.js";
import { Refusal } from "../client/refusal.js";
import { labelOf } from "../client/voices.js";
import { element, showPlaying } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { offerMenu } from "../lib/menu.js";
import { once } from "../lib/once.js";
import { closeOnEscape, isBeingTyped, openBeforeChanging } from "../lib/typing.js";
import { askToNotify, canAsk, DoneNotice } from "./done-notice.js";
import { FINISH, FinishedFiles } from "./finished-files.js";
import { showLeftOut } from "./left-out.js";
import { Panels } from "./panels.js";
import { PartsPanel } from "./parts/parts-panel.js";
import { Playback } from "./playback.js";
import { updateFromFile } from "./sheet.js";
import { stateWords } from "./project-words.js";
import { stoppedAt } from "./stopped-at.js";
import { changeProject, deleteProject, orderProject, readProject, speakParts, undoChange } from "../client/projects.js";
import { Unsaved } from "./unsaved.js";
import { ConflictNote } from "./unsaved-note.js";
import { phrase } from "../lib/phrases.js";
import { sharingItems, sharingWords } from "../shell/sharing.js";
import { offerUndo } from "../trash/undo-toast.js";

const ROOMY = 1500; // px of width from which the settings are shown beside the text at once
const [BUSY, IDLE] = [1000, 4000]; // ms between two reads
const asSeconds = (/** @type {string} */ value) => (value ? Number(value) : -1); // blank, or no number: refused
const SETTINGS = /** @type {const} */ ([["project-voice", "voice", String], ["speed", "speed", Number], ["normalize", "normalize", JSON.parse], ["gap", "pause", asSeconds], ["chapter-gap", "chapter_pause", asSeconds], ["scene-gap", "scene_pause", asSeconds]]);

const FIELDS = Object.fromEntries([["title", "title"], ...SETTINGS, ...Object.keys(FINISH).map((name) => [name, name])]); // title and settings, by the names of their fields

/** Fires "titled" with {title} whenever it is shown, "deleted" with {id, title, seconds} (seconds: how long it can be restored), and "gone" with {words} when the project no longer exists. */
export class Project extends EventTarget {
  #timer = 0;
  #looks = new Latest();
  #leave = new AbortController();
  #ahead = 0; // expected seconds of the audio that is missing
  #unread = ""; // why the last read failed; blank: it did not
  /** @type {any} */
  #project = null;

  constructor(part, { drafts, voices, nowPlaying }) {
    super();
    const { signal } = this.#leave;
    this.part = part;
    const id = (this.id = drafts.project);
    this.drafts = drafts;
    this.voices = voices;
    this.nowPlaying = nowPlaying;
    this.part("told").textContent = "";
    this.#offerVoices();
    this.playback = new Playback(id, nowPlaying, () => signal.aborted || this.look());
    this.unsaved = new Unsaved(drafts, { root: part("project"), fields: FIELDS, signal });
    this.conflict = new ConflictNote(this.unsaved, (work) => this.#do(work), signal);
    this.finish = new FinishedFiles(part, { id, signal, run: (work) => this.#do(work), openParts: (field) => this.#openParts(field), change: (changes) => this.#change(changes) });
    const look = () => this.look();
    const project = () => this.#project;
    this.parts = new PartsPanel(part, {
      id, voices, nowPlaying, signal, look, project, unsaved: this.unsaved, playback: this.playback, run: (work) => this.#do(work), tell: (problem) => this.#tell(problem), open: () => this.panels.show("parts"), mapped: (chapters) => this.#map(chapters),
    });
    this.notice = new DoneNotice(signal);
    this.panels = new Panels(part("project"), part("panels"), {
      id, drafts, voices, signal, project, playback: this.playback, changed: look, goToPart: (position) => this.parts.goTo(position), direct: (parts) => this.parts.direct(parts), marked: () => this.#offerPlaying(),
    });
    this.#inspect(innerWidth >= ROOMY);
    this.part("dictionary").open = false;
    this.part("dictionary").dataset.project = id;
    this.#listen();
  }

  close() {
    this.unsaved.leave();
    this.#leave.abort();
    this.drafts.close();
    this.#looks.end();
    clearTimeout(this.#timer);
  }

  /** Read and show the project, now and at intervals. */
  async look() {
    if (this.#leave.signal.aborted) return; // a step was undone after another project was opened
    clearTimeout(this.#timer);
    const isLatest = this.#looks.begin();
    try {
      const [project] = await Promise.all([readProject(this.id), this.parts.look()]);
      if (!isLatest()) return;
      if (this.part("told").textContent === this.#unread) this.part("told").textContent = "";
      this.#unread = "";
      this.#project = project;
      this.unsaved.see(project);
      this.#showProject(project);
      this.conflict.follow(this.part, project);
      this.parts.show(project);
      this.panels.refresh(project);
      this.playback.follow(project).catch((problem) => this.#tell(problem));
      if (this.unsaved.refusal && !this.part("told").textContent) this.#tell(this.unsaved.refusal); // until it is put right
      this.unsaved.resend(project.right !== "read", (key) => this.parts.list.indexOf(key) >= 0);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (!isLatest()) return;
      if (problem.status === 404) return this.dispatchEvent(new CustomEvent("gone", { detail: { words: this.#goneWords } }));
      this.part("told").textContent = this.#unread = problem.why;
    }
    if (!isLatest()) return;
    const wait = this.#project?.state === "running" ? BUSY : IDLE;
    this.#timer = setTimeout(() => this.look(), wait);
  }

  /** Why the project cannot be read any more: the studio does not tell whether somebody else's was deleted. */
  get #goneWords() {
    const isMine = !needsKey || this.#project?.right === "own";
    return [phrase(isMine ? "project.gone" : "project.unshared"), this.unsaved.size ? phrase("project.gone.kept") : ""].filter(Boolean).join(" ");
  }

  #listen() {
    const { signal } = this.#leave;
    const on = (name, type, work) => this.part(name).addEventListener(type, (event) => this.#do(() => work(event)), { signal });
    on("speak", "click", () => this.parts.changes.after(() => speakParts(this.id, "missing")));
    on("stale", "click", () => this.parts.changes.after(() => speakParts(this.id, "stale")));
    on("pause", "click", () => orderProject(this.id, this.#project?.state === "paused" ? "resume" : "pause"));
    on("cancel", "click", () => orderProject(this.id, "cancel"));
    on("title", "change", ({ target }) => this.#change({ title: target.value }));
    for (const [name, field, read] of SETTINGS) on(name, "change", ({ target }) => this.#change({ [field]: read(target.value) }));
    this.part("project").addEventListener("keydown", openBeforeChanging, { signal });
    closeOnEscape(this.part("inspect"), this.part("inspector"), signal);
    on("inspect", "click", () => this.#inspect(this.part("inspector").hidden));
    on("hear", "click", () => this.#hearVoice());
    on("play-all", "click", () => this.#project && this.playback.play(this.#project, null));
    on("playing", "click", () => this.panels.follow() ?? this.parts.goTo(this.playback.heard?.position ?? 0));
    addEventListener("scroll", () => this.#offerPlaying(), { passive: true, signal });
    for (const type of ["show", "state"]) this.nowPlaying.addEventListener(type, () => this.#showPlaying(), { signal });
    this.#showPlaying();
    offerMenu(this.part("more"), () => this.#rarely(), signal);
    this.#listenToUnsaved();
  }

  /** Change the title or settings. Throws Refusal. */
  #change(changes) {
    this.unsaved.note("", changes);
    return this.unsaved.save("");
  }

  #map(chapters) {
    this.#ahead = chapters.reduce((sum, { expected_s: expected, seconds }) => sum + Math.max(0, expected - seconds), 0);
    this.finish.showChapters(chapters);
  }

  /** Show the parts, and a field of their settings. @param {string} [field] */
  #openParts(field) {
    this.panels.show("parts");
    if (!field) return;
    this.#inspect(true);
    this.part(field).focus();
  }

  /** Show or hide the settings beside the text. */
  #inspect(isShown) {
    this.part("inspector").hidden = !isShown;
    this.part("inspect").setAttribute("aria-expanded", String(isShown));
  }

  #listenToUnsaved() {
    this.unsaved.addEventListener("saved", ({ detail: { key, saved } }) => {
      if (key) return;
      this.#project = saved;
      this.part("told").textContent = "";
      offerUndo(phrase("project.changed"), async () => {
        const done = await undoChange(this.id, saved.replaced);
        if (!this.#leave.signal.aborted) await this.look();
        return done;
      }, false);
    });
    this.unsaved.addEventListener("refused", ({ detail: { problem } }) => {
      this.#tell(problem);
      if (this.#project) this.conflict.follow(this.part, this.#project);
    });
    this.unsaved.addEventListener("gone", ({ detail: { key, position } }) => {
      if (!this.parts.list.row(key)) this.part("told").textContent = phrase("part.gone.kept", { number: position + 1 });
    });
  }

  /** Menu items for actions that are rare or cannot be undone by a second click. */
  #rarely() {
    const parts = this.#project?.parts;
    const isUnderWay = ["running", "paused"].includes(this.#project?.state);
    return [
      ...(this.#project?.right === "read" ? [] : [{ words: phrase("project.again"), run: () => this.#speakAgain(parts.total), isDisabled: !parts?.done || isUnderWay }]),
      ...(this.#project?.right !== "read" && Object.values(this.#project?.settings.columns ?? {}).includes("id") ? [{ words: phrase("sheet.update"), run: () => updateFromFile(this.id, (work) => this.#do(work), (words) => (this.part("told").textContent = words)) }] : []),
      ...(canAsk() ? [{ words: phrase("project.notify"), run: () => askToNotify() }] : []),
      ...(this.#project ? sharingItems(this.#project, (sharing) => this.#do(() => changeProject(this.id, { sharing }))) : []),
      ...(this.#project?.right === "own" ? [{ words: phrase("project.delete"), run: once(() => this.#do(() => this.#delete())), isGrave: true }] : []),
    ];
  }

  #speakAgain(count) {
    if (window.confirm(phrase("project.again.sure", { count }))) this.#do(() => this.parts.changes.after(() => speakParts(this.id, "all")));
  }

  #tell(problem) {
    if (!(problem instanceof Refusal)) throw problem;
    if (this.#leave.signal.aborted) return;
    this.part("told").textContent = problem.why;
    this.part("told").toggleAttribute("data-bad", true);
  }

  /** Run work and show its result, or the reason for a failure. */
  async #do(work) {
    try {
      this.part("told").textContent = "";
      this.part("told").removeAttribute("data-bad");
      await work();
    } catch (problem) {
      this.#tell(problem);
    }
    if (!this.#leave.signal.aborted) await this.look();
  }

  #offerVoices() {
    const options = this.voices.map((voice) => element("option", { value: voice.id, textContent: labelOf(voice) }));
    this.part("project-voice").replaceChildren(element("option", { value: "", textContent: phrase("project.voice.default") }), ...options);
  }

  #hearVoice() {
    const chosen = this.part("project-voice").value;
    const voice = this.voices.find(({ id, isFirstChoice }) => (chosen ? id === chosen : isFirstChoice));
    return voice && this.playback.sample(voice);
  }

  #showProject(project) {
    const { kind, state, parts } = project;
    const { title, ...settings } = { title: project.title, ...project.settings, ...this.unsaved.of("")?.changes };
    if (this.part("project").dataset.right !== project.right) { // what was refused before may be allowed now
      this.part("told").textContent = "";
      for (const row of this.parts.list.rows) row.tools.say("");
    }
    this.part("project").dataset.right = project.right;
    this.part("title").readOnly = project.right === "read";
    this.part("shared").textContent = project.right === "read" ? phrase("sharing.toRead", { by: sharingWords(project) }) : sharingWords(project);
    this.part("more").hidden = !this.#rarely().length;
    this.finish.show({ ...project, settings });
    showLeftOut(this.part, project);
    const fill = (name, value) => {
      const field = this.part(name);
      if (!isBeingTyped(field) && field.value !== String(value)) field.value = value;
    };
    this.part("pauses").hidden = kind === "srt"; // its cues set when each part starts
    fill("title", title);
    this.dispatchEvent(new CustomEvent("titled", { detail: { title } }));
    this.notice.see(project);
    fill("project-voice", settings.voice ?? "");
    fill("speed", settings.speed);
    fill("normalize", JSON.stringify(settings.normalize));
    for (const [name, field] of [["gap", "pause"], ["chapter-gap", "chapter_pause"], ["scene-gap", "scene_pause"]]) fill(name, settings[field]);
    const summary = stateWords(project, this.#ahead);
    if (this.part("state").textContent !== summary) this.part("state").textContent = summary;
    this.part("progress").value = parts.done / parts.total;
    const isUnderWay = state === "running" || state === "paused";
    const missing = parts.new + parts.stale + parts.failed;
    const focused = document.activeElement;
    this.part("speak").hidden = !missing;
    this.part("speak").classList.toggle("long-main", !isUnderWay);
    this.part("speak").textContent = parts.done ? phrase("project.speak", { count: missing }) : phrase("project.speak.all");
    this.part("stale").hidden = !parts.stale || parts.stale === missing;
    this.part("stale").textContent = phrase("project.speak.stale", { count: parts.stale });
    this.part("pause").hidden = this.part("cancel").hidden = !isUnderWay;
    showPlaying(this.part("pause"), state !== "paused", phrase(state === "paused" ? "project.resume" : "project.pause"));
    this.#offerPlaying();
    this.part("play-all").hidden = !parts.done;
    this.part("play-all").classList.toggle("long-main", !missing);
    const isGone = ["speak", "stale", "pause", "cancel"].some((name) => this.part(name) === focused && this.part(name).hidden);
    if (isGone) this.part(isUnderWay ? "pause" : missing ? "speak" : "play-all").focus();
  }

  /** Make the button that plays all parts pause and resume them, so that a second click does not restart. */
  #showPlaying() {
    const { isPlayingAll, isPlaying } = this.playback;
    this.#offerPlaying();
    this.part("play-all").textContent = phrase(!isPlayingAll ? (stoppedAt(this.id) ? "project.playAll.on" : "project.playAll") : isPlaying ? "project.playAll.pause" : "project.playAll.resume");
  }

  /** Offer to go to the playing part while it is out of view. */
  #offerPlaying() {
    const marked = [...this.part("project").querySelectorAll(".long-parts > [aria-current], .prose-text [data-playing]")].find((one) => one.checkVisibility());
    const { top, bottom } = marked?.getBoundingClientRect() ?? { top: innerHeight, bottom: 0 };
    const isElsewhere = !["parts", "read"].includes(this.panels.shown);
    this.part("playing").hidden = !this.playback.heard || isElsewhere || (bottom > 0 && top < (document.getElementById("dock")?.getBoundingClientRect().top || innerHeight));
  }

  async #delete() {
    if (!this.#project) return; // not read yet
    const { id, title, parts } = this.#project;
    if (!window.confirm(phrase("project.delete.sure", { title, count: parts.total }))) return;
    const { undo_seconds: seconds } = await deleteProject(id);
    this.playback.pause();
    this.dispatchEvent(new CustomEvent("deleted", { detail: { id, title, seconds } }));
  }
}

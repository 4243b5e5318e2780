// The parts of an open project: the chapter map, the list with its filter and search, the selection, and the playing part.

import { Refusal } from "../../client/refusal.js";
import { readCast, readOutline, readPartIds, speakParts } from "../../client/projects.js";
import { element } from "../../lib/elements.js";
import { Latest } from "../../lib/latest.js";
import { phrase } from "../../lib/phrases.js";
import { focusAfterwards, isSingleKey } from "../../lib/typing.js";
import { Arranging } from "./arranging.js";
import { Chapters } from "./chapters.js";
import { Direction } from "./direction.js";
import { takePartDrops } from "./drag-parts.js";
import { FindReplace } from "./find-replace.js";
import { PartChanges } from "./part-changes.js";
import { PartList } from "./part-list.js";
import { filterChoices } from "../project-words.js";
import { isInView } from "../../shell/opened.js";
import { Selection } from "./selection.js";
import { TakeComparison } from "./take-comparison.js";

export class PartsPanel {
  /** The state of the project that the map shows; null: none yet. @type {string | null} */ #outlined = null;
  #maps = new Latest();
  #heard = -1; // position of the part marked as playing; -1: none
  #filters = ""; // the filters offered, as JSON
  /** @type {any[]} */ #characters = [];

  /**
   * run: runs work, shows why it failed, and reads the project again; tell: shows a refusal; open: shows this panel.
   *
   * @param {(name: string) => any} part
   * @param {{ id: string, voices: any[], nowPlaying: any, playback: import("../playback.js").Playback, signal: AbortSignal, project: () => any, unsaved: import("../unsaved.js").Unsaved,
   *   run: (work: () => unknown) => Promise<void>, tell: (problem: unknown) => void, open: () => void, mapped: (chapters: any[]) => void, look: () => Promise<unknown> }} of
   */
  constructor(part, of) {
    const { id, voices, signal, look } = of;
    this.part = part;
    this.of = of;
    this.arranging = new Arranging(id, of.unsaved, { list: () => this.list, changed: () => this.#changed(), found: (one, order) => this.#arranged(one, order) });
    this.comparison = new TakeComparison(of.playback, signal);
    this.comparison.addEventListener("done", ({ detail }) => of.run(() => this.#endComparison(detail)));
    this.comparison.addEventListener("fail", ({ detail }) => of.tell(detail.problem));
    this.selection = new Selection(part, { signal, idsBetween: (first, last) => readPartIds(id, this.list.filter, first, last - first + 1), all: () => readPartIds(id, "", 0, of.project().parts.total) });
    this.direction = new Direction(part, { signal, voices, attempt: (work) => this.#attempt(work) });
    this.list = new PartList(part("rows"), {
      id, voices, signal, dress: (row) => this.#dress(row), mark: (row) => this.#markRow(row), total: () => of.project()?.parts.total ?? 0, isUnsaved: (key) => Boolean(of.unsaved.of(key)), read: (one) => of.unsaved.found(one.id, one),
    });
    this.changes = new PartChanges(of.unsaved, { list: this.list, mark: (row) => this.#markRow(row), arranging: this.arranging, signal });
    this.chapters = new Chapters(of.unsaved.drafts, part("map"), part("chapters"), signal);
    this.finding = new FindReplace(part, { id, signal, ready: () => this.changes.ended(), changed: look, found: () => this.#mark(), go: (position, isEntered) => this.goTo(position, true, isEntered) });
    this.#listen();
    this.#listenToSelection();
  }

  /** Read the parts near the window, the first time together with the map, so that the layout does not shift later. Throws Refusal. */
  async look() {
    const [isNew] = await Promise.all([this.#outlined === null && this.#readMap(), this.list.look()]);
    if (isNew) this.#outlined = "";
    await this.arranging.settle();
  }

  /** Read and show chapters and cast; false if the project was left or has changed meanwhile. Throws Refusal. */
  async #readMap() {
    const [isLatest, chapters, cast] = await Promise.all([this.#maps.begin(), readOutline(this.of.id), readCast(this.of.id)]);
    if (this.of.signal.aborted || !isLatest()) return false;
    this.chapters.show(chapters);
    this.of.mapped(chapters);
    this.direction.showCast((this.#characters = cast.data));
    this.#mark();
    return true;
  }

  /** Show the project's current state. */
  show(project) {
    if (document.activeElement !== this.part("filter")) this.#offerFilters(project.parts);
    this.part("none").hidden = this.list.count > 0;
    this.#markSelected();
    this.#attempt(this.#outline(project));
  }

  /** Read the map only after changes, as it adds up all texts. Throws Refusal. */
  async #outline({ parts, changed_at: changed, seconds, settings }) {
    const now = JSON.stringify([parts, changed, seconds, settings.speed]);
    if (now === this.#outlined) return;
    if (this.#outlined === "") return (this.#outlined = now); // just read together with the project
    if (!(await this.#readMap())) return;
    this.#outlined = now;
    this.#followScroll();
  }

  #listen() {
    const { signal, nowPlaying, run } = this.of;
    this.part("filter").addEventListener("change", ({ target }) => run(() => this.#filter(target.value)), { signal });
    this.list.addEventListener("fail", ({ detail }) => this.of.tell(detail.problem));
    this.chapters.addEventListener("go", ({ detail }) => this.#attempt(this.goTo(detail.chapter.position)));
    this.chapters.addEventListener("rename", ({ detail }) => run(() => this.changes.inTurn(() => this.#rename(detail))));
    this.chapters.addEventListener("speak", ({ detail }) => run(() => this.changes.after(() => speakParts(this.of.id, "missing", detail.chapter.id))));
    addEventListener("scroll", () => this.#followScroll(), { passive: true, signal });
    takePartDrops(this.part("rows"), signal, (id) => this.list.row(id)?.part, (moved, target, isAfter) => run(() => this.#drop(moved, target, isAfter)));
    nowPlaying.addEventListener("show", () => this.#follow(), { signal });
    nowPlaying.addEventListener("state", ({ detail }) => (detail.state === "over" ? this.#follow() : this.#mark()), { signal });
    document.addEventListener("keydown", (event) => this.#key(event), { signal });
  }

  #listenToSelection() {
    const { signal, run } = this.of;
    const on = (name, type, work) => this.part(name).addEventListener(type, (event) => run(() => work(event)), { signal });
    on("every", "change", ({ target }) => this.#selectAll(target.checked));
    on("selected", "click", () => this.#useSelected((ids) => speakParts(this.of.id, ids)));
    on("delete-selected", "click", () => this.#useSelected((ids) => this.arranging.delete(ids)));
    this.selection.addEventListener("change", () => this.#markSelected());
    this.direction.addEventListener("set", ({ detail }) => run(() => this.changes.after(() => this.selection.use((ids) => this.arranging.changeAll(ids, detail.changes)))));
  }

  async #rename({ chapter, title, read }) {
    await this.arranging.rename(chapter, title, read).then(() => this.chapters.forget(chapter.id, title), (problem) => {
      this.chapters.write(chapter.id, title, problem.isOutdated);
      throw problem;
    }).finally(() => this.#forgetMap());
  }

  /** Read the project after a step was undone. */
  #changed() {
    this.#forgetMap();
    this.direction.clear();
    return this.of.signal.aborted || this.of.look();
  }

  /** Have the map read again even if the project was read already: the map may have been read before the change. */
  #forgetMap() {
    this.#maps.end();
    if (this.#outlined !== null) this.#outlined = "changed";
  }

  /** Show why work that changes nothing failed. */
  #attempt(work) {
    return work.catch((problem) => this.of.tell(problem));
  }

  /** Slash focuses the search field, S the first action for the selected parts. */
  #key(event) {
    const name = { "/": "find", s: "selected" }[event.key.toLowerCase()];
    if (!name || !isSingleKey(event) || !this.part(name).checkVisibility()) return;
    event.preventDefault();
    this.part(name).focus();
  }

  #offerFilters(parts) {
    const groups = filterChoices(parts, this.#characters, this.list.filter);
    const filters = JSON.stringify(groups);
    if (filters !== this.#filters) this.part("filter").replaceChildren(...groups.flatMap(({ label, choices }) => {
      const options = choices.map(([value, textContent]) => element("option", { value, textContent }));
      return label ? [element("optgroup", { label }, options)] : options;
    }));
    this.#filters = filters;
    this.part("filter").value = this.list.filter;
    if (this.part("filter").selectedIndex < 0) this.#attempt(this.#filter("")); // the character was deleted
  }

  #dress(row) {
    const on = (type, work) => row.addEventListener(type, ({ detail }) => this.of.run(() => work(row.part, detail)));
    row.addEventListener("type", ({ detail }) => this.changes.note(row, detail));
    row.addEventListener("write", ({ detail }) => this.of.unsaved.write(row.part.id, detail.text, row.part.position));
    on("change", (part, changes) => this.changes.save(row, changes));
    on("settle", (part, { isMine }) => this.changes.settle(row, isMine));
    on("again", (part) => this.changes.after(() => speakParts(this.of.id, [part.id])));
    row.addEventListener("compare", () => this.comparison.begin(row.part));
    on("play", (part) => this.of.playback.play(this.of.project(), part, this.of.playback.isPlayingAll));
    on("arrange", (part, order) => this.changes[order.verb === "mend" ? "after" : "inTurn"](() => this.#arrange(part, order)).finally(() => order.verb === "insert" && (row.tools.isAdding = false)));
    row.addEventListener("select", ({ detail }) => this.#attempt(this.selection.press(row.part.id, this.list.indexOf(row.part.id), row.isSelected, detail.isRange)));
  }

  async #arrange(part, order) {
    const row = this.list.row(part.id); // it may have left the page
    const [following, before] = [1, -1].map((step) => this.list.partAt(this.list.indexOf(part.id) + step));
    try {
      await this.arranging.arrange(row?.part ?? part, this.list.filter ? null : following, order);
      this.#arranged(part, order);
      if (order.verb !== "delete") return;
      this.selection.set([part.id], false);
      focusAfterwards(this.list.row((following ?? before)?.id)?.tools.toggle);
    } catch (problem) {
      if (!(problem instanceof Refusal) || !row) throw problem;
      row.tools.say(problem.why);
    }
  }

  /** Tidy up after an order was carried out, perhaps without an answer. */
  #arranged({ id }, { verb, text }) {
    this.part("told").textContent = "";
    this.list.row(id)?.tools.say("");
    this.selection.forgetAnchor();
    if (verb === "insert" && this.of.unsaved.of(id)?.below === text) this.of.unsaved.write(id, "");
  }

  /** Return the focus to where the comparison began, and choose the take to keep, if any. */
  async #endComparison({ part, kept }) {
    const button = () => this.list.row(part.id)?.compare;
    if (!button()?.checkVisibility()) await this.goTo(part.position);
    button()?.focus();
    if (!kept) return;
    const words = phrase("part.compare.kept", { number: part.position + 1, take: kept.number });
    await this.changes.after(() => this.arranging.choose(part, kept.id, words));
  }

  /** Move a part to where it was dropped: before or after another part, which may be gone. */
  #drop(moved, target, isAfter) {
    const place = (others, at) => (others.includes(target.id) ? others.indexOf(target.id) + (isAfter ? 1 : 0) : at);
    return this.changes.after(() => this.arranging.move(moved, place).then(() => this.selection.forgetAnchor()));
  }

  /** Show a part below the sticky bar; isFound: marks it as a search match; isEntered: focuses its text. Throws Refusal. */
  async goTo(position, isFound = false, isEntered = false) {
    this.of.open();
    if (this.list.filter) await this.#filter("");
    if (!(await this.list.reveal(position, this.#head))) return;
    for (const row of this.list.rows) {
      const isIt = row.part.position === position && !row.isGone;
      row.element.toggleAttribute("data-found", isFound && isIt);
      if (isEntered && isIt) row.enter();
    }
  }

  /** Show these parts, selected in place of others. Throws Refusal. */
  async direct(parts) {
    await this.goTo(parts[0].position);
    this.selection.clear();
    this.selection.set(parts.map(({ id }) => id), true);
  }

  /** Height of the bar that stays above the parts, with a margin, in px; on a phone only the search stays, in a low window only while it has the focus. */
  get #head() {
    const bars = ["sticky", "find-form"].map((name) => this.part(name)).filter((one) => getComputedStyle(one).position === "sticky");
    return Math.max(0, ...bars.map((bar) => bar.offsetHeight)) + 8;
  }

  #followScroll() {
    const part = this.list.partAt(this.list.list.firstSeen(this.#head + 1));
    if (part) this.chapters.follow(part.position);
  }

  async #filter(filter) {
    this.part("filter").value = filter;
    this.selection.forgetAnchor();
    this.list.show(filter);
    await this.list.look();
    const top = this.part("rows").getBoundingClientRect().top - this.#head;
    if (top < 0) scrollBy(0, top);
  }

  #markSelected() {
    if (!this.selection.ids.length) this.#leaveSelection();
    this.#mark();
    this.part("every").checked = this.list.count > 0 && this.selection.ids.length >= this.list.count;
  }

  /** Reset the bar of an empty selection; move the focus from it to a part that was selected, or else to one in view. */
  #leaveSelection() {
    const isInBar = this.part("selection").parentElement.contains(document.activeElement);
    this.direction.reset();
    if (!isInBar) return;
    const seen = this.list.partAt(this.list.list.firstSeen(this.#head));
    (this.list.rows.find((row) => row.isSelected && isInView(row.box)) ?? this.list.row(seen?.id))?.box.focus();
  }

  async #selectAll(isSelected) {
    if (!isSelected) return this.selection.clear();
    await this.selection.setInTurn(readPartIds(this.of.id, this.list.filter, 0, this.list.count), true);
  }

  /** Do something with the selected parts, which then are selected no longer. Throws Refusal. */
  #useSelected(work) {
    return this.changes.after(() => this.selection.use((ids) => work(ids).then(() => this.selection.clear())));
  }

  /** Mark the playing part, and scroll to it if the previous one is in view. */
  #follow() {
    const { heard } = this.of.playback;
    const before = this.#heard;
    this.#heard = heard?.position ?? -1;
    const isLookedAt = before >= 0 && this.list.list.isSeen(before, this.#head);
    if (heard && !this.list.filter && isLookedAt && !this.list.list.isSeen(heard.position, this.#head)) {
      this.#attempt(this.list.reveal(heard.position, this.#head));
    }
    this.#mark();
  }

  #mark() {
    for (const row of this.list.rows) this.#markRow(row);
  }

  #markRow(row) {
    row.showUnsaved(this.of.unsaved.of(row.part.id));
    row.found = this.finding?.pattern ?? null;
    row.isSelected = this.selection.has(row.part.id);
    row.speaker = this.#characters.find(({ id }) => id === row.part.character)?.name ?? "";
    row.element.toggleAttribute("aria-current", row.part.id === this.of.playback.heard?.part);
    row.isPlaying = row.element.hasAttribute("aria-current") && this.of.playback.isPlaying;
  }
}

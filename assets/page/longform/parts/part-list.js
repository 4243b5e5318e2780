// The parts of a project as one long list: parts near the window are fetched and drawn, the others only counted.

import { readAllPartIds, readParts } from "../../client/projects.js";
import { VirtualList } from "./virtual-list.js";
import { PartRow } from "./part-row.js";

const [LEAST, MOST] = [40, 200]; // parts per request
/** What is shown of a part that is gone, beside its text. */
const GONE = { state: "new", text: "", chapter: "", name: "", columns: {}, start: null, end: null, takes: [], chosen: null, seconds: null, voice: null, character: null, speed: null, temperature: null, top_p: null, top_k: null, pause: null };

/** Fires "fail" with {problem} when parts cannot be fetched during scrolling. */
export class PartList extends EventTarget {
  /** Loaded parts, by index among the parts that match the filter. @type {Map<number, any>} */
  #parts = new Map();
  /** @type {Map<string, PartRow>} */
  #rows = new Map(); // rows in the page, by part id
  /** @type {PartRow[]} */
  #spare = [];
  #filter = "";
  #shown = [0, LEAST];
  /** Number of calls of `reveal`. */
  #reveals = 0;
  #turn = 0; // counts changes of the list: responses from before the latest are ignored
  /** @type {Map<string, Promise<void>>} */
  #asked = new Map();

  /**
   * dress: adds listeners to a new row; mark: shows whether a row is selected and playing; total: number of all parts; isUnsaved: whether a part has unsaved changes; read: called with each part that was read.
   *
   * @param {HTMLElement} box
   * @param {{ id: string, voices: any[], signal: AbortSignal, dress: (row: PartRow) => void, mark: (row: PartRow) => void, total: () => number, isUnsaved: (id: string) => boolean, read: (part: any) => void }} project
   */
  constructor(box, project) {
    super();
    this.project = project;
    this.list = new VirtualList(box, { draw: (first, last) => this.#draw(first, last), release: (row) => this.#release(row), keeps: (row, isExtra) => this.#keeps(row, isExtra) }, project.signal);
  }

  get filter() {
    return this.#filter;
  }

  /** Number of parts that match the filter. */
  get count() {
    return this.list.count;
  }

  /** The rows in the page, in order. */
  get rows() {
    return [...this.#rows.values()];
  }

  /** Change the filter; then read its parts with `look`. */
  show(filter) {
    this.#filter = filter;
    this.#begin();
    this.list.forget();
    this.#shown = [0, LEAST];
  }

  /** Forget all loaded parts and pending requests. */
  #begin() {
    this.#turn += 1;
    this.#asked.clear();
    this.#parts.clear();
  }

  /** Read the parts near the window again and draw them. Throws Refusal. */
  async look() {
    const [first, last] = this.#shown;
    const turn = this.#turn;
    const { data, total } = await readParts(this.project.id, first, Math.min(MOST, Math.max(LEAST, last - first)), this.#filter);
    if (turn !== this.#turn) return;
    this.#begin(); // the others may have moved
    this.#put(first, data, total);
    if (!data.length && total) this.#shown = [Math.max(0, total - LEAST), total];
    this.list.draw();
    await this.#findMissing();
  }

  /** Mark the rows that were kept although their part is not listed there any more, if it is gone. Throws Refusal. */
  async #findMissing() {
    const missing = this.list.extras.flatMap(([element]) => this.rows.filter((row) => row.element === element && row.isGone === null));
    if (!missing.length) return;
    const ids = new Set(await readAllPartIds(this.project.id));
    for (const row of missing) {
      row.isGone = !ids.has(row.part.id);
      this.project.mark(row);
    }
  }

  /** Show a deleted part because it has unsaved text. @param {string} id @param {number} position where it was */
  showGone(id, position) {
    const row = this.row(id) ?? this.#newRow({ ...GONE, id, position });
    row.isGone = true;
    this.project.mark(row);
    if (!row.element.isConnected) this.list.add(row.element, position);
  }

  /** Show a part that the filter leaves out below another one, because its text is being typed. Returns its row. */
  showBelow(id, part) {
    const row = this.#newRow(part);
    row.isGone = false;
    this.project.mark(row);
    this.list.add(row.element, this.indexOf(id) + 1);
    this.list.draw();
    return row;
  }

  /** Whether a row stays that is not listed in its place any more: while it has the focus, or text that is saved nowhere else. */
  #keeps(element, isExtra) {
    const { dataset } = element;
    return element.contains(document.activeElement) || (isExtra && this.project.isUnsaved(dataset.part ?? ""));
  }

  /** Ignore pending responses, which are older than a change. */
  outdate() {
    this.#turn += 1;
    this.#asked.clear();
  }

  /** Show a part that was just saved. */
  update(part) {
    this.outdate();
    const index = this.indexOf(part.id);
    if (index >= 0) this.#parts.set(index, part);
    this.row(part.id)?.show(part, this.project.total());
    this.list.redraw();
  }

  /** Scroll a part to `offset` px below the top, by its index; false if a later call has superseded this. Throws Refusal. */
  async reveal(index, offset) {
    const reveals = (this.#reveals += 1);
    this.list.scrollTo(index, offset);
    do await this.#fetch(Math.max(0, index - 10), index + LEAST);
    while (reveals === this.#reveals && index < this.list.count && !this.#parts.has(index)); // the list changed meanwhile
    if (reveals !== this.#reveals) return false;
    this.list.scrollTo(index, offset);
    return true;
  }

  partAt(index) {
    return this.#parts.get(index);
  }

  indexOf(id) {
    for (const [index, part] of this.#parts) if (part.id === id) return index;
    return -1;
  }

  row(id) {
    return this.#rows.get(id);
  }

  #put(first, data, total) {
    for (const [i, part] of data.entries()) {
      this.#parts.set(first + i, part);
      this.project.read(part);
    }
    this.list.count = total;
  }

  #draw(first, last) {
    this.#shown = [first, last];
    const rows = new Map();
    let missing = false;
    for (let index = first; index < last; index += 1) {
      const part = this.#parts.get(index);
      if (part) rows.set(index, this.#rowOf(part).element);
      else missing = true;
    }
    if (missing) this.#fetch(first, last).catch((problem) => this.dispatchEvent(new CustomEvent("fail", { detail: { problem } })));
    return rows;
  }

  #rowOf(part) {
    const row = this.#rows.get(part.id) ?? this.#newRow(part);
    row.isGone = null;
    row.show(part, this.project.total());
    this.project.mark(row);
    return row;
  }

  #newRow(part) {
    const row = this.#spare.pop() ?? new PartRow(this.project.voices);
    if (!row.part) this.project.dress(row);
    this.#rows.set(part.id, row);
    row.show(part, this.project.total());
    return row;
  }

  #release(element) {
    for (const [id, row] of this.#rows) {
      if (row.element !== element) continue;
      this.#rows.delete(id);
      row.clear();
      this.#spare.push(row);
    }
  }

  /** Fetch the parts between two indexes that are not loaded yet. */
  #fetch(first, last) {
    let from = first;
    while (from < last && this.#parts.has(from)) from += 1;
    let until = Math.min(last, from + MOST);
    while (until > from && this.#parts.has(until - 1)) until -= 1;
    if (until <= from) return Promise.resolve();
    const key = `${from}-${until}`;
    const known = this.#asked.get(key);
    if (known) return known;
    const turn = this.#turn;
    const work = readParts(this.project.id, from, until - from, this.#filter).then(({ data, total }) => {
      if (turn !== this.#turn) return;
      this.#asked.delete(key);
      this.#put(from, data, total);
      this.list.redraw();
    });
    this.#asked.set(key, work);
    return work;
  }
}

// The parts of a project as one long list: those near the window are fetched and drawn, the others are only counted.

import { readParts } from "../../client/projects.js";
import { VirtualList } from "./virtual-list.js";
import { PartRow } from "./part-row.js";

const [LEAST, MOST] = [40, 200]; // parts of one request

/** Fires "fail" with {problem} when parts cannot be fetched while the list is scrolled. */
export class PartList extends EventTarget {
  /** What is known, by index among the parts that the filter shows. @type {Map<number, any>} */
  #parts = new Map();
  /** @type {Map<string, PartRow>} */
  #rows = new Map(); // those in the page, by part id
  /** @type {PartRow[]} */
  #spare = [];
  #filter = "";
  #shown = [0, LEAST];
  /** How many parts have been gone to. */
  #reveals = 0;
  #turn = 0; // of what the list shows: answers of an earlier one do not count
  /** @type {Map<string, Promise<void>>} */
  #asked = new Map();

  /**
   * dress: gives a new row its listeners; mark: shows on a row whether it is selected and heard; total: of all parts.
   *
   * @param {HTMLElement} box
   * @param {{ id: string, voices: any[], signal: AbortSignal, dress: (row: PartRow) => void, mark: (row: PartRow) => void, total: () => number }} project
   */
  constructor(box, project) {
    super();
    this.project = project;
    this.list = new VirtualList(box, { draw: (first, last) => this.#draw(first, last), release: (row) => this.#release(row) }, project.signal);
  }

  get filter() {
    return this.#filter;
  }

  /** How many parts the filter shows. */
  get count() {
    return this.list.count;
  }

  /** The rows in the page, in order. */
  get rows() {
    return [...this.#rows.values()];
  }

  /** Show other parts; read them with `look`. */
  show(filter) {
    this.#filter = filter;
    this.#begin();
    this.list.forget();
    this.#shown = [0, LEAST];
  }

  /** Forget what was read before. */
  #begin() {
    this.#turn += 1;
    this.#asked.clear();
    this.#parts.clear();
  }

  /** Read those near the window again, and draw them. Raises Refusal. */
  async look() {
    const [first, last] = this.#shown;
    const turn = this.#turn;
    const { data, total } = await readParts(this.project.id, first, Math.min(MOST, Math.max(LEAST, last - first)), this.#filter);
    if (turn !== this.#turn) return;
    this.#begin(); // the others may have moved
    this.#put(first, data, total);
    if (!data.length && total) this.#shown = [Math.max(0, total - LEAST), total];
    this.list.draw();
  }

  /** A part as it has just been saved: answers under way are from before. */
  update(part) {
    this.#turn += 1;
    this.#asked.clear();
    const index = this.indexOf(part.id);
    if (index >= 0) this.#parts.set(index, part);
    this.row(part.id)?.show(part, this.project.total());
    this.list.redraw();
  }

  /** Go to a part by its index, below what sticks to the top; false if another one was gone to meanwhile. Raises Refusal. */
  async reveal(index, offset) {
    const reveals = (this.#reveals += 1);
    this.list.scrollTo(index, offset);
    await this.#fetch(Math.max(0, index - 10), index + LEAST);
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
    for (const [i, part] of data.entries()) this.#parts.set(first + i, part);
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
    let row = this.#rows.get(part.id);
    if (!row) {
      row = this.#spare.pop() ?? new PartRow(this.project.voices);
      if (!row.part) this.project.dress(row);
      this.#rows.set(part.id, row);
    }
    row.show(part, this.project.total());
    this.project.mark(row);
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

  /** Parts between two indexes that are not known yet. */
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

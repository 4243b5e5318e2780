// A long list with only the rows near the window in the page; it scrolls with the page, and rows can have any height.

const MARGIN = 700; // px beyond the window in which rows are drawn
const USUAL = 110; // px; assumed row height until one is measured

/**
 * The owner supplies the rows: `draw(first, last)` returns the available rows for these indexes, by index; `release(row)` is
 * called for each row that leaves the page. `keeps(row, isExtra)`: whether a row stays that was not returned; isExtra: its place
 * has another row by now, above which it is shown, not counted.
 */
export class VirtualList {
  /** @type {Map<number, HTMLElement>} */
  #rows = new Map();
  /** Rows that were kept, with the indexes of those that they are above. @type {Map<HTMLElement, number>} */
  #extras = new Map();
  /** Heights by index, NaN where unknown. @type {Float64Array} */
  #heights = new Float64Array(0);
  /** @type {Float64Array | null} */
  #tops = null;
  /** @type {WeakMap<Element, number>} */
  #measured = new WeakMap();
  #average = USUAL;
  #isDrawing = false;
  /** The row scrolled to, until the page scrolls otherwise: heights around it are measured only later. at: scroll position then. @type {{ index: number, offset: number, at: number } | null} */
  #target = null;
  #observer = new ResizeObserver((entries) => this.#measure(entries));

  /**
   * @param {HTMLElement} box
   * @param {{ draw: (first: number, last: number) => Map<number, HTMLElement>, release: (row: HTMLElement) => void, keeps: (row: HTMLElement, isExtra: boolean) => boolean }} owner
   * @param {AbortSignal} signal
   */
  constructor(box, owner, signal) {
    this.box = box;
    this.owner = owner;
    this.signal = signal;
    box.replaceChildren();
    const later = () => this.redraw();
    addEventListener("scroll", () => this.#scrolled(), { passive: true, signal });
    addEventListener("resize", later, { signal });
    box.addEventListener("focusout", () => this.#extras.size && later(), { signal });
    const seen = new ResizeObserver(later); // the list may have been hidden
    seen.observe(/** @type {Element} */ (box.parentElement));
    signal.addEventListener("abort", () => [this.#observer, seen].forEach((observer) => observer.disconnect()));
  }

  /** Number of all rows. */
  set count(count) {
    if (count === this.#heights.length) return;
    const heights = new Float64Array(count).fill(Number.NaN);
    heights.set(this.#heights.subarray(0, count));
    this.#heights = heights;
    this.#tops = null;
  }

  get count() {
    return this.#heights.length;
  }

  /** Forget the heights, for different rows. */
  forget() {
    this.#target = null;
    this.#heights.fill(Number.NaN);
    this.#tops = null;
  }

  /** Return the index of the first row visible below `offset` px of the window. */
  firstSeen(offset = 0) {
    return this.#indexAt(offset - this.box.getBoundingClientRect().top);
  }

  /** Draw in the next frame. */
  redraw() {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    requestAnimationFrame(() => {
      this.#isDrawing = false;
      this.draw();
    });
  }

  /** Draw the rows near the window now. */
  draw() {
    if (this.signal.aborted || !this.box.checkVisibility()) return;
    const top = this.box.getBoundingClientRect().top;
    const first = this.#indexAt(-top - MARGIN);
    const last = Math.min(this.count, this.#indexAt(innerHeight - top + MARGIN) + 1);
    const rows = this.owner.draw(first, last);
    const drawn = new Set(rows.values());
    const before = [...this.#rows].map(([index, row]) => /** @type {const} */ ([row, index, index >= this.count || rows.has(index)]));
    const extras = new Map();
    for (const [row, index, isExtra] of [...before, ...[...this.#extras].map(([one, at]) => /** @type {const} */ ([one, at, true]))]) {
      if (drawn.has(row)) continue;
      if (!this.owner.keeps(row, isExtra)) this.#drop(row);
      else if (isExtra) extras.set(row, Math.min(index, this.count));
      else rows.set(index, row);
    }
    if (extras.size || this.#extras.size) this.#tops = null;
    this.#extras = extras;
    this.#rows = new Map([...rows].sort(([a], [b]) => a - b));
    this.#place();
  }

  /** Show a row that is not counted, for as long as the owner keeps it. @param {HTMLElement} row @param {number} index of the row below it */
  add(row, index) {
    this.#extras.set(row, index);
    this.redraw();
  }

  /** The rows that are not counted, with the indexes of those below them. */
  get extras() {
    return [...this.#extras];
  }

  /** Scroll so that a row is `offset` px below the top of the window. @param {number} index @param {number} offset */
  scrollTo(index, offset) {
    this.#target = { index, offset, at: 0 };
    this.#goToTarget();
    this.draw();
    this.#goToTarget();
  }

  #goToTarget() {
    if (!this.#target) return;
    const { index, offset } = this.#target;
    scrollBy(0, this.box.getBoundingClientRect().top + this.#offsets[index] - offset);
    this.#target.at = scrollY;
  }

  #scrolled() {
    if (this.#target && Math.abs(scrollY - this.#target.at) > 1) this.#target = null;
    this.redraw();
  }

  /** Whether a row's top is in the window, below `offset` px. @param {number} index @param {number} offset */
  isSeen(index, offset) {
    const box = this.#rows.get(index)?.getBoundingClientRect();
    return Boolean(box && box.top >= offset && box.top < innerHeight);
  }

  /** @param {HTMLElement} row */
  #drop(row) {
    this.#observer.unobserve(row);
    this.#measured.delete(row); // it is reused with other contents
    row.remove();
    this.owner.release(row);
  }

  /** Position the rows, in order. */
  #place() {
    const tops = this.#offsets;
    this.box.style.height = `${tops[this.count]}px`;
    /** @type {Element | null} */
    let before = null;
    const extras = this.extras.map(([row, index], i, all) => {
      const rest = all.slice(i).reduce((sum, [other, at]) => sum + (at === index ? this.#heightOf(other) : 0), 0); // of those at its index
      return /** @type {const} */ ([index - 0.5, row, tops[index] - rest]);
    });
    const rows = [...this.#rows].map(([index, row]) => /** @type {const} */ ([index, row, tops[index]]));
    for (const [index, row, top] of [...rows, ...extras].sort(([a], [b]) => a - b)) {
      if (!row.isConnected) {
        this.#observer.observe(row);
        this.box.append(row);
      }
      /** @type {Element | null} */
      const next = before ? before.nextElementSibling : this.box.firstElementChild;
      if (next !== row) this.#move(row, next);
      before = row;
      row.style.transform = `translateY(${top}px)`;
      const isCounted = Number.isInteger(index);
      row.ariaPosInSet = isCounted ? String(index + 1) : null;
      row.ariaSetSize = isCounted ? String(this.count) : null;
      if (!isCounted) continue;
      const known = this.#measured.get(row);
      if (known !== undefined && known !== this.#heights[index]) this.#learn(index, known);
    }
    if (!this.#tops) this.redraw();
  }

  /** Move a row, and restore the focus that it loses. @param {HTMLElement} row @param {Element | null} next */
  #move(row, next) {
    const focused = row.contains(document.activeElement) ? /** @type {HTMLElement} */ (document.activeElement) : null;
    this.box.insertBefore(row, next);
    focused?.focus({ preventScroll: true });
  }

  /** @param {number} index @param {number} height */
  #learn(index, height) {
    this.#heights[index] = height;
    this.#tops = null;
  }

  /** Record measured heights; keep the visible rows in place when heights above them change. @param {ResizeObserverEntry[]} entries */
  #measure(entries) {
    const anchor = this.firstSeen();
    const before = this.#offsets[anchor] ?? 0;
    for (const { target, borderBoxSize } of entries) {
      if (target.isConnected) this.#measured.set(target, borderBoxSize[0].blockSize);
      if (this.#extras.has(/** @type {HTMLElement} */ (target))) this.#tops = null;
    }
    for (const [index, row] of this.#rows) {
      const height = this.#measured.get(row);
      if (height && height !== this.#heights[index]) this.#learn(index, height);
    }
    if (this.#tops) return;
    const known = this.#heights.filter((height) => height > 0);
    if (known.length) this.#average = known.reduce((sum, height) => sum + height, 0) / known.length;
    const moved = (this.#offsets[anchor] ?? 0) - before;
    this.#place();
    if (this.#target) this.#goToTarget();
    else if (moved && this.box.getBoundingClientRect().top < 0) scrollBy(0, moved);
    this.redraw();
  }

  get #offsets() {
    if (this.#tops) return this.#tops;
    const tops = new Float64Array(this.count + 1);
    const added = new Map();
    for (const [row, index] of this.#extras) added.set(index, (added.get(index) ?? 0) + this.#heightOf(row));
    tops[0] = added.get(0) ?? 0;
    for (let i = 0; i < this.count; i += 1) tops[i + 1] = tops[i] + (Number.isNaN(this.#heights[i]) ? this.#average : this.#heights[i]) + (added.get(i + 1) ?? 0);
    return (this.#tops = tops);
  }

  /** @param {HTMLElement} row not counted */
  #heightOf(row) {
    return this.#measured.get(row) ?? this.#average;
  }

  /** Return the index of the row `y` px below the top of the list. @param {number} y */
  #indexAt(y) {
    const tops = this.#offsets;
    let [low, high] = [0, Math.max(0, this.count - 1)];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (tops[middle] <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

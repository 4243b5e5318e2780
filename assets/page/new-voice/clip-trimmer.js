// A clip's waveform with marks for the start and end of the part to use: dragged, moved by keys, or typed.

import { element } from "../lib/elements.js";
import { drawOutline } from "../capture/outline.js";
import { numeral, phrase } from "../lib/phrases.js";

const [SHORTEST, LONGEST] = [1, 30]; // limits of the part, in seconds
const STEPS = { ArrowLeft: -0.05, ArrowRight: 0.05, ArrowDown: -0.05, ArrowUp: 0.05, PageDown: -1, PageUp: 1 };

/** Fires "change" with {start, end} in seconds after a mark has moved. */
export class CutMarks extends EventTarget {
  #isDragged = false;
  /** @type {{ bars: number[], seconds: number, start: number, end: number, position: number | null }} */
  #view = { bars: [], seconds: 0, start: 0, end: 0, position: null };

  constructor(root) {
    super();
    this.root = root;
    this.canvas = element("canvas");
    this.canvas.setAttribute("aria-hidden", "true");
    this.marks = { start: this.#mark("start", phrase("newVoice.mark.start")), end: this.#mark("end", phrase("newVoice.mark.end")) };
    this.fields = { start: this.#field("start", phrase("newVoice.mark.from")), end: this.#field("end", phrase("newVoice.mark.to")) };
    this.wave = element("div", { className: "cut-wave" }, [this.canvas, this.marks.start, this.marks.end]);
    const fields = element("p", { className: "cut-fields" }, [this.fields.start.parentNode, this.fields.end.parentNode, element("span", { textContent: phrase("newVoice.mark.seconds") })]);
    root.append(this.wave, fields);
    new ResizeObserver(() => this.#draw()).observe(this.canvas);
    new MutationObserver(() => this.#draw()).observe(document.body, { attributeFilter: ["class"] });
  }

  /**
   * Update any of bars (peaks of the whole clip, empty if unknown), seconds (of the whole clip), start, end, position (null: not playing).
   *
   * @param {{ bars?: number[], seconds?: number, start?: number, end?: number, position?: number | null }} changes
   */
  show({ start: from, end: to, ...view }) {
    Object.assign(this.#view, view);
    if (!this.#isDragged) Object.assign(this.#view, { start: from ?? this.#view.start, end: to ?? this.#view.end });
    this.#place();
  }

  #place() {
    const { seconds, start, end, bars } = this.#view;
    this.wave.hidden = bars.length === 0;
    for (const [name, value] of Object.entries({ start, end })) {
      const mark = this.marks[name];
      mark.style.left = `${seconds ? (100 * value) / seconds : 0}%`;
      mark.setAttribute("aria-valuemin", 0);
      mark.setAttribute("aria-valuemax", seconds.toFixed(2));
      mark.setAttribute("aria-valuenow", value.toFixed(2));
      mark.setAttribute("aria-valuetext", phrase("newVoice.mark.at", { seconds: numeral(value, 2) }));
      if (document.activeElement !== this.fields[name]) this.fields[name].value = value.toFixed(2);
    }
    this.#draw();
  }

  #mark(name, label) {
    const mark = element("span", { className: `cut-mark cut-${name}`, tabIndex: 0 });
    mark.setAttribute("role", "slider");
    mark.setAttribute("aria-label", label);
    mark.addEventListener("pointerdown", (event) => {
      mark.setPointerCapture(event.pointerId);
      this.#isDragged = true; // or a late response could move the mark back
      event.preventDefault();
      mark.focus();
    });
    mark.addEventListener("pointermove", (event) => {
      if (!mark.hasPointerCapture(event.pointerId)) return;
      const { left, width } = this.wave.getBoundingClientRect();
      this.#move(name, ((event.clientX - left) / width) * this.#view.seconds, false);
    });
    mark.addEventListener("lostpointercapture", () => {
      this.#isDragged = false;
      this.#tell();
    });
    mark.addEventListener("keydown", (event) => this.#key(event, name));
    return mark;
  }

  #field(name, words) {
    const field = element("input", { type: "number", step: 0.05, min: 0 });
    element("label", {}, [words, " ", field]);
    field.addEventListener("change", () => {
      if (Number.isFinite(field.valueAsNumber)) this.#move(name, field.valueAsNumber);
      field.value = this.#view[name].toFixed(2);
    });
    return field;
  }

  #key(event, name) {
    const { seconds } = this.#view;
    const to = { Home: 0, End: seconds }[event.key] ?? (event.key in STEPS ? this.#view[name] + STEPS[event.key] : null);
    if (to === null) return;
    event.preventDefault();
    this.#move(name, to);
  }

  /** Move a mark within the clip; it pushes the other mark along to keep the part within the length limits. */
  #move(name, to, isDone = true) {
    let { start, end } = this.#view;
    const { seconds } = this.#view;
    const least = Math.min(SHORTEST, seconds);
    if (name === "start") {
      start = Math.min(Math.max(to, 0), seconds - least);
      end = Math.min(Math.max(end, start + least), start + LONGEST);
    } else {
      end = Math.min(Math.max(to, least), seconds);
      start = Math.max(Math.min(start, end - least), end - LONGEST);
    }
    Object.assign(this.#view, { start: Math.round(start * 1000) / 1000, end: Math.round(end * 1000) / 1000 });
    this.#place();
    if (isDone) this.#tell();
  }

  #tell() {
    const { start, end } = this.#view;
    this.dispatchEvent(new CustomEvent("change", { detail: { start, end } }));
  }

  #draw() {
    drawOutline(this.canvas, this.#view);
  }
}

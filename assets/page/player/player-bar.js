// The player bar: waveform, position, time, figures. Only displays values and reports clicks.

import { icon, labelled, partsOf } from "../lib/elements.js";
import { offerMenu } from "../lib/menu.js";
import { offerFormats } from "./download.js";
import { clock } from "../lib/time.js";
import { CHAPTER_END } from "./listening.js";
import { closeOnEscape } from "../lib/typing.js";
import { BARS_PER_SECOND } from "./waveform.js";
import { LOCALE, phrase } from "../lib/phrases.js";

const STEPS = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 5, PageDown: -5 }; // seconds
const SKIP = 10; // seconds
const RATES = [0.5, 0.75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3];
const SLEEPS = [15, 30, 60]; // minutes
const MOON = '<path d="M19.500 14.600A8 8 0 0 1 9.400 4.500a8 8 0 1 0 10.100 10.100Z"/>';
const FORMAT = new Intl.NumberFormat(LOCALE, { maximumFractionDigits: 2 });

const sleepWords = (/** @type {number} */ minutes) => (minutes === CHAPTER_END ? phrase("player.sleep.chapter") : phrase("player.sleep", { count: minutes }));

/** Fires "press" (play or pause), "seek" and "skip" {seconds; by}, "rate" {rate}, "repeat" {isRepeated}, "sleep" {minutes; or CHAPTER_END}, "step" {by} (1: next, -1: previous track), "chapter" {at}, "volume" {value}, "save" {format}, "close". */
export class PlayerBar extends EventTarget {
  #drawing = false;
  /** @type {string[]} */
  #formats = [];
  /** The area the track belongs to. @type {string | undefined} */
  #owner = document.body.dataset.area;
  #listening = { rate: 1, isRepeated: false, sleep: 0, left: 0 };
  /** @type {{ chapters: { words: string, at: number }[], at: number }} */
  #row = { chapters: [], at: 0 };
  #view = { bars: [], seconds: 0, expected: 0, position: 0 };

  constructor(element) {
    super();
    this.element = element;
    const part = partsOf(element);
    this.parts = Object.fromEntries(
      ["play", "canvas", "seek", "time", "volume", "save", "status", "figures", "level", "back", "on", "close", "rate", "rewind", "forward", "chapters", "more"].map((name) => [name, part(name)]),
    );
    const tell = (type, detail) => this.dispatchEvent(new CustomEvent(type, { detail }));
    this.parts.play.addEventListener("click", () => tell("press"));
    this.parts.seek.addEventListener("input", ({ target }) => tell("seek", { seconds: Number(target.value) }));
    this.parts.seek.addEventListener("keydown", (event) => this.#step(event));
    for (const [name, by] of [["back", -1], ["on", 1]]) this.parts[String(name)].addEventListener("click", () => tell("step", { by }));
    for (const [name, by] of [["rewind", -SKIP], ["forward", SKIP]]) this.parts[String(name)].addEventListener("click", () => tell("skip", { by }));
    offerMenu(this.parts.rate, () => this.#choices(tell));
    offerMenu(this.parts.chapters, () => this.#chapterChoices(tell));
    this.parts.volume.addEventListener("input", ({ target }) => tell("volume", { value: Number(target.value) }));
    new ResizeObserver(() => this.#draw()).observe(this.parts.canvas);
    new ResizeObserver(() => this.#makeRoom()).observe(element);
    offerFormats(this.parts.save, () => this.#formats, (format) => tell("save", { format }));
    this.parts.close.addEventListener("click", () => tell("close"));
    this.parts.more.addEventListener("click", () => this.parts.more.setAttribute("aria-expanded", String(element.toggleAttribute("data-open"))));
    closeOnEscape(this.parts.more, element);
    new MutationObserver(() => this.#draw()).observe(document.body, { attributeFilter: ["class"] });
    new MutationObserver(() => this.#fit()).observe(document.body, { attributeFilter: ["data-area"] });
  }

  /** The speeds, repetition, and when to stop. */
  #choices(tell) {
    const speeds = RATES.map((rate) => ({ words: phrase("player.rate.times", { rate: FORMAT.format(rate) }), isChecked: rate === this.#listening.rate, run: () => tell("rate", { rate }) }));
    const { isRepeated, sleep } = this.#listening;
    const offered = this.#row.chapters.length > 1 ? [...SLEEPS, CHAPTER_END] : SLEEPS;
    const sleeps = offered.map((minutes) => ({ words: sleepWords(minutes), isChecked: minutes === sleep, run: () => tell("sleep", { minutes: minutes === sleep ? 0 : minutes }) }));
    return [...speeds, { words: phrase("player.repeat"), isChecked: isRepeated, run: () => tell("repeat", { isRepeated: !isRepeated }) }, ...sleeps];
  }

  /** Offer the chapters of a row; at: the number of the current track. @param {{ words: string, at: number }[]} chapters */
  offerChapters(chapters, at) {
    this.#row = { chapters, at };
    this.parts.chapters.hidden = !chapters.length;
  }

  #chapterChoices(tell) {
    const { chapters, at } = this.#row;
    const current = chapters.findLast((chapter) => chapter.at <= at);
    if (chapters.length < 2) return [{ words: phrase("player.first"), run: () => tell("chapter", { at: 0 }) }];
    return chapters.map((chapter) => ({ words: chapter.words, isChecked: chapter === current, run: () => tell("chapter", { at: chapter.at }) }));
  }

  /**
   * How the listener listens: any of rate, isRepeated, sleep, the minutes chosen until playback stops (0: it does not; or
   * CHAPTER_END), and left, what is left of them.
   */
  listen(listening) {
    const { rate, isRepeated, sleep, left } = Object.assign(this.#listening, listening);
    const speed = phrase("player.rate.times", { rate: FORMAT.format(rate) });
    const label = [`${phrase("player.rate")}: ${speed}`, ...(sleep ? [sleepWords(left)] : [])].join(". ");
    this.parts.rate.replaceChildren(speed, ...(sleep ? [icon(MOON), left > 0 ? phrase("player.sleep.left", { minutes: left }) : ""] : []));
    labelled(this.parts.rate, label);
    this.parts.rate.toggleAttribute("data-set", rate !== 1 || isRepeated || sleep !== 0);
  }

  /** End the page above the bar, so that everything can be scrolled into view. */
  #makeRoom() {
    document.documentElement.style.setProperty("--dock-height", `${this.element.offsetHeight}px`);
  }

  /** Prepare for another track, which belongs to the current area. */
  begin() {
    this.#owner = document.body.dataset.area;
    this.isClosed = false;
    this.#fit();
  }

  set isClosed(isClosed) {
    this.element.toggleAttribute("data-closed", isClosed);
  }

  #fit() {
    this.element.toggleAttribute("data-thin", this.#owner !== document.body.dataset.area);
  }

  /** Seek by a second per arrow key press: the slider's own step is a hundredth of a second. */
  #step(event) {
    const by = STEPS[event.key];
    if (!by) return;
    event.preventDefault();
    const seconds = Math.min(Math.max(0, this.#view.position + by), this.#view.seconds);
    this.dispatchEvent(new CustomEvent("seek", { detail: { seconds } }));
  }

  /** state: empty | waiting | playing | paused | over; words: for the status line and screen readers. */
  say(state, words) {
    this.element.dataset.state = state;
    if (this.isPlaying) this.isClosed = false;
    if (words !== undefined && this.parts.status.textContent !== words) this.parts.status.textContent = words;
    this.parts.play.setAttribute("aria-label", phrase(this.isPlaying ? "player.pause" : "player.play"));
    this.parts.play.disabled = state === "empty";
    if (!this.isPlaying) this.level(0);
  }

  get statusText() {
    return this.parts.status.textContent;
  }

  get state() {
    return this.element.dataset.state;
  }

  /** Whether audio is playing or awaited. */
  get isPlaying() {
    return this.state === "playing" || this.state === "waiting";
  }

  /** Show the current level, from 0 to 1. */
  level(loudest) {
    const percent = Math.round(Math.min(1, Math.sqrt(loudest)) * 100); // same scale as the waveform
    this.parts.level.style.setProperty("--level", `${percent}%`);
    this.parts.level.setAttribute("aria-valuenow", percent);
  }

  set volume(value) {
    this.parts.volume.value = value;
  }

  /** Any of bars, seconds (received), expected (estimated total), position (seconds). */
  show(view) {
    Object.assign(this.#view, view);
    const { seconds, position } = this.#view;
    const [now, whole] = [clock(position), clock(seconds)];
    if (this.parts.seek.max !== String(seconds)) {
      this.parts.seek.max = seconds; // setting it recalculates styles, even if unchanged
      this.parts.seek.disabled = seconds === 0;
    }
    const [text] = this.parts.time.childNodes; // kept: a new one would recalculate the styles of all elements with :has() around it
    if (text.data !== `${now} / ${whole}`) {
      text.data = `${now} / ${whole}`;
      this.parts.seek.value = position; // lays the bar out again
      this.parts.seek.setAttribute("aria-valuetext", phrase("player.position.of", { position: now, whole }));
    }
    if (!this.#drawing) {
      this.#drawing = true;
      requestAnimationFrame(() => {
        this.#drawing = false;
        this.#draw();
      });
    }
  }

  /** figures: [name, value] pairs, named like their phrases; empty values are omitted. */
  figures(figures) {
    this.parts.figures.replaceChildren(
      ...figures
        .filter(([, value]) => value !== null && value !== undefined && value !== "")
        .map(([name, value]) => {
          const item = document.createElement("div");
          item.title = phrase(/** @type {import("../lib/phrases.js").Key} */ (`player.${name}.about`));
          item.dataset.figure = name;
          const term = document.createElement("dt");
          term.textContent = phrase(/** @type {import("../lib/phrases.js").Key} */ (`player.${name}`));
          const detail = document.createElement("dd");
          detail.textContent = typeof value === "number" ? FORMAT.format(value) : value;
          item.append(term, detail);
          return item;
        }),
    );
  }

  /** beside: {back, on}, the previous and next track, if any; null without a row. */
  offerSteps(beside) {
    for (const name of ["back", "on"]) {
      this.parts[name].hidden = !beside;
      this.parts[name].disabled = !beside?.[name];
    }
  }

  /** Offer downloads in these formats. @param {string[]} formats */
  offer(formats) {
    this.#formats = formats;
    this.parts.save.disabled = !formats.length;
  }

  #draw() {
    const { canvas } = this.parts;
    const scale = window.devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    if (!width) return;
    const pen = canvas.getContext("2d");
    const [across, down] = [Math.floor(width * scale), Math.floor(height * scale)];
    if (canvas.width !== across || canvas.height !== down) [canvas.width, canvas.height] = [across, down]; // lays the page out again, even if unchanged
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const style = getComputedStyle(this.element);
    const { bars, seconds, expected, position } = this.#view;
    const span = Math.max(seconds, expected, 0.5);
    const step = 4;
    const count = Math.floor(width / step);
    const barsAt = (i) => (i * span * BARS_PER_SECOND) / count;
    const drawn = { "--wave-empty": new Path2D(), "--wave-heard": new Path2D(), "--wave": new Path2D() };
    for (let i = 0; i < count; i += 1) {
      const [from, to] = [Math.floor(barsAt(i)), Math.max(Math.floor(barsAt(i)) + 1, Math.floor(barsAt(i + 1)))];
      let loudest = 0;
      for (let bar = from; bar < Math.min(to, bars.length); bar += 1) loudest = Math.max(loudest, bars[bar]);
      const tall = Math.max(2, Math.sqrt(loudest) * (height - 4));
      const isPlayed = (i / count) * span < position;
      const name = from >= bars.length ? "--wave-empty" : isPlayed ? "--wave-heard" : "--wave";
      drawn[name].roundRect(i * step, (height - tall) / 2, 2.5, tall, 1.25);
    }
    for (const [name, path] of Object.entries(drawn)) {
      pen.fillStyle = style.getPropertyValue(name);
      pen.fill(path);
    }
  }
}

// Opens a recording too long or too large for a clip in the browser, to choose the part of it that is sent.

import { partsOf } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { clock, duration, secondsIn } from "../lib/time.js";
import { decodeClip, secondsOf } from "./decoded-clip.js";
import { drawOutline } from "./outline.js";
import { numeral, phrase } from "../lib/phrases.js";

export const LARGEST = 10 * 2 ** 20; // bytes accepted by the server
// A browser decodes into memory, an hour of stereo two or three times over: about 3 GB.
const [LONGEST, HEAVIEST] = [65 * 60, 700 * 2 ** 20]; // maximum seconds and bytes to open
const STEPS = { ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageDown: -30, PageUp: 30 }; // seconds

const megabytes = (bytes) => `${numeral(bytes / 2 ** 20, 1)} MB`;

/** Why a file cannot be opened; the message is for users. */
export class NotOpened extends Error {}

/** Fires "chosen" with {blob, words}: a WAV file and its description. */
export class StretchChooser extends EventTarget {
  #openings = new Latest();
  /** @type {import("./decoded-clip.js").Clip | null} */
  #sound = null;
  #name = "";
  #start = 0;
  /** @type {number | null} */
  #position = null;

  /**
   * root: the panel, shown while a part can be chosen. whole: seconds up to which a file is sent unchanged; stretch: seconds
   * sent of a longer one; in stereo, 45 of them stay below LARGEST.
   */
  constructor(root, { whole, stretch }) {
    super();
    this.root = root;
    this.whole = whole;
    this.stretch = stretch;
    const part = (this.part = partsOf(root));
    part("stretch-wave").addEventListener("pointerdown", (event) => this.#drag(event));
    part("stretch-wave").addEventListener("pointermove", (event) => this.#drag(event));
    part("stretch").addEventListener("keydown", (event) => this.#key(event));
    part("stretch-from").addEventListener("change", ({ target }) => {
      const seconds = secondsIn(target.value);
      if (Number.isFinite(seconds)) this.#move(seconds);
      target.value = clock(this.#start);
    });
    part("stretch-hear").addEventListener("click", () => this.#hear());
    part("stretch-use").addEventListener("click", () => this.#use());
    new ResizeObserver(() => this.#draw()).observe(part("stretch-canvas"));
    new MutationObserver(() => this.#draw()).observe(document.body, { attributeFilter: ["class"] });
  }

  get isOpen() {
    return this.#sound !== null;
  }

  /** Open a file if it is too long or too large to be sent, otherwise return false. Throws NotOpened. */
  async open(file) {
    this.close();
    const isLatest = this.#openings.begin();
    const seconds = await secondsOf(file);
    if (file.size <= LARGEST && (seconds ?? 0) <= this.whole) return false;
    if (seconds === null) throw new NotOpened(unreadable(file));
    if (seconds > LONGEST) throw new NotOpened(phrase("stretch.tooLong", { name: file.name, duration: duration(seconds), most: duration(LONGEST) }));
    if (file.size > HEAVIEST) throw new NotOpened(phrase("stretch.tooLarge", { name: file.name, size: megabytes(file.size), most: megabytes(HEAVIEST) }));
    const sound = await decodeClip(file);
    if (!isLatest()) return true;
    if (!sound) {
      if (file.size <= LARGEST) return false; // the server reads more formats and suggests a part itself
      throw new NotOpened(unreadable(file));
    }
    this.#show(file.name, sound);
    return true;
  }

  close() {
    this.#openings.end();
    this.#sound?.close();
    this.#sound = null;
    this.root.hidden = true;
  }

  stop() {
    this.#sound?.stop();
  }

  #show(name, sound) {
    this.#sound = sound;
    this.#name = name;
    this.#position = null;
    sound.addEventListener("position", ({ detail }) => {
      this.#position = detail.seconds;
      this.#draw();
    });
    this.root.hidden = false;
    this.part("stretch-words").textContent = phrase("stretch.choose", { name, duration: duration(sound.seconds), seconds: this.#length });
    this.#move(0);
  }

  get #length() {
    return Math.min(this.stretch, this.#sound?.seconds ?? 0);
  }

  get #end() {
    return this.#start + this.#length;
  }

  #move(to) {
    if (!this.#sound) return;
    const last = this.#sound.seconds - this.#length;
    this.#start = Math.round(Math.min(Math.max(to, 0), last) * 10) / 10;
    if (this.#sound.isPlaying) this.#sound.stop();
    const { style } = this.part("stretch");
    style.left = `${(100 * this.#start) / this.#sound.seconds}%`;
    style.width = `${(100 * this.#length) / this.#sound.seconds}%`;
    this.part("stretch").setAttribute("aria-valuemax", last.toFixed(1));
    this.part("stretch").setAttribute("aria-valuenow", this.#start.toFixed(1));
    this.part("stretch").setAttribute("aria-valuetext", this.#words);
    this.part("stretch-from").value = clock(this.#start);
    this.part("stretch-to").textContent = phrase("stretch.to", { time: clock(this.#end) });
    this.#draw();
  }

  get #words() {
    return phrase("stretch.range", { from: clock(this.#start), to: clock(this.#end) });
  }

  /** Centre the part on the pressed point of the outline; it follows the pointer. */
  #drag(event) {
    const wave = event.currentTarget;
    if (event.type === "pointerdown") {
      wave.setPointerCapture(event.pointerId);
      event.preventDefault();
      this.part("stretch").focus();
    }
    if (!wave.hasPointerCapture(event.pointerId) || !this.#sound) return;
    const { left, width } = wave.getBoundingClientRect();
    this.#move(((event.clientX - left) / width) * this.#sound.seconds - this.#length / 2);
  }

  #key(event) {
    const to = { Home: 0, End: Infinity }[event.key] ?? (event.key in STEPS ? this.#start + STEPS[event.key] : null);
    if (to === null) return;
    event.preventDefault();
    this.#move(to);
  }

  #hear() {
    if (this.#sound?.isPlaying) this.#sound.stop();
    else this.#sound?.play({ start: this.#start, end: this.#end, gain_db: 0, channel: null });
  }

  #use() {
    this.stop();
    const detail = { blob: this.#sound?.file(this.#start, this.#end), words: `${this.#name}, ${this.#words}` };
    this.dispatchEvent(new CustomEvent("chosen", { detail }));
  }

  #draw() {
    const { bars, seconds } = this.#sound ?? { bars: [], seconds: 0 };
    drawOutline(this.part("stretch-canvas"), { bars, seconds, start: this.#start, end: this.#end, position: this.#position });
  }
}

function unreadable(file) {
  return phrase("stretch.unreadable", { name: file.name, size: megabytes(file.size), most: megabytes(LARGEST) });
}

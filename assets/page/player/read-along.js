// The text of what is heard, each word lit while it sounds; a press on a word goes there.

import { timesAt } from "../client/takes.js";
import { element } from "../lib/elements.js";
import { placed } from "./words.js";
import { phrase } from "../lib/phrases.js";

const LINGERS = 0.4; // seconds that a word stays lit when nothing follows it
const AWAITED = 0.03; // a word is lit a little before it comes: what is drawn is late, what is heard is not

/** Stands at the head of the player bar. Asks for times only while it is shown. */
export class ReadAlong {
  /** @type {any} */
  #track = null;
  /** Words in order. @type {{ start: number, end: number, element: HTMLElement }[]} */
  #words = [];
  /** @type {HTMLElement | null} */
  #lit = null;
  #known = new WeakMap(); // the pieces of a track's text; none while they are asked for

  constructor(dock, nowPlaying, preferences) {
    this.nowPlaying = nowPlaying;
    this.preferences = preferences;
    this.text = element("div", { className: "read-along-text", tabIndex: 0, role: "group", dir: "auto" });
    this.text.ariaLabel = phrase("player.text.keys");
    this.text.addEventListener("click", ({ target }) => this.#go(this.#words.find((word) => word.element === target)));
    this.text.addEventListener("keydown", (event) => this.#step(event));
    this.toggle = element("button", { type: "button", className: "read-along-toggle", title: phrase("player.text.toggle") }, [phrase("player.text")]);
    this.toggle.addEventListener("click", () => preferences.set({ text: this.#isShown ? "off" : "on" }));
    this.element = element("div", { className: "read-along", hidden: true }, [this.text, this.toggle]);
    dock.prepend(this.element);
    nowPlaying.addEventListener("show", ({ detail }) => this.#follow(detail.take));
    nowPlaying.addEventListener("moved", ({ detail }) => {
      this.#follow(detail.take);
      this.#light(detail.state === "over" ? Infinity : detail.position);
    });
    preferences.addEventListener("change", () => this.#follow(this.#track));
  }

  get #isShown() {
    return this.preferences.values.text === "on";
  }

  /** Show the text of a track as soon as its words' times can be known: once it is whole. */
  async #follow(track) {
    this.#show(track);
    if (!this.#isShown || !track?.timesSource || this.#known.has(track)) return;
    this.#known.set(track, []);
    const told = await timesAt(track.timesSource).catch(() => null); // that the studio is gone is said elsewhere
    this.#known.set(track, told ? placed(told.text, told.timestamps) : []);
    if (this.nowPlaying.current === track) this.#show(track, true);
  }

  #show(track, isNews = false) {
    const pieces = (track && this.#known.get(track)) ?? [];
    this.element.hidden = !track?.timesSource || (this.#known.has(track) && !pieces.length);
    this.text.hidden = !this.#isShown || !pieces.length;
    this.toggle.ariaExpanded = String(this.#isShown);
    if (track === this.#track && !isNews) return;
    this.#track = track;
    this.#lit = null;
    this.#words = [];
    this.text.replaceChildren(
      ...pieces.map(({ text, start, end }) => {
        if (start === undefined) return text.replace(/\s*\n\s*/g, "\n"); // an empty line would only take the room of one
        const word = { start, end, element: element("span", {}, [text]) };
        this.#words.push(word);
        return word.element;
      }),
    );
    this.text.scrollTop = 0;
  }

  /** The word that sounds at a second, or has just sounded. */
  #at(seconds) {
    const next = this.#words.findIndex(({ start }) => start > seconds + AWAITED);
    return next < 0 ? this.#words.length - 1 : next - 1;
  }

  #light(seconds) {
    const word = this.#words[this.#at(seconds)];
    const lit = word && seconds < word.end + LINGERS ? word.element : null;
    if (lit === this.#lit) return;
    this.#lit?.classList.remove("is-heard");
    lit?.classList.add("is-heard");
    this.#lit = lit;
    if (lit) this.#keepInView(lit);
  }

  #keepInView(lit) {
    const { text } = this;
    const isSeen = lit.offsetTop >= text.scrollTop && lit.offsetTop + lit.offsetHeight <= text.scrollTop + text.clientHeight;
    if (!isSeen) text.scrollTop = lit.offsetTop - lit.offsetHeight / 4; // the text is its words' offset parent
  }

  #go(word) {
    if (!word) return;
    this.nowPlaying.seek(word.start);
    if (!this.nowPlaying.isPlaying) this.nowPlaying.playOrPause();
  }

  #step(event) {
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!by || !this.#words.length) return;
    event.preventDefault();
    const at = this.#at(this.nowPlaying.position) + by;
    this.#go(this.#words[Math.min(Math.max(0, at), this.#words.length - 1)]);
  }
}

// Compares the takes of a part: a bar in the player lists them, X or a click switches to the same word in another, and one can be kept.

import { timesAt } from "../../client/takes.js";
import { Refusal } from "../../client/refusal.js";
import { element } from "../../lib/elements.js";
import { Latest } from "../../lib/latest.js";
import { phrase } from "../../lib/phrases.js";
import { sameWordAt } from "../../player/words.js";
import { AbComparison } from "../../takes/ab-comparison.js";

/** Fires "fail" with {problem}, and "done" with {part, kept} when ended by its buttons; kept: {id, number} of the take to choose, or null. */
export class TakeComparison extends EventTarget {
  /** @type {any} */
  #part = null;
  #switches = new Latest();
  /** Word times of each track. @type {WeakMap<object, Promise<any>>} */
  #times = new WeakMap();

  /**
   * @param {import("../playback.js").Playback} playback
   * @param {AbortSignal} signal
   */
  constructor(playback, signal) {
    super();
    this.playback = playback;
    this.nowPlaying = playback.nowPlaying;
    const button = (words, className = "") => element("button", { type: "button", className, textContent: words });
    const [sides, done] = [element("span", { className: "pair" }), button(phrase("takes.done"))];
    [sides.dataset.part, done.dataset.part] = ["pair", "done"];
    this.kept = button(phrase("part.compare.keep"), "dock-keep");
    this.kept.addEventListener("click", () => this.#keep());
    done.addEventListener("click", () => this.#end(null));
    this.label = element("span");
    const bar = element("div", { className: "dock-compare", hidden: true }, [this.label, sides, this.kept, done, element("span", { className: "quiet", textContent: phrase("part.compare.keys") })]);
    bar.setAttribute("role", "group");
    this.bar = bar;
    this.nowPlaying.bar.element.prepend(bar);
    signal.addEventListener("abort", () => bar.remove());
    this.sides = new AbComparison(bar, ({ id }) => phrase("takes.name", { number: this.#numberOf(id) }));
    this.sides.addEventListener("switch", ({ detail }) => this.#play(detail.take));
    this.nowPlaying.addEventListener("show", () => this.#follow(), { signal });
  }

  /** Compare the takes of a part, starting with the take in the player, or else the chosen one. */
  begin(part) {
    const { id, position, takes, chosen } = part;
    this.#part = part;
    const { of } = this.nowPlaying.current ?? {};
    const name = phrase("proof.part", { number: position + 1 });
    const tracks = takes.map((take) => this.playback.track({ part: id, position, take: take.id }));
    this.label.textContent = name;
    this.bar.setAttribute("aria-label", phrase("part.compare", { number: position + 1 }));
    this.sides.set(tracks);
    const first = of?.part === id ? of.take : chosen;
    this.#play(tracks.find((track) => track.id === first) ?? tracks[0]);
    this.sides.sides.querySelector("button")?.focus({ preventScroll: true }); // "Keep this" is near; the list may be long
  }

  /** Switch to the next take. */
  other(track) {
    this.sides.other(this.sides.takes.includes(track) ? track : null);
  }

  #numberOf(take) {
    const { takes } = this.#part;
    return takes.length - takes.findIndex(({ id }) => id === take);
  }

  async #play(track) {
    const isLatest = this.#switches.begin();
    this.nowPlaying.player.wake();
    const { current } = this.nowPlaying;
    try {
      const isBeside = current?.of?.part === this.#part.id && !this.nowPlaying.isOver;
      const [from, to] = isBeside ? await Promise.all([this.#timesOf(current), this.#timesOf(track)]) : [null, null];
      if (!isLatest()) return;
      const { position } = this.nowPlaying; // playback has continued in the meantime
      if (!isBeside) await this.nowPlaying.play(track);
      else await this.nowPlaying.playInstead(track, from && to ? sameWordAt(from.timestamps, to.timestamps, position) : position);
      await Promise.all(this.sides.takes.map((other) => this.#timesOf(other))); // ready for the next switch
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.dispatchEvent(new CustomEvent("fail", { detail: { problem } }));
    }
  }

  /** Return the word times of a take; null if unknown. Throws Refusal. */
  #timesOf(track) {
    const known = this.#times.get(track) ?? track.load().then(() => timesAt(track.timesSource));
    this.#times.set(track, known);
    known.catch(() => this.#times.delete(track));
    return known;
  }

  /** Mark the current take, or end the comparison if something else is playing. */
  #follow() {
    const { current } = this.nowPlaying;
    if (!this.sides.takes.length) return;
    if (!this.sides.takes.includes(current)) return this.sides.set([]);
    this.sides.mark(current);
    this.kept.disabled = current.id === this.#part.chosen;
  }

  #keep() {
    const { id } = this.nowPlaying.current;
    this.sides.set([]);
    this.#end({ id, number: this.#numberOf(id) });
  }

  #end(kept) {
    this.dispatchEvent(new CustomEvent("done", { detail: { part: this.#part, kept } }));
  }
}

// One doubtful spot as a row: the sentence with its marked words, play, regenerate, accept.

import { element, icon, setChildren, showPlaying } from "../lib/elements.js";
import { PLAY } from "../lib/icons.js";
import { phrase } from "../lib/phrases.js";
import { clock } from "../lib/time.js";

/** What is doubtful, in a few words. */
function kindWords({ kind, heard, start, end }) {
  const name = phrase(/** @type {import("../lib/phrases.js").Key} */ (`proof.kind.${kind}`), { seconds: Math.round(end - start) });
  if (kind === "note" || kind === "level" || kind === "pace") return [name, heard].filter(Boolean).join(": ");
  return heard ? `${name} · ${phrase("proof.heard", { words: heard })}` : name;
}

/** Fires "play", "regenerate" and "accept". */
export class SpotRow extends EventTarget {
  /** @param {any} spot as the studio lists it */
  constructor(spot) {
    super();
    this.spot = spot;
    const number = spot.position + 1;
    const tell = (type) => () => this.dispatchEvent(new CustomEvent(type));
    this.play = element("button", { type: "button", className: "proof-play", onclick: tell("play") }, [icon(PLAY)]);
    this.regenerate = element("button", { type: "button", className: "plain", textContent: phrase("proof.regenerate"), onclick: tell("regenerate") });
    const accept = element("button", { type: "button", className: "plain", textContent: phrase("proof.accept"), onclick: tell("accept") });
    for (const button of [this.regenerate, accept]) button.setAttribute("aria-label", `${button.textContent}: ${phrase("proof.part", { number })}`);
    const [before, words, after] = [spot.before, spot.words, spot.after];
    const isWhole = spot.kind === "level" || spot.kind === "pace" || spot.kind === "no_speech";
    const marked = isWhole ? words : element("mark", { textContent: words || "‸" });
    this.said = element("p", { className: "quiet" });
    this.said.setAttribute("role", "status");
    const about = element("p", { className: "quiet", textContent: `${phrase("proof.part", { number })}, ${clock(spot.start)} · ${kindWords(spot)}` });
    const text = element("div", {}, [element("p", { dir: "auto" }, [before, marked, after]), about, this.said]);
    this.element = element("li", { tabIndex: -1 }, []);
    setChildren(this.element, [this.play, text, element("div", { className: "proof-do" }, [this.regenerate, accept])]);
    this.isPlaying = false;
    this.say("");
  }

  /** Whether its take is heard now. */
  set isPlaying(isPlaying) {
    const number = this.spot.position + 1;
    showPlaying(this.play, isPlaying, phrase(isPlaying ? "part.pause" : "part.play", { number }));
  }

  set isCurrent(isCurrent) {
    this.element.toggleAttribute("aria-current", isCurrent);
    this.element.tabIndex = isCurrent ? 0 : -1;
  }

  /** Blank: nothing. */
  say(words) {
    this.said.textContent = words;
    this.said.hidden = !words;
  }

  get isUnderWay() {
    return this.regenerate.disabled;
  }

  set isUnderWay(isUnderWay) {
    this.regenerate.disabled = isUnderWay;
    if (isUnderWay) this.say(phrase("proof.regenerating"));
  }
}

// One doubtful spot as a row: the sentence with the words marked, and buttons to play, regenerate and accept.

import { element, icon, showPlaying } from "../lib/elements.js";
import { PLAY } from "../lib/icons.js";
import { phrase } from "../lib/phrases.js";
import { clock } from "../lib/time.js";

/** Kinds that concern all words of a part. */
const WHOLE = new Set(["level", "pace", "voice", "late", "no_speech", "too_long", "too_short"]);

/** Kinds whose difference, in words, follows a colon. */
const DIFFERENCES = new Set(["note", "level", "pace", "voice", "late"]);

/** Describe the problem in a few words. */
function kindWords({ kind, heard, start, end }) {
  const name = phrase(/** @type {import("../lib/phrases.js").Key} */ (`proof.kind.${kind}`), { seconds: Math.round(end - start) });
  if (DIFFERENCES.has(kind)) return [name, heard].filter(Boolean).join(": ");
  return heard ? `${name} · ${phrase("proof.heard", { words: heard })}` : name;
}

/** Fires "play", "regenerate" and "accept". */
export class SpotRow extends EventTarget {
  /** As listed by the studio. @type {any} */
  spot = null;

  constructor() {
    super();
    const tell = (type) => () => this.dispatchEvent(new CustomEvent(type));
    this.play = element("button", { type: "button", className: "proof-play", onclick: tell("play") }, [icon(PLAY)]);
    this.regenerate = element("button", { type: "button", className: "plain", textContent: phrase("proof.regenerate"), onclick: tell("regenerate") });
    this.accept = element("button", { type: "button", className: "plain", textContent: phrase("proof.accept"), onclick: tell("accept") });
    this.sentence = element("p", { dir: "auto" });
    this.about = element("p", { className: "quiet" });
    this.status = element("p", { className: "quiet", hidden: true });
    this.status.setAttribute("role", "status");
    const text = element("div", {}, [this.sentence, this.about, this.status]);
    this.element = element("li", { tabIndex: -1 }, [this.play, text, element("div", { className: "proof-do" }, [this.regenerate, this.accept])]);
  }

  /** Show a spot as currently listed by the studio: its part may have moved or have another take. */
  show(spot) {
    if (JSON.stringify(spot) === JSON.stringify(this.spot)) return;
    this.spot = spot;
    const { before, words, after, kind } = spot;
    const part = phrase("proof.part", { number: spot.position + 1 });
    for (const button of [this.regenerate, this.accept]) button.setAttribute("aria-label", `${button.textContent}: ${part}`);
    this.regenerate.hidden = kind === "late"; // the part before it is too long
    const isWhole = WHOLE.has(kind);
    this.sentence.replaceChildren(before, isWhole ? words : element("mark", { textContent: words || "‸" }), after);
    const take = spot.chosen ? "" : ` · ${phrase("proof.otherTake", { take: spot.take_number })}`;
    this.about.textContent = `${part}, ${clock(spot.start)} · ${kindWords(spot)}${take}`;
    this.isPlaying = "playing" in this.play.dataset;
  }

  /** Whether its take is playing. */
  set isPlaying(isPlaying) {
    const number = this.spot.position + 1;
    showPlaying(this.play, isPlaying, phrase(isPlaying ? "part.pause" : "part.play", { number }));
  }

  set isCurrent(isCurrent) {
    this.element.toggleAttribute("aria-current", isCurrent);
    this.element.tabIndex = isCurrent ? 0 : -1;
  }

  /** Show a status; blank: none. */
  say(words) {
    this.status.textContent = words;
    this.status.hidden = !words;
  }

  get isUnderWay() {
    return this.regenerate.disabled;
  }

  set isUnderWay(isUnderWay) {
    this.regenerate.disabled = isUnderWay;
    if (isUnderWay) this.say(phrase("proof.regenerating"));
  }
}

// One take's row in the history: its words, its figures, and the presses that use it.

import { clock } from "../lib/time.js";
import { soundAddress } from "../client/takes.js";
import { element, icon, labelled } from "../lib/elements.js";
import { BIN, PLAY, STAR } from "../lib/icons.js";

/** @type {Intl.DateTimeFormatOptions} */
const MINUTE = { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" };

/** A moment in Unix time, with its year where that is another one. */
export function when(seconds) {
  const moment = new Date(seconds * 1000);
  /** @type {Intl.DateTimeFormatOptions} */
  const year = moment.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" };
  return moment.toLocaleString(undefined, { ...MINUTE, ...year });
}

export class HistoryRow {
  /** does: {play, reuse, again, continue, code, compare, verify, link, share, star, delete, choose}, each called with the take. */
  constructor(take, does, canShare) {
    this.take = take;
    this.canShare = canShare;
    this.does = does;
    const { record } = take;
    const words = element("div", { className: "take-words" }, [
      element("p", { className: "take-text", dir: "auto", textContent: record.excerpt }),
      element("p", { className: "take-facts" }, this.#facts()),
    ]);
    const play = this.#button([icon(PLAY)], "play", "take-play");
    play.disabled = !take.hasSound;
    this.tick = element("input", { type: "checkbox", onchange: () => does.choose(take, this.tick.checked) });
    this.tick.setAttribute("aria-label", `Choose “${this.#short}”`);
    this.star = labelled(this.#button([icon(STAR)], "star", "take-star"), `Star “${this.#short}”: starred takes are never removed`);
    const bin = labelled(this.#button([icon(BIN)], "delete", "take-bin"), `Delete “${this.#short}”`);
    const actions = element("div", { className: "take-actions" }, [...this.#actions(), this.star, bin]);
    this.element = element("li", {}, [this.tick, labelled(play, `Play “${this.#short}”`), words, actions]);
    this.element.toggleAttribute("data-silent", !take.hasSound);
    this.element.dataset.state = record.state;
  }

  show({ isChosen, isCompared, format }) {
    this.tick.checked = isChosen;
    this.star.setAttribute("aria-pressed", String(this.take.isStarred));
    this.compare?.setAttribute("aria-pressed", String(isCompared));
    if (this.save) this.save.href = soundAddress(this.take.id, format);
  }

  get #short() {
    const words = this.take.record.excerpt;
    return words.length > 40 ? `${words.slice(0, 40)}…` : words;
  }

  #facts() {
    const { record } = this.take;
    const voice = record.voice_revision ? `${record.voice}@${record.voice_revision}` : record.voice;
    const facts = [when(record.created), voice];
    if (record.seconds) facts.push(clock(record.seconds));
    const figures = [`seed ${record.seed}`];
    if (record.rtf !== null) figures.unshift(`RTF ${record.rtf.toFixed(2)}`);
    if (record.first_audio_ms !== null) figures.unshift(`first sound ${Math.round(record.first_audio_ms)} ms`);
    const { state, error, finish_reason: reason } = record;
    const ending = state === "cancelled" ? "Stopped" : state === "failed" ? `Failed: ${error}` : reason === "length" ? "Cut off before its end" : "";
    if (ending) facts.push(ending);
    if (!this.take.hasSound && state === "finished") facts.push("Its sound is missing");
    const told = facts.map((textContent) => {
      const fact = element("span", { textContent });
      if (textContent === ending) fact.dataset.ending = state === "finished" ? reason : state;
      return fact;
    });
    return [...told, ...figures.map((textContent) => element("span", { textContent, className: "figure" }))];
  }

  #actions() {
    const { take } = this;
    const made = [this.#button("Reuse", "reuse")];
    if (take.canContinue) {
      const rest = this.#button("Continue", "continue");
      rest.title = "Go on where the limit cut it: a new take, whole";
      made.push(rest);
    }
    if (take.isRepeatable) made.push(this.#button(take.hasSound ? "Code" : "Speak again", take.hasSound ? "code" : "again"));
    if (!take.hasSound) return made;
    this.compare = this.#button("Compare", "compare");
    made.push(this.compare);
    if (take.isRepeatable && take.record.state === "finished") {
      const verify = this.#button("Verify", "verify");
      verify.title = "Speak it again with the same seed and compare every sample";
      made.push(verify);
    }
    this.save = element("a", { textContent: "Save", download: "" });
    const link = element("button", { type: "button", textContent: "Link", title: "Copy the address of this take", onclick: () => this.does.link(take, link) });
    if (!this.canShare) return [...made, this.save, link];
    const share = this.#button("Share", "share");
    share.title = "Let somebody without a key hear this take";
    return [...made, this.save, link, share];
  }

  #button(content, deed, className = "") {
    const children = typeof content === "string" ? [content] : content;
    return element("button", { type: "button", className, onclick: () => this.does[deed](this.take) }, children);
  }
}

// One take's row in the history, with its text, figures and buttons.

import { clock } from "../lib/time.js";
import { speakersOf } from "../client/voices.js";
import { element, icon, labelled, showPlaying } from "../lib/elements.js";
import { BIN, PLAY, STAR } from "../lib/icons.js";
import { downloadButton } from "../player/download.js";
import { LOCALE, numeral, phrase } from "../lib/phrases.js";

/** @type {Intl.DateTimeFormatOptions} */
const MINUTE = { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" };

/** A Unix time as a date, with its year if it is not the current one. */
export function when(seconds) {
  const moment = new Date(seconds * 1000);
  /** @type {Intl.DateTimeFormatOptions} */
  const year = moment.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" };
  return moment.toLocaleString(LOCALE, { ...MINUTE, ...year });
}

/** The beginning of a take's words. */
export function shortened(words) {
  return words.length > 40 ? `${words.slice(0, 40)}…` : words;
}

export class HistoryRow {
  /** does: {play, reuse, again, continue, code, compare, verify, save, link, share, star, delete, choose}, each called with the take. */
  constructor(take, does, canShare) {
    this.take = take;
    this.canShare = canShare;
    this.does = does;
    const { record } = take;
    const words = element("div", { className: "take-words" }, [
      element("p", { className: "take-text", dir: "auto", textContent: record.excerpt }),
      element("p", { className: "take-facts" }, this.#facts()),
    ]);
    this.play = this.#button([icon(PLAY)], "play", "take-play");
    this.play.disabled = !take.hasSound;
    this.isPlaying = false;
    this.tick = element("input", { type: "checkbox", onchange: () => does.choose(take, this.tick.checked) });
    this.tick.setAttribute("aria-label", phrase("history.choose", { words: this.#short }));
    this.star = labelled(this.#button([icon(STAR)], "star", "take-star"), phrase("history.star", { words: this.#short }));
    const bin = labelled(this.#button([icon(BIN)], "delete", "take-bin"), phrase("history.deleteOne", { words: this.#short }));
    const actions = element("div", { className: "take-actions" }, [...this.#actions(), this.star, bin]);
    this.element = element("li", {}, [this.tick, this.play, words, actions]);
    this.element.toggleAttribute("data-silent", !take.hasSound);
    this.element.dataset.state = record.state;
  }

  show({ isChosen, isCompared }) {
    this.tick.checked = isChosen;
    this.star.setAttribute("aria-pressed", String(this.take.isStarred));
    this.compare?.setAttribute("aria-pressed", String(isCompared));
  }

  /** Whether the take is playing. */
  set isPlaying(isPlaying) {
    showPlaying(this.play, isPlaying, phrase(isPlaying ? "history.pause" : "history.play", { words: this.#short }));
  }

  get #short() {
    return shortened(this.take.record.excerpt);
  }

  #facts() {
    const { record } = this.take;
    const facts = [when(record.created), speakersOf(record)];
    if (record.voice_revision > 1) facts.push(`${phrase("inspector.revision")} ${record.voice_revision}`);
    if (record.seconds) facts.push(clock(record.seconds));
    if (record.regenerated_from) facts.push(phrase("takes.mended"));
    const figures = [phrase("takes.seed", { seed: String(record.seed) })];
    if (record.rtf !== null) figures.unshift(`${phrase("player.rtf")} ${numeral(record.rtf, 2)}`);
    if (record.first_audio_ms !== null) figures.unshift(phrase("history.firstSound", { ms: Math.round(record.first_audio_ms) }));
    const { state, error, finish_reason: reason } = record;
    const ending = state === "cancelled" ? phrase("history.stopped") : state === "failed" ? phrase("history.failed", { why: error }) : reason === "length" ? phrase("history.cut") : "";
    if (ending) facts.push(ending);
    if (!this.take.hasSound && state === "finished") facts.push(phrase("history.noSound"));
    const shown = facts.map((textContent) => {
      const fact = element("span", { textContent });
      if (textContent === ending) fact.dataset.ending = state === "finished" ? reason : state;
      return fact;
    });
    return [...shown, ...figures.map((textContent) => element("span", { textContent, className: "figure" }))];
  }

  #actions() {
    const { take } = this;
    const buttons = [this.#button(phrase("takes.reuse"), "reuse")];
    if (take.canContinue) {
      const rest = this.#button(phrase("takes.continue"), "continue");
      rest.title = phrase("takes.continue.title");
      buttons.push(rest);
    }
    if (take.isRepeatable) buttons.push(this.#button(phrase(take.hasSound ? "takes.code" : "takes.again"), take.hasSound ? "code" : "again"));
    if (!take.hasSound) return buttons;
    this.compare = this.#button(phrase("takes.compare"), "compare");
    buttons.push(this.compare);
    if (take.isRepeatable && !take.regeneratedFrom && take.record.state === "finished") {
      const verify = this.#button(phrase("history.verify"), "verify");
      verify.title = phrase("history.verify.title");
      buttons.push(verify);
    }
    const save = downloadButton(() => take.formats, (format) => this.does.save(take, format));
    const link = element("button", { type: "button", textContent: phrase("history.link"), title: phrase("history.link.title"), onclick: () => this.does.link(take, link) });
    if (!this.canShare) return [...buttons, save, link];
    const share = this.#button(phrase("history.shareIt"), "share");
    share.title = phrase("history.shareIt.title");
    return [...buttons, save, link, share];
  }

  #button(content, deed, className = "") {
    const children = typeof content === "string" ? [content] : content;
    return element("button", { type: "button", className, onclick: () => this.does[deed](this.take) }, children);
  }
}

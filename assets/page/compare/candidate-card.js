// The card of one candidate in a comparison: its letter, name, state, votes and actions.

import { clock } from "../lib/time.js";
import { element, labelled } from "../lib/elements.js";
import { phrase } from "../lib/phrases.js";

const SCORES = [1, 2, 3, 4, 5];

/** Fires "play", "vote", "best", "use" and "keepVoice". `vote` is {label, score, best}. */
export class CandidateCard extends EventTarget {
  score = null;
  isBest = false;

  constructor(take, label) {
    super();
    this.take = take;
    this.label = label;
    this.name = element("strong", { className: "cell-name" });
    this.state = element("span", { className: "cell-state quiet", textContent: phrase("compare.waiting") });
    this.play = element("button", { type: "button", className: "cell-play", textContent: take.number, disabled: true, onclick: () => this.#tell("play") });
    this.best = element("button", { type: "button", className: "cell-best", textContent: phrase("compare.best"), disabled: true, onclick: () => this.#tell("best") });
    this.best.setAttribute("aria-label", phrase("compare.isBest", { name: take.number }));
    this.scores = this.#scores();
    this.use = element("button", { type: "button", textContent: phrase("compare.use"), onclick: () => this.#tell("use") });
    this.keepVoice = element("button", { type: "button", textContent: phrase("takes.keepVoice"), title: phrase("takes.keepVoice.title"), hidden: !take.canBeVoice, onclick: () => this.#tell("keepVoice") });
    this.save = element("a", { textContent: phrase("takes.save") });
    const words = element("div", { className: "cell-words" }, [this.name, this.state]);
    this.after = element("div", { className: "cell-after" }, [this.use, this.keepVoice, this.save]);
    this.element = element("li", {}, [labelled(this.play, phrase("compare.play", { name: take.number })), words, this.scores, this.best, this.after]);
    this.element.dataset.cell = take.number;
    this.show();
  }

  get vote() {
    return { label: this.label, score: this.score, best: this.isBest };
  }

  say(words, isGrave = false) {
    this.state.textContent = words;
    this.state.classList.toggle("grave", isGrave);
  }

  /** Show that more audio has arrived. */
  grow() {
    this.play.disabled = false;
    this.say(phrase("compare.speaking.time", { time: clock(this.take.seconds) }));
  }

  /** The take has ended: show its length and allow votes. */
  finish() {
    this.play.disabled = this.best.disabled = this.scores.disabled = false;
    const time = clock(this.take.seconds);
    this.say(this.take.ending === "stop" ? time : phrase(this.take.ending === "length" ? "compare.done.cut" : "compare.done.stopped", { time }));
    this.show();
  }

  setBest(isBest) {
    this.isBest = isBest;
    this.best.setAttribute("aria-pressed", String(isBest));
  }

  /** Update the parts that reveal the candidate's identity. */
  show() {
    const { take } = this;
    this.name.textContent = take.isBlind ? phrase("compare.hidden") : this.label;
    this.after.hidden = take.isBlind || !take.file;
    this.use.setAttribute("aria-label", phrase("compare.use.label", { name: take.number }));
    this.save.setAttribute("aria-label", phrase("compare.save", { name: take.number }));
    if (take.file) Object.assign(this.save, { href: take.url, download: take.fileName });
    this.setBest(this.isBest);
  }

  /** Disable voting, as the votes have been counted. */
  close() {
    this.scores.disabled = this.best.disabled = true;
  }

  #scores() {
    const group = element("fieldset", { className: "cell-scores", disabled: true }, [element("legend", { className: "unseen", textContent: phrase("compare.vote", { name: this.take.number }) })]);
    for (const score of SCORES) {
      const input = element("input", { type: "radio", name: `vote-${this.take.number}`, value: score, onchange: () => this.#vote(score) });
      group.append(element("label", {}, [input, element("span", { textContent: score })]));
    }
    return group;
  }

  #vote(score) {
    this.score = score;
    this.#tell("vote");
  }

  #tell(type) {
    this.dispatchEvent(new CustomEvent(type));
  }
}

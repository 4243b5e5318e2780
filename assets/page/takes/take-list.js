// The list of takes generated on this page, newest first: play, save, repeat and compare them.

import { clock } from "../lib/time.js";
import { deleteTake, findTakes, likenessOf, starTake } from "../client/takes.js";
import { restore } from "../client/trash.js";
import { downloadButton } from "../player/download.js";
import { AbComparison } from "./ab-comparison.js";
import { element, icon, labelled, partsOf, showPlaying } from "../lib/elements.js";
import { BIN, PLAY, STAR } from "../lib/icons.js";
import { LookAgain } from "../lib/look-again.js";
import { isInView, show } from "../shell/opened.js";
import { remember, remembered } from "./remembered-takes.js";
import { Take } from "./take.js";
import { offerUndo, withdrawUndo } from "../trash/undo-toast.js";
import { findingWords } from "../voices/advice.js";
import { numeral, phrase } from "../lib/phrases.js";
import { focusAfterwards } from "../lib/typing.js";

const KEPT = 30; // besides starred takes
const SOON = 500; // ms
const MOST = 200; // requested from the server after a reload
const REASONS = 2; // shown for a clone unlike its clip

/**
 * Fires "play", "reuse", "keepSeed", "again", "continue", "code", "keepVoice" and "switch" (play the other take at the same position), each
 * with {take}, "save" with {take, format}, and "fail" with {problem} if the server refuses.
 */
export class TakeList extends EventTarget {
  keeps = true; // whether the server keeps takes, as far as known
  #again = new LookAgain();
  #lastRequest = Promise.resolve(); // the last request to the server, may be in progress
  /** @type {Take[]} */
  #takes = [];
  /** Takes remembered by this tab that the server has not told yet. @type {any[]} */
  #awaited = [];
  /** Deleted takes that may be restored. @type {Take[]} */
  #away = [];
  /** @type {Take | null} */ #current = null;

  constructor(root) {
    super();
    this.root = root;
    this.part = partsOf(root);
    this.comparison = new AbComparison(this.part("compare"));
    this.comparison.addEventListener("switch", ({ detail }) => this.#tell("switch", detail.take));
    this.comparison.addEventListener("change", () => this.#markPair());
  }

  /** Restore this tab's list, as far as stored on the server. Throws Refusal, and then tries again until it is told. */
  async refill() {
    const before = (this.#awaited = remembered().filter(({ id }) => !this.find(id)));
    const ids = before.slice(-MOST).map(({ id }) => id);
    const { data, retention } = await findTakes(ids.length ? { ids: ids.join(","), limit: MOST } : { limit: 1 }).catch((problem) => {
      this.#again.after(problem, () => this.refill().catch(() => {})); // the first refusal is shown
      throw problem;
    });
    this.#awaited = [];
    this.keeps = retention !== null;
    if (this.keeps) this.part("about").replaceChildren(`${phrase("takes.about.tab")} `, element("a", { href: "#history", textContent: phrase("shell.tab.history") }));
    for (const known of before) {
      const record = data.find(({ id, stored }) => stored && id === known.id);
      if (record) this.#insert(Take.of(record, known));
    }
    this.#remember();
  }

  #remember = () => remember([...this.#awaited, ...this.#takes]);

  add(take) {
    this.#insert(take);
    if (isInView(document.querySelector("body[data-speaking] #stop, body:not([data-speaking]) #speak"))) show(take.row);
    for (const old of this.#takes.filter(({ isStarred }) => !isStarred).slice(KEPT)) this.#forget(old);
    this.#remember();
  }

  /** Takes were deleted elsewhere. */
  lose(ids) {
    this.#putAway(this.#takes.filter(({ id }) => ids.includes(id)));
  }

  /** Takes were restored elsewhere. */
  regain(ids) {
    this.#putBack(this.#away.filter(({ id }) => ids.includes(id)));
  }

  #putAway(takes) {
    for (const take of takes) this.#remove(take);
    const away = [...this.#away, ...takes];
    for (const old of away.slice(0, -KEPT)) old.drop();
    this.#away = away.slice(-KEPT);
    this.#remember();
  }

  #putBack(takes) {
    for (const take of takes) this.#place(take);
    this.#away = this.#away.filter((take) => !takes.includes(take));
    this.#remember();
  }

  /** A take was starred elsewhere, or no longer is. */
  mark({ id, isStarred }) {
    const take = this.find(id);
    if (!take) return;
    take.isStarred = isStarred;
    take.row.querySelector(".take-star").setAttribute("aria-pressed", String(isStarred));
  }

  /** Mark the take in the player, and whether it is playing. */
  select(take, isPlaying = false) {
    this.#current = take;
    for (const other of this.#takes) {
      other.row.toggleAttribute("aria-current", other === take);
      this.#showPlaying(other, other === take && isPlaying);
    }
    this.comparison.mark(take);
  }

  #showPlaying({ row, number }, isPlaying) {
    showPlaying(row.querySelector(".take-play"), isPlaying, phrase(isPlaying ? "takes.pause" : "takes.play", { number }));
  }

  /** Switch to the other of two compared takes. */
  other(take) {
    this.comparison.other(take);
  }

  /** Show facts that arrived after a take was added. */
  refresh(take) {
    take.row?.querySelector(".take-facts").replaceChildren(...this.#facts(take));
    if (take.isFirstOfClone) void this.#showLikeness(take);
    if (!take.canContinue) return;
    take.row?.querySelector(".take-actions").replaceWith(this.#actions(take));
    this.#markPair();
  }

  /** Show how much a clone sounds like its clip, in the note on it. */
  async #showLikeness({ id, row, settings }) {
    const words = row?.querySelector(".take-likeness");
    if (!words || !this.keeps || !document.body.hasAttribute("data-demo")) return;
    const likeness = await likenessOf(id, settings.source === "clip" ? settings.clip : null);
    if (likeness) words.textContent = `${likenessWords(likeness)} `;
  }

  #insert(take) {
    take.row = this.#row(take);
    take.row.toggleAttribute("aria-current", take === this.#current);
    this.#place(take);
  }

  /** Sort by number: of several takes generated at once, the first may end last. */
  #place(take) {
    this.#takes.push(take);
    this.#takes.sort((a, b) => b.number - a.number);
    const next = this.#takes[this.#takes.indexOf(take) + 1];
    this.part("list").insertBefore(take.row, next?.row ?? null);
  }

  #tell(type, take, more = {}) {
    this.dispatchEvent(new CustomEvent(type, { detail: { take, ...more } }));
  }

  /** Send requests in order, so that a take is deleted before it is restored. Do nothing if the server does not keep takes. Throws Refusal. */
  #tellServer(work) {
    const told = this.#lastRequest.then(() => (this.keeps ? this.#try(work) : null));
    this.#lastRequest = told.catch(() => {}); // handled by its caller
    return told;
  }

  #fail(problem) {
    this.dispatchEvent(new CustomEvent("fail", { detail: { problem } }));
  }

  /** Retry while the server is busy with the take; ignore takes unknown to it. Returns its answer, if any. Throws Refusal. */
  async #try(work) {
    try {
      return await work();
    } catch (problem) {
      if (problem.status === 409) return new Promise((resolve) => { setTimeout(() => resolve(this.#try(work)), SOON); });
      return problem.status === 404 ? null : Promise.reject(problem);
    }
  }

  #remove(take) {
    this.comparison.drop(take);
    this.#takes = this.#takes.filter((other) => other !== take);
    take.row.remove();
  }

  #forget(take) {
    this.#remove(take);
    take.drop();
  }

  #delete(take) {
    this.#putAway([take]);
    const words = phrase("takes.deleted", { name: take.name });
    const step = offerUndo(words, async () => {
      await this.#tellServer(() => restore("take", [take.id]));
      this.#putBack([take]);
      focusAfterwards(take.row.querySelector(".take-play"));
    });
    this.#tellServer(() => deleteTake(take.id)).then((answer) => {
      if (answer?.undo_seconds !== 0) return;
      withdrawUndo(step); // nothing to restore: the take was never stored, or the trash is off
      offerUndo(words, null);
    }).catch((problem) => this.#fail(problem));
  }

  #star(take, star) {
    const isStarred = !take.isStarred;
    const mark = (is) => star.setAttribute("aria-pressed", String((take.isStarred = is)));
    mark(isStarred);
    this.#tellServer(() => starTake(take.id, isStarred)).catch((problem) => {
      mark(!isStarred); // it would seem to be kept
      this.#fail(problem);
    });
  }

  #markPair() {
    for (const take of this.#takes) take.row.querySelector(".take-compare")?.setAttribute("aria-pressed", String(this.comparison.has(take)));
  }

  /** Return the listed take with this id, if any. */
  find(id) {
    return this.#takes.find((take) => take.id === id);
  }

  /** Describe the take of which this is a new version. */
  #origin({ regeneratedFrom }) {
    if (!regeneratedFrom) return [];
    const before = this.find(regeneratedFrom);
    return [before ? phrase("takes.mended.of", { name: before.name }) : phrase("takes.mended")];
  }

  #facts(take) {
    const facts = [phrase("takes.name", { number: take.number }), take.voiceName, clock(take.seconds), ...this.#origin(take)];
    const figures = [phrase("takes.seed", { seed: String(take.seed) }), ...(take.rtf === null ? [] : [`${phrase("player.rtf")} ${numeral(take.rtf, 2)}`])];
    const shown = [...facts.map((textContent) => element("span", { textContent })), ...figures.map((textContent) => element("span", { textContent, className: "figure" }))];
    if (!take.endingWords) return shown;
    const ending = element("span", { textContent: take.endingWords });
    ending.dataset.ending = take.ending;
    return [...shown, ending];
  }

  #row(take) {
    const words = element("div", { className: "take-words" }, [
      element("p", { className: "take-text", dir: "auto", textContent: take.request.input }),
      element("p", { className: "take-facts" }, this.#facts(take)),
      ...(take.isFirstOfClone ? [ofClone()] : []),
    ]);
    const play = element("button", { type: "button", className: "take-play", onclick: () => this.#tell("play", take) }, [icon(PLAY)]);
    play.disabled = !take.hasSound;
    const row = element("li", {}, [labelled(play, phrase("takes.play", { number: take.number })), words, this.#actions(take)]);
    row.dataset.take = take.number;
    row.toggleAttribute("data-silent", !take.hasSound);
    return row;
  }

  #actions(take) {
    const does = (textContent, title, onclick) => element("button", { type: "button", textContent, title, onclick });
    const star = element("button", { type: "button", className: "take-star" }, [icon(STAR)]);
    star.setAttribute("aria-pressed", String(take.isStarred));
    star.onclick = () => this.#star(take, star);
    const chooses = does(phrase("takes.compare"), phrase("takes.compare.title"), () => this.comparison.toggle(take));
    chooses.className = "take-compare";
    chooses.setAttribute("aria-pressed", "false");
    const save = downloadButton(() => take.formats, (format) => this.#tell("save", take, { format }));
    save.setAttribute("aria-label", phrase("takes.save.label", { number: take.number }));
    const bin = element("button", { type: "button", className: "take-bin", onclick: () => this.#delete(take) }, [icon(BIN)]);
    const code = does(phrase("takes.code"), phrase("takes.code.title"), () => this.#tell("code", take));
    const again = does(phrase("takes.again"), phrase("takes.again.title"), () => this.#tell("again", take));
    const rest = does(phrase("takes.continue"), phrase("takes.continue.title"), () => this.#tell("continue", take));
    return element("div", { className: "take-actions" }, [
      ...(take.hasSound || !take.isRepeatable ? [] : [again]),
      ...(take.canContinue ? [rest] : []),
      does(phrase("takes.reuse"), phrase("takes.reuse.title"), () => this.#tell("reuse", take)),
      does(phrase("takes.keepSeed"), phrase("takes.keepSeed.title"), () => this.#tell("keepSeed", take)),
      ...(take.hasSound && take.canBeVoice ? [does(phrase("takes.keepVoice"), phrase("takes.keepVoice.title"), () => this.#tell("keepVoice", take))] : []),
      ...(take.hasSound ? [chooses] : []),
      ...(take.record && !take.isRepeatable ? [] : [code]),
      ...(take.hasSound ? [save] : []),
      labelled(star, phrase("takes.star", { number: take.number })),
      labelled(bin, phrase("takes.delete", { number: take.number })),
    ]);
  }
}

/** The note on a clone's first take, where the model only approximates voices. */
function ofClone() {
  const more = element("button", { type: "button", className: "demo-more", textContent: phrase("shell.betterModel") });
  more.dataset.opens = "better-model";
  const likeness = element("span", { className: "take-likeness", role: "status" });
  return element("p", { className: "take-clone demo-only" }, [`${phrase("takes.clone")} `, likeness, more]);
}

function likenessWords({ percent, grade, closest, findings }) {
  const sentences = [phrase(/** @type {import("../lib/phrases.js").Key} */ (`takes.likeness.${grade}`), { percent })];
  if (closest && grade !== "close") sentences.push(phrase("takes.likeness.closest", { name: closest.name }));
  return [...sentences, ...findings.slice(0, REASONS).map((finding) => findingWords(finding).message)].join(" ");
}

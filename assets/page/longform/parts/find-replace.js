// Finds words in all parts of a project, steps through the parts that contain them, and replaces them after showing the count.

import { replaceWords, undoReplace } from "../../client/projects.js";
import { Refusal } from "../../client/refusal.js";
import { Latest } from "../../lib/latest.js";
import { phrase } from "../../lib/phrases.js";
import { closeOnEscape, focusAfterwards } from "../../lib/typing.js";
import { offerUndo } from "../../trash/undo-toast.js";

const WAIT = 250; // ms after the last key press

/** Say how often the words were found in texts, and in ids of a table. */
const foundWords = (count, parts, ids) => [
  ...(count ? [phrase("project.found", figures(count, parts))] : []), ...(ids ? [phrase("project.found.ids", { count: ids })] : []),
].join(" ") || phrase("project.found.none");

const figures = (count, parts) => ({ times: phrase("project.times", { count }), parts: phrase("project.parts", { count: parts }) });

export class FindReplace {
  #timer = 0;
  #counts = new Latest();
  #counted = Promise.resolve(); // resolves when the latest count has ended
  /** Positions of the parts that contain the words. @type {number[]} */
  #positions = [];
  #summary = "";
  #at = -1; // index in #positions; -1: none

  /** ready(): resolves when edited texts are saved; changed(): called after replacing; found(): when `pattern` changes; go(position, isEntered): shows a part; isEntered: focuses its text. */
  constructor(part, { id, signal, ready, changed, found, go }) {
    this.part = part;
    this.id = id;
    this.signal = signal;
    this.ready = ready;
    this.changed = changed;
    this.found = found;
    this.go = go;
    part("find-form").reset();
    this.#say("");
    part("replace").disabled = true;
    part("find-form").addEventListener("input", () => this.#later(), { signal });
    part("find-form").addEventListener("submit", (event) => this.#replace(event), { signal });
    part("replacing").hidden = true;
    part("find-replace").setAttribute("aria-expanded", "false");
    part("find-replace").addEventListener("click", () => this.#openReplacing(), { signal });
    closeOnEscape(part("find-replace"), part("replacing"), signal);
    for (const [name, by] of /** @type {const} */ ([["find-previous", -1], ["find-next", 1]])) part(name).addEventListener("click", () => this.#step(by), { signal });
    part("find").addEventListener("keydown", (event) => this.#key(event), { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
  }

  get #query() {
    return {
      find: this.part("find").value,
      replace: this.part("replacement").value,
      match_case: this.part("match-case").checked,
      whole_words: this.part("whole-words").checked,
    };
  }

  /** Matches the words that were found, as on the server; null if there are none. */
  get pattern() {
    const { find, match_case: isExact, whole_words: isWhole } = this.#query;
    if (!this.#positions.length || !find) return null;
    const edge = (/** @type {RegExp} */ word, /** @type {string} */ bounded) => (isWhole && word.test(find) ? bounded : "");
    const [begin, end] = [edge(/^[\p{L}\p{N}_]/u, "(?<![\\p{L}\\p{N}_])"), edge(/[\p{L}\p{N}_]$/u, "(?![\\p{L}\\p{N}_])")];
    return new RegExp(begin + find.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&") + end, isExact ? "gu" : "giu");
  }

  #say(words) {
    this.part("found").textContent = words;
    this.found();
    for (const name of ["find-previous", "find-next"]) this.part(name).disabled = !this.#positions.length;
  }

  #openReplacing() {
    const isOpen = this.part("replacing").hidden;
    this.part("replacing").hidden = !isOpen;
    this.part("find-replace").setAttribute("aria-expanded", String(isOpen));
    if (isOpen) this.part("replacement").focus();
    if (this.#at >= 0) this.#attempt(() => this.go(this.#positions[this.#at])); // the bar has another height
  }

  /** Enter goes to the next match, Shift+Enter back; Escape focuses the current match, or else clears the search. */
  #key(event) {
    if (event.key === "Escape" && this.#at >= 0) {
      event.preventDefault(); // the browser would clear the field
      this.#attempt(() => this.go(this.#positions[this.#at], true));
    } else if (event.key === "Escape" && this.part("find").value) {
      this.part("find").value = "";
      this.#later();
    }
    if (event.key !== "Enter") return;
    event.preventDefault(); // only the button replaces
    this.#step(event.shiftKey ? -1 : 1);
  }

  /** Show the next or previous part with a match; words just typed are counted first. */
  async #step(by) {
    if (this.#timer) this.#startCount();
    const isLatest = this.#counts.join();
    await this.#counted;
    if (!isLatest() || this.signal.aborted) return;
    if (!this.#positions.length) return;
    const count = this.#positions.length;
    this.#at = this.#at < 0 ? (by > 0 ? 0 : count - 1) : (this.#at + by + count) % count;
    this.#tell();
    await this.#attempt(() => this.go(this.#positions[this.#at]));
  }

  #tell() {
    this.#say(this.#at < 0 ? this.#summary : `${phrase("project.found.at", { number: this.#at + 1, count: this.#positions.length })} · ${this.#summary}`);
  }

  /** Count once typing stops; replacing is disabled until then. */
  #later() {
    this.part("replace").disabled = true;
    this.#counts.end();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#startCount(), WAIT);
  }

  #startCount() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#counted = this.#count();
  }

  async #count() {
    const isLatest = this.#counts.begin();
    const query = this.#query;
    [this.#positions, this.#at] = [[], -1];
    if (!query.find) return this.#say("");
    await this.#attempt(async () => {
      const { count, parts, ids, positions } = await replaceWords(this.id, { ...query, dry_run: true });
      if (!isLatest() || this.signal.aborted) return;
      [this.#positions, this.#summary] = [positions, foundWords(count, parts, ids)];
      this.#tell();
      this.part("replace").disabled = !count;
    });
  }

  async #replace(event) {
    event.preventDefault();
    if (this.part("replace").disabled) return;
    this.part("replace").disabled = true;
    await this.#attempt(async () => {
      const { count, parts, id } = await replaceWords(this.id, this.#query);
      if (this.signal.aborted) return;
      this.#positions = [];
      this.#say(parts ? "" : phrase("project.replaced.none"));
      if (parts) offerUndo(phrase("project.replaced", figures(count, parts)), () => this.#undo(id), false);
      focusAfterwards(this.part("find")); // the button is disabled now
      this.changed();
    });
  }

  async #undo(replacement) {
    const { parts, left } = await undoReplace(this.id, replacement);
    if (!this.signal.aborted) this.changed();
    return { undone: parts, left: Array(left) };
  }

  async #attempt(work) {
    try {
      await this.ready();
      await work();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      if (!this.signal.aborted) this.#say(problem.why);
    }
  }
}

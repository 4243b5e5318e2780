// Finds words in all parts of a project and replaces them; the number of matches is shown first.

import { replaceWords, undoReplace } from "../client/projects.js";
import { Refusal } from "../client/refusal.js";
import { Latest } from "../lib/latest.js";
import { phrase } from "../lib/phrases.js";
import { offerUndo } from "../trash/undo-toast.js";

const WAIT = 250; // ms after the last key

const figures = (count, parts) => ({ times: phrase("project.times", { count }), parts: phrase("project.parts", { count: parts }) });

export class FindReplace {
  #timer = 0;
  #counts = new Latest();

  /** ready(): resolves when edited texts are saved; changed(): the parts have new text. */
  constructor(part, { id, signal, ready, changed }) {
    this.part = part;
    this.id = id;
    this.signal = signal;
    this.ready = ready;
    this.changed = changed;
    part("find-form").reset();
    this.#say("");
    part("replace").disabled = true;
    part("find-form").addEventListener("input", () => this.#later(), { signal });
    part("find-form").addEventListener("submit", (event) => this.#replace(event), { signal });
    part("finding").open = false;
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

  #say(words) {
    this.part("found").textContent = words;
  }

  /** Count once typing stops; replacing is disabled until then. */
  #later() {
    this.part("replace").disabled = true;
    this.#counts.end();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#count(), WAIT);
  }

  async #count() {
    const isLatest = this.#counts.begin();
    const query = this.#query;
    if (!query.find) return this.#say("");
    await this.#attempt(async () => {
      const { count, parts } = await replaceWords(this.id, { ...query, dry_run: true });
      if (!isLatest() || this.signal.aborted) return;
      this.#say(count ? phrase("project.found", figures(count, parts)) : phrase("project.found.none"));
      this.part("replace").disabled = !count;
    });
  }

  async #replace(event) {
    event.preventDefault();
    if (this.part("replace").disabled) return;
    this.part("replace").disabled = true;
    await this.#attempt(async () => {
      const { count, parts } = await replaceWords(this.id, this.#query);
      if (this.signal.aborted) return;
      this.#say(parts ? "" : phrase("project.replaced.none"));
      if (parts) offerUndo(phrase("project.replaced", figures(count, parts)), () => this.#undo());
      this.changed();
    });
  }

  async #undo() {
    const { parts, left } = await undoReplace(this.id);
    if (this.signal.aborted) return;
    const kept = left ? ` ${phrase("project.unreplaced.kept", { count: left })}` : "";
    this.#say(`${phrase("project.unreplaced", { count: parts })}${kept}`);
    this.changed();
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

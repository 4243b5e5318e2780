// The Activity area: the caller's long work that is under way, and current and recent requests, from the page or the API.

import { cancelRequest, jobs, queue } from "../client/system.js";
import { recentTakes } from "../client/takes.js";
import { speakersOf } from "../client/voices.js";
import { element, labelled, partsOf, setChildren } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";
import { LOCALE, numeral, phrase } from "../lib/phrases.js";
import { JobList } from "./jobs.js";

const REFRESH = 1000; // ms, while the area is shown
const SHOWN = 20;
const COLUMNS = 8; // without the column of the button
const FIGURES = 5; // index of the first column with figures

const STATES = ["waiting", "speaking", "finished", "cancelled", "failed"];

const when = (/** @type {number} */ seconds) => new Date(1000 * seconds).toLocaleTimeString(LOCALE, { timeStyle: "short" });

/** @type {(state: string) => string} */
const named = (state) => (STATES.includes(state) ? phrase(/** @type {import("../lib/phrases.js").Key} */ (`queue.${state}`)) : state);

function cells(take) {
  const first = take.first_audio_ms === null ? "" : `${Math.round(take.first_audio_ms)} ms`;
  const state = take.finish_reason === "length" ? phrase("queue.cut") : named(take.state);
  return [when(take.created), take.excerpt ?? "", state, speakersOf(take), take.audio_s ? phrase("time.seconds", { seconds: numeral(take.audio_s, 1) }) : "", first, take.rtf === null ? "" : numeral(take.rtf, 2), String(take.seed)];
}

export class Queue {
  #rows = new Map(); // by take id
  #timer = 0;
  #looks = new Latest(); // ended while the area is hidden

  constructor(root) {
    this.part = partsOf(root);
    this.jobs = new JobList(this.part);
  }

  open() {
    this.#refresh();
  }

  close() {
    this.#looks.end();
    clearTimeout(this.#timer);
  }

  async #refresh() {
    clearTimeout(this.#timer);
    const isLatest = this.#looks.begin();
    const answers = await Promise.all([queue(), recentTakes(), jobs()]).catch(() => null);
    if (!isLatest()) return;
    this.#timer = setTimeout(() => this.#refresh(), REFRESH);
    if (answers) this.#show(...answers);
    else this.part("load").textContent = phrase("queue.offline");
  }

  #show(line, takes, listed) {
    this.jobs.show(listed ?? []);
    this.part("load").textContent = line
      ? phrase("queue.load", { running: line.running, slots: line.max_rows, waiting: line.waiting })
      : phrase("queue.notReady");
    const stored = new Set(takes.map((take) => take.id));
    const others = (line?.ended ?? []).filter((take) => !stored.has(take.id)); // not stored, as those stopped before their first sound
    const all = [...takes, ...others].sort((one, other) => other.created - one.created);
    this.part("empty").hidden = all.length > 0;
    this.#rows = new Map(all.slice(0, SHOWN).map((take) => [take.id, this.#row(take)]));
    setChildren(this.part("rows"), [...this.#rows.values()]);
  }

  /** Return a take's row, reused while the take is listed, so that no press on its button is lost. */
  #row(take) {
    const row = this.#rows.get(take.id) ?? this.#newRow(take);
    const isUnderWay = take.state === "waiting" || take.state === "speaking";
    row.dataset.state = take.state;
    row.title = take.error ?? take.id;
    for (const [i, words] of cells(take).entries()) if (row.cells[i].textContent !== words) row.cells[i].textContent = words;
    if (!isUnderWay) row.cells[COLUMNS].replaceChildren();
    return row;
  }

  #newRow(take) {
    const onclick = async () => {
      const isShown = this.#looks.join();
      await cancelRequest(take.id);
      if (isShown()) this.#refresh();
    };
    const end = labelled(element("button", { type: "button", textContent: phrase("speak.stop"), onclick }), phrase("queue.stop", { voice: speakersOf(take), seed: String(take.seed) }));
    return element("tr", {}, [...Array.from({ length: COLUMNS }, (_, i) => element("td", { className: i < FIGURES ? "" : "figure" })), element("td", {}, [end])]);
  }
}

// The area of requests: what this caller has under way, on the page or through the API, and what became of the last ones.

import { cancelRequest, queue } from "../client/system.js";
import { recentTakes } from "../client/takes.js";
import { element, labelled, partsOf, setChildren } from "../lib/elements.js";
import { Latest } from "../lib/latest.js";

const REFRESH = 1000; // ms, while the area is shown
const SHOWN = 20;
const COLUMNS = 6; // and one more for the button
const FIGURES = 3; // of the columns, from which on they are figures

const STATES = { waiting: "Waiting", speaking: "Speaking", finished: "Finished", cancelled: "Stopped", failed: "Failed" };

function cells(take) {
  const first = take.first_audio_ms === null ? "" : `${Math.round(take.first_audio_ms)} ms`;
  const state = take.finish_reason === "length" ? "Cut" : (STATES[take.state] ?? take.state);
  return [state, take.voice, take.audio_s ? `${take.audio_s.toFixed(1)} s` : "", first, take.rtf?.toFixed(2) ?? "", String(take.seed)];
}

export class Queue {
  #rows = new Map(); // by take id
  #timer = 0;
  #looks = new Latest(); // none counts while the area is not shown

  constructor(root) {
    this.part = partsOf(root);
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
    const answers = await Promise.all([queue(), recentTakes()]).catch(() => null);
    if (!isLatest()) return;
    this.#timer = setTimeout(() => this.#refresh(), REFRESH);
    if (answers) this.#show(...answers);
    else this.part("load").textContent = "The studio does not answer. This list may be out of date; retrying.";
  }

  #show(line, takes) {
    this.part("load").textContent = line
      ? `${line.running} of ${line.max_rows} slots busy, ${line.waiting} waiting.`
      : "The engine is not ready.";
    this.part("empty").hidden = takes.length > 0;
    this.#rows = new Map(takes.slice(0, SHOWN).map((take) => [take.id, this.#row(take)]));
    setChildren(this.part("rows"), [...this.#rows.values()]);
  }

  /** The row of a take, the same one as long as it is listed: a press on its button must not miss it. */
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
    const end = labelled(element("button", { type: "button", textContent: "Stop", onclick }), `Stop the take of ${take.voice}, seed ${take.seed}`);
    return element("tr", {}, [...Array.from({ length: COLUMNS }, (_, i) => element("td", { className: i < FIGURES ? "" : "figure" })), element("td", {}, [end])]);
  }
}

// The area of requests: what this caller has under way, on the page or through the API, and what became of the last ones.

import { cancelRequest, queue, recentTakes } from "./door.js";

const REFRESH = 1000; // ms, while the area is shown
const SHOWN = 20;

const STATES = { waiting: "In line", speaking: "Speaking", finished: "Finished", cancelled: "Stopped", failed: "Failed" };

function cells(take) {
  const first = take.first_audio_ms === null ? "" : `${Math.round(take.first_audio_ms)} ms`;
  const state = take.finish_reason === "length" ? "Cut" : (STATES[take.state] ?? take.state);
  return [state, take.voice, take.audio_s ? `${take.audio_s.toFixed(1)} s` : "", first, take.rtf?.toFixed(2) ?? "", String(take.seed)];
}

export class Queue {
  #timer = 0;
  #isOpen = false;

  constructor(element) {
    this.element = element;
    this.part = (name) => element.querySelector(`[data-part=${name}]`);
  }

  open() {
    this.#isOpen = true;
    this.#refresh();
  }

  close() {
    this.#isOpen = false;
    clearTimeout(this.#timer);
  }

  async #refresh() {
    clearTimeout(this.#timer);
    const [line, takes] = await Promise.all([queue(), recentTakes()]);
    if (!this.#isOpen) return;
    this.part("load").textContent = line
      ? `${line.running} of ${line.max_rows} places speak, ${line.waiting} in line.`
      : "The engine is not ready.";
    this.part("empty").hidden = takes.length > 0;
    this.part("rows").replaceChildren(...takes.slice(0, SHOWN).map((take) => this.#row(take)));
    this.#timer = setTimeout(() => this.#refresh(), REFRESH);
  }

  #row(take) {
    const row = document.createElement("tr");
    row.dataset.state = take.state;
    row.title = take.error ?? take.id;
    row.append(...cells(take).map((words) => Object.assign(document.createElement("td"), { textContent: words })));
    const last = document.createElement("td");
    if (take.state === "waiting" || take.state === "speaking") last.append(this.#end(take));
    row.append(last);
    return row;
  }

  #end(take) {
    const end = Object.assign(document.createElement("button"), { type: "button", textContent: "Stop" });
    end.addEventListener("click", async () => {
      await cancelRequest(take.id);
      this.#refresh();
    });
    return end;
  }
}

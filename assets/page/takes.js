// The list of takes made on this page: newest first, each playable, savable and repeatable. It keeps them in memory only.

import { clock } from "./dock.js";
import { wavFile } from "./wav.js";

const KEPT = 30;

const ENDINGS = {
  stop: ["finished", "Finished by itself"],
  length: ["cut", "Cut at the longest take. For the rest, raise “Longest take” under Sampling or shorten the script."],
  stopped: ["stopped", "Stopped by you"],
  broken: ["broken", "Broken off: the connection was lost"],
};

/** One take while and after it is made. pieces are Int16Array until it is closed; then file is a WAV blob. */
export class Take {
  constructor({ number, request, voiceName, settings }) {
    Object.assign(this, { number, request, voiceName, settings });
    Object.assign(this, { id: null, seed: null, sampleRate: 0, samples: 0, pieces: [], outline: null, file: null, url: null });
    Object.assign(this, { queueMs: null, serverMs: null, heardMs: null, rtf: null, underruns: 0, ending: null });
  }

  get seconds() {
    return this.sampleRate ? this.samples / this.sampleRate : 0;
  }

  get fileName() {
    return `take-${this.number}-${this.request.voice || "own-clip"}-seed-${this.seed}.wav`;
  }

  get endingWords() {
    return ENDINGS[this.ending]?.[1] ?? "";
  }

  /** Turn what was received into a file; the pieces are let go. */
  close(ending) {
    this.ending = ending;
    this.file = wavFile(this.pieces, this.sampleRate);
    this.url = URL.createObjectURL(this.file);
    this.pieces = [];
  }

  async pcm() {
    return new Int16Array(await this.file.slice(44).arrayBuffer());
  }

  drop() {
    URL.revokeObjectURL(this.url);
  }
}

function button(words, label, action) {
  const element = document.createElement("button");
  Object.assign(element, { type: "button", textContent: words, title: label });
  element.addEventListener("click", action);
  return element;
}

/** Fires "play", "reuse" and "keepSeed", each with {take}. */
export class TakeList extends EventTarget {
  #takes = [];

  constructor(element) {
    super();
    this.element = element;
    this.list = element.querySelector("[data-part=list]");
  }

  add(take) {
    this.#takes.unshift(take);
    this.list.prepend(this.#row(take));
    this.element.hidden = false;
    for (const old of this.#takes.splice(KEPT)) {
      old.drop();
      old.row.remove();
    }
  }

  /** Mark the take that the player holds. */
  select(take) {
    for (const each of this.#takes) each.row.toggleAttribute("aria-current", each === take);
  }

  /** Show what became known of a take since it was added. */
  refresh(take) {
    take.row?.querySelector(".take-facts").replaceChildren(...this.#facts(take));
  }

  #facts(take) {
    const facts = [take.voiceName, clock(take.seconds), `seed ${take.seed}`];
    if (take.rtf !== null) facts.push(`RTF ${take.rtf.toFixed(2)}`);
    const items = facts.map((words) => Object.assign(document.createElement("span"), { textContent: words }));
    const ending = Object.assign(document.createElement("span"), { textContent: take.endingWords });
    ending.dataset.ending = take.ending;
    return [...items, ending];
  }

  #row(take) {
    const row = document.createElement("li");
    take.row = row;
    row.dataset.take = take.number;
    const tell = (type) => () => this.dispatchEvent(new CustomEvent(type, { detail: { take } }));
    const play = button("", `Play take ${take.number}`, tell("play"));
    play.className = "take-play";
    play.setAttribute("aria-label", `Play take ${take.number}`);
    play.innerHTML = '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M8 5.4v13.2a.8.8 0 0 0 1.2.7l10.4-6.6a.8.8 0 0 0 0-1.4L9.2 4.7A.8.8 0 0 0 8 5.4Z"/></svg>';
    const words = document.createElement("div");
    words.className = "take-words";
    const text = Object.assign(document.createElement("p"), { className: "take-text", textContent: take.request.input });
    const facts = Object.assign(document.createElement("p"), { className: "take-facts" });
    facts.append(...this.#facts(take));
    words.append(text, facts);
    const save = Object.assign(document.createElement("a"), { href: take.url, download: take.fileName, textContent: "Save" });
    save.setAttribute("aria-label", `Save take ${take.number} as WAV`);
    const actions = document.createElement("div");
    actions.className = "take-actions";
    actions.append(
      button("Reuse", "Put this take's script and settings back on the page", tell("reuse")),
      button("Keep seed", "Use this take's seed for the next ones too", tell("keepSeed")),
      save,
    );
    row.append(play, words, actions);
    return row;
  }
}

// The list of takes made on this page: newest first, each playable, savable, repeatable and comparable with another.

import { clock } from "./dock.js";
import { element, icon, labelled } from "./parts.js";

const KEPT = 30; // beside the starred ones
const PLAY = '<path d="M8 5.4v13.2a.8.8 0 0 0 1.2.7l10.4-6.6a.8.8 0 0 0 0-1.4L9.2 4.7A.8.8 0 0 0 8 5.4Z"/>';
const STAR = '<path d="m12 4.2 2.4 4.9 5.4.8-3.900 3.800.9 5.400L12 16.500l-4.800 2.600.9-5.400-3.900-3.800 5.400-.8L12 4.200Z"/>';
const BIN = '<path d="M5 7h14M10 7V4.800h4V7m3 0-.8 12.200H7.800L7 7m3.300 3.600v5.200m3.400-5.200v5.200"/>';

/** Fires "play", "reuse", "keepSeed", "code", "convert" and "switch" (play the other one, at the same place), each with {take}. */
export class TakeList extends EventTarget {
  #takes = [];
  #compared = [];
  #deleted = null;

  /** format: gives the format besides WAV in which takes can be saved, or null. */
  constructor(root, format) {
    super();
    Object.assign(this, { root, format });
    this.part = (name) => root.querySelector(`[data-part=${name}]`);
    this.part("done").addEventListener("click", () => this.#compare([]));
    this.part("undo").addEventListener("click", () => this.#undo());
  }

  add(take) {
    this.#takes.unshift(take);
    take.row = this.#row(take);
    this.part("list").prepend(take.row);
    this.root.hidden = false;
    for (const old of this.#takes.filter((each) => !each.isStarred).slice(KEPT)) this.#forget(old);
  }

  /** Mark the take that the player holds. */
  select(take) {
    for (const each of this.#takes) each.row.toggleAttribute("aria-current", each === take);
    for (const button of this.part("pair").children) {
      button.setAttribute("aria-pressed", String(button.dataset.take === String(take.number)));
    }
  }

  /** Show what became known of a take since it was added. */
  refresh(take) {
    take.row?.querySelector(".take-facts").replaceChildren(...this.#facts(take));
  }

  /** Go to the other one of two compared takes. */
  other(take) {
    const other = this.#compared.find((each) => each !== take);
    if (this.#compared.length === 2) this.#tell("switch", other);
  }

  #tell(type, take) {
    this.dispatchEvent(new CustomEvent(type, { detail: { take } }));
  }

  #forget(take) {
    this.#takes = this.#takes.filter((each) => each !== take);
    take.row.remove();
    take.drop();
  }

  #delete(take) {
    this.#deleted?.drop();
    this.#deleted = take;
    this.#compare(this.#compared.filter((each) => each !== take));
    this.#takes = this.#takes.filter((each) => each !== take);
    take.row.remove();
    this.part("deleted").hidden = false;
    this.part("deleted-words").textContent = `Take ${take.number} deleted.`;
    this.part("undo").focus();
  }

  #undo() {
    const take = this.#deleted;
    this.#deleted = null;
    this.part("deleted").hidden = true;
    this.#takes.push(take);
    this.#takes.sort((a, b) => b.number - a.number);
    const next = this.#takes[this.#takes.indexOf(take) + 1];
    this.part("list").insertBefore(take.row, next?.row ?? null);
    take.row.querySelector(".take-play").focus();
  }

  #compare(takes) {
    this.#compared = takes.slice(-2);
    for (const each of this.#takes) {
      each.row.querySelector(".take-compare").setAttribute("aria-pressed", String(this.#compared.includes(each)));
    }
    this.part("compare").hidden = this.#compared.length < 2;
    this.part("pair").replaceChildren(...this.#compared.map((take) => this.#side(take)));
  }

  #side(take) {
    const side = element("button", { type: "button", textContent: `Take ${take.number}`, onclick: () => this.#tell("switch", take) });
    side.dataset.take = take.number;
    side.setAttribute("aria-pressed", "false");
    return side;
  }

  #facts(take) {
    const facts = [`Take ${take.number}`, take.voiceName, clock(take.seconds), `seed ${take.seed}`];
    if (take.rtf !== null) facts.push(`RTF ${take.rtf.toFixed(2)}`);
    const ending = element("span", { textContent: take.endingWords });
    ending.dataset.ending = take.ending;
    return [...facts.map((words) => element("span", { textContent: words })), ending];
  }

  #row(take) {
    const words = element("div", { className: "take-words" }, [
      element("p", { className: "take-text", textContent: take.request.input }),
      element("p", { className: "take-facts" }, this.#facts(take)),
    ]);
    const play = element("button", { type: "button", className: "take-play", onclick: () => this.#tell("play", take) }, [icon(PLAY)]);
    const row = element("li", {}, [labelled(play, `Play take ${take.number}`), words, this.#actions(take)]);
    row.dataset.take = take.number;
    return row;
  }

  #actions(take) {
    const does = (textContent, title, onclick) => element("button", { type: "button", textContent, title, onclick });
    const star = element("button", { type: "button", className: "take-star" }, [icon(STAR)]);
    star.setAttribute("aria-pressed", "false");
    star.onclick = () => {
      take.isStarred = !take.isStarred;
      star.setAttribute("aria-pressed", String(take.isStarred));
    };
    const chooses = does("Compare", "Choose two takes and switch between them at the same place", () => {
      const chosen = this.#compared.includes(take);
      this.#compare(chosen ? this.#compared.filter((each) => each !== take) : [...this.#compared, take]);
    });
    chooses.className = "take-compare";
    chooses.setAttribute("aria-pressed", "false");
    const save = element("a", { href: take.url, download: take.fileName, textContent: "Save" });
    save.setAttribute("aria-label", `Save take ${take.number} as WAV`);
    const bin = element("button", { type: "button", className: "take-bin", onclick: () => this.#delete(take) }, [icon(BIN)]);
    return element("div", { className: "take-actions" }, [
      does("Reuse", "Put this take's script and settings back on the page", () => this.#tell("reuse", take)),
      does("Keep seed", "Use this take's seed for the next ones too", () => this.#tell("keepSeed", take)),
      chooses,
      does("Code", "Show this take as a program", () => this.#tell("code", take)),
      save,
      ...(this.format() && ["stop", "length"].includes(take.ending) ? [does(this.format().toUpperCase(), "Speak it again with the same seed, into a file of this format", () => this.#tell("convert", take))] : []),
      labelled(star, `Star take ${take.number}: keep it however many follow`),
      labelled(bin, `Delete take ${take.number}`),
    ]);
  }
}

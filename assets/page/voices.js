// The area of the voice library: find, listen, choose, favour, export, import, delete and bring back.

import { Refusal } from "./door.js";
import { changeVoice, deleteVoice, exportAddress, findVoices, importVoice, previewAddress, restoreVoice } from "./library.js";

/** Fires "choose" with {id} and "changed" when the library is another one. */
export class Voices extends EventTarget {
  #deleted = null;
  #sound = new Audio();
  #turn = 0;

  constructor(element) {
    super();
    this.element = element;
    this.part = (name) => element.querySelector(`[data-part=${name}]`);
    this.part("search").addEventListener("input", () => this.#list());
    this.part("undo").addEventListener("click", () => this.#do(() => this.#undo()));
    this.part("import").addEventListener("change", ({ target }) => this.#do(() => this.#import(target)));
  }

  open() {
    this.#say("");
    this.#do(() => this.#list());
  }

  close() {
    this.#sound.pause();
  }

  #say(words, deleted = null) {
    this.#deleted = deleted;
    this.part("said").textContent = words;
    this.part("undo").hidden = deleted === null;
  }

  async #do(work) {
    try {
      await work();
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.#say(problem.why);
    }
  }

  async #changed() {
    this.dispatchEvent(new CustomEvent("changed"));
    await this.#list();
  }

  async #list() {
    const turn = (this.#turn += 1);
    const { data, has_more: hasMore } = await findVoices({ q: this.part("search").value });
    if (turn !== this.#turn) return;
    this.part("list").replaceChildren(...data.map((voice) => this.#row(voice)));
    if (hasMore) this.#say("There are more: search by name.");
    else if (!data.length) this.#say("No voice of that name. Record or upload a clip, then choose “Keep this voice …”.");
  }

  async #undo() {
    const voice = this.#deleted;
    await restoreVoice(voice.id);
    this.#say(`${voice.name} is back.`);
    await this.#changed();
  }

  async #import(input) {
    const voice = await importVoice(input.files[0]);
    input.value = "";
    this.#say(`${voice.name} is in the library.`);
    await this.#changed();
  }

  #row(voice) {
    const facts = [`${voice.seconds.toFixed(1)} s`, voice.language, ...voice.tags, voice.bundled ? "bundled" : ""];
    const name = Object.assign(document.createElement("strong"), { textContent: voice.name });
    const more = Object.assign(document.createElement("span"), { className: "quiet", textContent: facts.filter(Boolean).join(" · ") });
    const words = Object.assign(document.createElement("div"), { className: "voice-words" });
    words.append(name, more);
    const row = document.createElement("li");
    row.append(words, ...this.#actions(voice));
    return row;
  }

  #actions(voice) {
    const does = (words, label, work) => {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: words, onclick: () => this.#do(work) });
      button.setAttribute("aria-label", `${label} ${voice.name}`);
      return button;
    };
    const star = does(voice.favourite ? "★" : "☆", "Favourite", async () => {
      await changeVoice(voice.id, { favourite: !voice.favourite });
      await this.#changed();
    });
    star.setAttribute("aria-pressed", String(voice.favourite));
    const pack = Object.assign(document.createElement("a"), { href: exportAddress(voice.id), download: "", textContent: "Export" });
    pack.setAttribute("aria-label", `Export ${voice.name}`);
    return [
      star,
      does("Listen", "Listen to", () => {
        this.#sound.src = previewAddress(voice.id);
        return this.#sound.play();
      }),
      does("Use", "Use", () => {
        this.dispatchEvent(new CustomEvent("choose", { detail: { id: voice.slug } }));
      }),
      pack,
      does("Delete", "Delete", async () => {
        await deleteVoice(voice.id);
        this.#say(`${voice.name} is deleted.`, voice);
        await this.#changed();
      }),
    ];
  }
}

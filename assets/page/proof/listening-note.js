// Notes taken while listening: a button in the player, or the M key, opens a form above it for a note at the current time.

import { addNote } from "../client/projects.js";
import { Refusal } from "../client/refusal.js";
import { element, labelled } from "../lib/elements.js";
import { once } from "../lib/once.js";
import { phrase } from "../lib/phrases.js";
import { clock } from "../lib/time.js";
import { askBeforeLeaving, focusAfterwards, isSingleKey } from "../lib/typing.js";
import { offerUndo } from "../trash/undo-toast.js";

/** Fires "saved" when a note was added. */
export class ListeningNote extends EventTarget {
  /** The spot whose note is being written; number: of the part. @type {{ take: string, number: number, at: number } | null} */
  #spot = null;
  /** Before the form was opened. @type {{ track?: any, focused?: Element | null }} */
  #before = {};

  /** @param {{ id: string, drafts: import("../lib/drafts.js").Drafts, playback: import("../longform/playback.js").Playback, signal: AbortSignal, project: () => any }} of signal: aborted when the project is left */
  constructor({ id, drafts, playback, signal, project }) {
    super();
    this.id = id;
    this.drafts = drafts;
    this.project = project;
    const { nowPlaying } = playback;
    this.nowPlaying = nowPlaying;
    this.mark = element("button", { type: "button", className: "dock-mark", textContent: phrase("proof.mark"), onclick: () => this.#open() });
    labelled(this.mark, phrase("proof.mark.about"));
    this.label = element("span");
    this.text = element("input", { type: "text", maxLength: 500, autocomplete: "off", dir: "auto", oninput: () => this.#keep() });
    this.problem = element("p", { role: "status" });
    this.form = element("form", { className: "dock-note", hidden: true }, [
      element("label", {}, [this.label, this.text]),
      element("button", { type: "submit", textContent: phrase("proof.note.save") }),
      element("button", { type: "button", textContent: phrase("longform.cancel"), onclick: () => this.#close() }),
      this.problem,
    ]);
    const save = once(() => this.#save());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      save();
    });
    this.form.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.stopPropagation();
      if (this.#isWritten) this.problem.textContent = phrase("proof.note.unsaved");
      else this.#close();
    });
    nowPlaying.bar.element.prepend(this.form);
    nowPlaying.bar.parts.time.after(this.mark);
    for (const type of ["show", "state"]) nowPlaying.addEventListener(type, () => this.#follow(), { signal });
    document.addEventListener("keydown", (event) => this.#key(event), { signal });
    askBeforeLeaving(() => this.#isWritten, signal);
    signal.addEventListener("abort", () => [this.form, this.mark].forEach((node) => node.remove()));
    this.#follow();
    const { text, ...spot } = drafts.get("note", "") ?? {};
    if (text) this.#show(spot, text);
  }

  get #isWritten() {
    return this.#spot !== null && this.text.value.trim() !== "";
  }

  /** Keep what is written, for when the project or the page is left. */
  #keep() {
    this.drafts.keep("note", "", this.#isWritten && { ...this.#spot, text: this.text.value });
  }

  /** Show the button for parts of this project, unless it is read-only. */
  #follow() {
    this.mark.hidden = this.nowPlaying.current?.of?.project !== this.id || this.project()?.right === "read";
  }

  #key(event) {
    const isHere = this.nowPlaying.current?.of?.project === this.id && this.nowPlaying.bar.parts.time.checkVisibility();
    if (event.key.toLowerCase() !== "m" || !isSingleKey(event) || !isHere) return;
    event.preventDefault();
    if (this.project()?.right === "read") return void offerUndo(phrase("proof.mark.reader"), null, false);
    this.#open();
  }

  /** Open the form and pause the player. */
  #open() {
    if (!this.#spot) {
      const { current: track, position, isPlaying } = this.nowPlaying;
      this.#before = { track: isPlaying && track, focused: document.activeElement };
      this.nowPlaying.pause();
      this.#show({ take: track.of.take, number: track.of.position + 1, at: Math.min(position, track.seconds) }, "");
    }
    this.text.focus();
  }

  #show(spot, text) {
    this.#spot = spot;
    this.label.textContent = phrase("proof.note", { number: spot.number, time: clock(spot.at) });
    this.text.value = text;
    this.problem.textContent = "";
    this.form.hidden = false;
  }

  /** Close the form and restore the focus; resume, unless another track was played. */
  #close() {
    if (!this.#spot) return;
    this.#spot = null;
    this.#keep();
    this.form.hidden = true;
    const { current, isPlaying, bar } = this.nowPlaying;
    const { track, focused } = this.#before;
    this.#before = {};
    if (track && current === track && !isPlaying) this.nowPlaying.playOrPause();
    focusAfterwards(focused instanceof HTMLElement && focused !== document.body && focused.checkVisibility() ? focused : bar.parts.play);
  }

  async #save() {
    if (!this.#spot) return;
    const [spot, text] = [this.#spot, this.text.value];
    const { take, number, at } = spot;
    try {
      await addNote(this.id, take, at, text);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.problem.textContent = problem.why;
      return;
    }
    if (this.#spot === spot && this.text.value === text) this.#close(); // else something more was written meanwhile
    offerUndo(phrase("proof.note.saved", { number }), null, false);
    this.dispatchEvent(new Event("saved"));
  }
}

// Notes taken while listening: a button in the player, or the M key, opens a form above it for a note at the current time.

import { addNote } from "../client/projects.js";
import { Refusal } from "../client/refusal.js";
import { element, labelled } from "../lib/elements.js";
import { once } from "../lib/once.js";
import { phrase } from "../lib/phrases.js";
import { clock } from "../lib/time.js";
import { isSingleKey } from "../lib/typing.js";
import { offerUndo } from "../trash/undo-toast.js";

/** Fires "saved" when a note was added. */
export class ListeningNote extends EventTarget {
  /** The spot whose note is being written. @type {{ track: any, at: number, isPlaying: boolean, focused: Element | null } | null} */
  #spot = null;

  /** @param {{ id: string, playback: import("../longform/playback.js").Playback, signal: AbortSignal, project: () => any }} of signal: aborted when the project is left */
  constructor({ id, playback, signal, project }) {
    super();
    this.id = id;
    this.project = project;
    const { nowPlaying } = playback;
    this.nowPlaying = nowPlaying;
    this.mark = element("button", { type: "button", className: "dock-mark", textContent: phrase("proof.mark"), onclick: () => this.#open() });
    labelled(this.mark, phrase("proof.mark.about"));
    this.label = element("span");
    this.text = element("input", { type: "text", maxLength: 500, autocomplete: "off", dir: "auto" });
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
      this.#close();
    });
    nowPlaying.bar.element.prepend(this.form);
    nowPlaying.bar.parts.time.after(this.mark);
    for (const type of ["show", "state"]) nowPlaying.addEventListener(type, () => this.#follow(), { signal });
    document.addEventListener("keydown", (event) => this.#key(event), { signal });
    signal.addEventListener("abort", () => [this.form, this.mark].forEach((node) => node.remove()));
    this.#follow();
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
      this.#spot = { track, at: Math.min(position, track.seconds), isPlaying, focused: document.activeElement };
      this.nowPlaying.pause();
      this.label.textContent = phrase("proof.note", { number: track.of.position + 1, time: clock(position) });
      this.text.value = this.problem.textContent = "";
      this.form.hidden = false;
    }
    this.text.focus();
  }

  /** Close the form and restore the focus; resume, unless another track was played. */
  #close() {
    const spot = this.#spot;
    if (!spot) return;
    this.#spot = null;
    this.form.hidden = true;
    const { current, isPlaying, bar } = this.nowPlaying;
    if (spot.isPlaying && current === spot.track && !isPlaying) this.nowPlaying.playOrPause();
    const isUsable = spot.focused instanceof HTMLElement && spot.focused !== document.body && spot.focused.checkVisibility();
    (isUsable ? /** @type {HTMLElement} */ (spot.focused) : bar.parts.play).focus();
  }

  async #save() {
    if (!this.#spot) return;
    const { track, at } = this.#spot;
    try {
      await addNote(this.id, track.of.take, at, this.text.value);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.problem.textContent = problem.why;
      return;
    }
    this.#close();
    offerUndo(phrase("proof.note.saved", { number: track.of.position + 1 }), null, false);
    this.dispatchEvent(new Event("saved"));
  }
}

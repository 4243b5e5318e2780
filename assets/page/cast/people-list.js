// The people found in a document as cards, edited before the project is created; offers the cast of an earlier book of a series.

import { Refusal } from "../client/refusal.js";
import { copyPronunciations } from "../client/pronunciations.js";
import { readCast } from "../client/projects.js";
import { element, setChildren } from "../lib/elements.js";
import { once } from "../lib/once.js";
import { phrase } from "../lib/phrases.js";
import { offerUndo, withdrawUndo } from "../trash/undo-toast.js";
import { CharacterRow } from "./character-row.js";
import { asSent, changed, foldedName, fromEarlier, markOf, marksOf, merged, split, undone } from "./people.js";

const MOST = 1000; // people per request
const SHOWN = 60; // cards at first; most books have fewer people who speak more than once

export class PeopleList {
  /** @type {import("./people.js").Person[]} */
  #people = [];
  /** Edited, but without lines in the chosen chapters. @type {import("./people.js").Person[]} */
  #away = [];
  /** @type {Map<string, CharacterRow>} */
  #rows = new Map();
  #shown = SHOWN;
  #voices = [];
  /** The project whose cast was taken over. */
  #earlier = "";
  #count = 0; // of ids
  /** Steps that end with the preview. @type {ReturnType<typeof offerUndo>[]} */
  #steps = [];

  /**
   * run: runs work and shows why it failed; hear: plays a voice.
   *
   * @param {HTMLElement} place
   * @param {{ run: (work: () => Promise<unknown>) => Promise<void>, hear: (voice: any) => unknown }} of
   */
  constructor(place, { run, hear }) {
    this.place = place;
    this.run = run;
    this.hear = hear;
    this.series = element("div", { className: "cast-bar" });
    this.list = element("ul", { className: "cast-list" });
    this.list.setAttribute("aria-label", phrase("cast.title"));
    this.more = element("button", { type: "button", className: "plain", onclick: () => this.#showAll() });
    place.replaceChildren(this.series, this.list, this.more);
  }

  clear() {
    this.#people = this.#away = [];
    this.#rows.clear();
    this.#shown = SHOWN;
    this.#earlier = "";
    this.hide();
  }

  hide() {
    this.#steps.splice(0).forEach(withdrawUndo);
    this.place.hidden = true;
    this.list.replaceChildren();
  }

  /** All people in the form that the API expects. */
  get all() {
    return asSent(this.#people);
  }

  /** Those whom a person has edited; the studio finds the others again. */
  get edited() {
    return asSent([...this.#people, ...this.#away].filter(({ isEdited }) => isEdited));
  }

  /**
   * found, earlier: as returned by the API; chosen: returns the voice that was chosen for a name.
   *
   * @param {any[]} found
   * @param {any[]} earlier
   * @param {any[]} voices
   * @param {(name: string) => string | undefined} chosen
   */
  show(found, earlier, voices, chosen) {
    this.#voices = voices;
    const before = new Map([...this.#people, ...this.#away].map((person) => [foldedName(person.name), person]));
    this.#people = found.slice(0, MOST).map(({ name, names, gender, lines, voice, narrator, sample }) => {
      const known = before.get(foldedName(name));
      before.delete(foldedName(name));
      const kept = known?.isEdited ? { isEdited: true, gender: known.gender || gender, narrator: known.narrator, voice: known.voice } : { gender, narrator, voice: chosen(name) || voice };
      return { id: known?.id ?? `person-${(this.#count += 1)}`, name, aliases: names.slice(1), lines, sample, ...kept };
    });
    this.#away = [...before.values()].filter(({ isEdited }) => isEdited);
    this.place.hidden = !this.#people.length;
    setChildren(this.series, earlier.filter(({ project }) => project !== this.#earlier).map((one) => this.#offer(one)));
    this.#draw();
  }

  #offer({ project, title, shared }) {
    const take = once(() => this.run(() => this.#take(project, title)));
    return element("button", { type: "button", className: "plain", textContent: phrase("cast.series", { title, count: shared }), onclick: take });
  }

  /** Take names, genders and voices from the cast of an earlier book. Throws Refusal. */
  async #take(project, title) {
    const { data } = await readCast(project);
    const voiceOf = (voice) => this.#voices.find(({ id, name }) => voice && [id, name.toLowerCase()].includes(voice.toLowerCase()))?.id ?? null;
    const { people, count } = fromEarlier(this.#people, data, voiceOf);
    const [before, offers] = [this.#earlier, [...this.series.children]];
    this.#earlier = project;
    this.series.replaceChildren();
    this.#apply(people, phrase("cast.series.done", { title, count }), () => {
      this.#earlier = before;
      this.series.replaceChildren(...offers);
    });
    this.list.querySelector("input")?.focus({ preventScroll: true });
  }

  /** Give a new project the pronunciations of the earlier book. The project exists, so a failure is only told. */
  async takeAlong(project) {
    if (!this.#earlier) return;
    try {
      await copyPronunciations(this.#earlier, project);
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      offerUndo(phrase("cast.series.words", { why: problem.why }), null);
    }
  }

  /** Show edited people; words: about the step, which can be undone. */
  #apply(people, words = "", restore = () => {}) {
    const before = this.#people;
    this.#people = people;
    this.#draw();
    if (!words) return;
    this.#steps.push(offerUndo(words, () => {
      this.#people = undone(this.#people, before, people);
      restore();
      this.#draw();
    }));
  }

  #showAll() {
    const at = this.#shown;
    this.#shown = MOST;
    this.#draw();
    this.list.children[at]?.querySelector("input")?.focus();
  }

  #draw() {
    const [shown, marks] = [this.#people.slice(0, this.#shown), marksOf(this.#people)];
    this.#rows = new Map(shown.map(({ id }) => [id, this.#rows.get(id) ?? this.#row()]));
    for (const person of shown) this.#rows.get(person.id)?.show(person, this.#people, markOf(marks, person.id));
    setChildren(this.list, [...this.#rows.values()].map((row) => row.element));
    const rest = this.#people.length - shown.length;
    this.more.hidden = !rest;
    this.more.textContent = phrase("longform.speakers.more", { count: rest });
  }

  #row() {
    const row = new CharacterRow(this.#voices, true);
    const on = (type, work) => row.addEventListener(type, ({ detail }) => work(row.member, detail));
    on("change", ({ id, name }, changes) => {
      const people = changed(this.#people, id, changes);
      this.#apply(people, people.length < this.#people.length ? phrase("cast.merged", { name }) : "");
    });
    on("merge", ({ id, name }, { into }) => this.#apply(merged(this.#people, id, into), phrase("cast.merged", { name })));
    on("split", ({ id }, { alias }) => this.#apply(split(this.#people, id, alias), phrase("cast.split.done", { name: alias })));
    on("hear", ({ voice }) => {
      const own = this.#voices.find(({ id, isFirstChoice }) => (voice ? id === voice : isFirstChoice));
      if (own) this.hear(own);
    });
    return row;
  }
}

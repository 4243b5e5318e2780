// The area that speaks one text in several ways at once, switches between them, and lets the ear vote, blind if wanted.

import { Ballots } from "./votes.js";
import { Candidates, unfit } from "./candidates.js";
import { isTold } from "../speak/cast.js";
import { Cell } from "./candidate-card.js";
import { Refusal } from "../client/refusal.js";
import { makeTake } from "../takes/generate.js";
import { Take } from "../takes/take.js";

const AT_ONCE = 5; // a browser opens six connections to a host, and the page needs one besides
const SEEDS = 2 ** 31;
const ALL_CAST = "It is a dialogue, and the Studio's cast has a voice for every line: it would sound the same with each of these.";
const [BUSY, TRIES] = [429, 30]; // callers may have few requests at a time: ask again when there is room

/**
 * Fires "play" {take, others} (if one of the others is heard: at the same place), "grown" and "made" {take} while takes
 * are made, "told" {take} when a name is shown, and "use" {changes} for the Studio's fields.
 */
export class Compare extends EventTarget {
  #cells = [];
  #making = null; // the AbortController of what is being made
  #round = 0;

  /** fields: the Studio's; health: to wait for the engine; request(fields): the body that is sent. */
  constructor(root, { fields, health, request }) {
    super();
    Object.assign(this, { root, fields, health, request });
    this.part = (name) => root.querySelector(`[data-part=${name}]`);
    this.candidates = new Candidates(root);
    this.ballots = new Ballots(this.part("results"));
    this.part("speak").addEventListener("click", () => this.speak());
    this.part("stop").addEventListener("click", () => this.stop());
    this.part("reveal").addEventListener("click", () => this.#reveal());
    document.addEventListener("keydown", (event) => this.#key(event));
    fields.addEventListener("change", () => this.isOpen && this.open(), { once: true }); // shown before the fields were
  }

  async open() {
    this.isOpen = true;
    if (this.fields.values.text === undefined) return;
    this.part("text").value ||= this.fields.values.text;
    await this.candidates.open(this.fields.values);
  }

  close() {
    this.isOpen = false;
  }

  /** The Studio's script in several voices, at once. */
  async speakScript() {
    await this.candidates.open(this.fields.values);
    this.part("text").value = this.fields.values.text;
    this.candidates.takeVoices();
    await this.speak();
  }

  async speak() {
    this.stop();
    const control = new AbortController();
    try {
      await this.#begin(await this.#requests());
      this.#mark(control);
      if (this.health.isStarting) {
        this.#say("The engine is warming up; all are spoken as soon as it is ready.");
        await this.health.started(control.signal);
      }
      this.#say("");
      await this.#makeAll(control.signal);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      if (!(problem instanceof Refusal)) throw problem;
      this.#say(`${problem.why} ${problem.advice}`, true);
    } finally {
      if (this.#making === control || !this.#making) this.#mark(null);
    }
  }

  stop() {
    this.#making?.abort();
    this.#mark(null);
  }

  #mark(control) {
    this.#making = control;
    this.part("stop").hidden = !control;
    this.part("speak").hidden = Boolean(control);
  }

  #say(words, isGrave = false) {
    this.part("said").textContent = words;
    this.part("said").classList.toggle("grave", isGrave);
  }

  /** Every candidate with its request; those without a seed of their own share one, so that only what is compared differs. */
  async #requests() {
    const listed = this.candidates.list(this.part("text").value);
    const shared = Math.floor(Math.random() * SEEDS);
    const requests = [];
    for (const { label, fields } of listed) {
      const request = await this.request(fields);
      if (request.cast && this.candidates.kind === "voices" && !isTold(request.input)) throw unfit(ALL_CAST, "Compare settings, or switch Dialogue off in the Studio.");
      requests.push({ label, fields, request: { seed: shared, ...request } });
    }
    return requests;
  }

  #begin(requests) {
    const isBlind = this.part("blind").checked;
    for (const cell of this.#cells) cell.take.drop();
    this.#round = Date.now();
    this.#cells = (isBlind ? shuffled(requests) : requests).map(({ label, fields, request }, i) => {
      const take = new Take({ number: "ABCDEFGH"[i], request, voiceName: label, settings: fields });
      take.isBlind = isBlind;
      return this.#cell(new Cell(take, label));
    });
    this.part("cells").replaceChildren(...this.#cells.map((cell) => cell.element));
    this.part("after").hidden = false;
    this.part("reveal").hidden = !isBlind;
    this.part("reveal").disabled = true;
  }

  #cell(cell) {
    cell.addEventListener("play", () => this.#play(cell));
    cell.addEventListener("vote", () => this.#voted());
    cell.addEventListener("best", () => {
      for (const each of this.#cells) each.setBest(each === cell && !cell.isBest);
      this.#voted();
    });
    cell.addEventListener("use", () => {
      const { seed: asked, keepSeed, ...settings } = cell.take.settings;
      this.#tell("use", { changes: { ...settings, seed: Number(cell.take.seed ?? asked), keepSeed } });
    });
    return cell;
  }

  async #makeAll(signal) {
    const line = [...this.#cells];
    const makeSome = async () => {
      for (let cell = line.shift(); cell; cell = line.shift()) await this.#make(cell, signal);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, makeSome));
    if (!signal.aborted) this.#say("All are spoken: listen, and vote.");
  }

  async #make(cell, signal, triesLeft = TRIES) {
    if (signal.aborted) return cell.say("Stopped");
    try {
      await makeTake(cell.take, signal, {
        begun: () => cell.say("Speaking …"),
        heard: () => {
          if (cell.play.disabled && cell === this.#cells[0]) this.#play(cell); // the first is heard without a press
          cell.grow();
          this.#tell("grown", { take: cell.take });
        },
        kept: () => {
          cell.finish();
          this.#tell("made", { take: cell.take });
        },
      });
      cell.finish();
    } catch (problem) {
      if (problem.name === "AbortError") return cell.take.file ? undefined : cell.say("Stopped");
      if (!(problem instanceof Refusal)) throw problem;
      if (problem.status !== BUSY || !triesLeft) return cell.say(problem.why, true);
      cell.say("Waits for a free place …");
      await new Promise((resolve) => setTimeout(resolve, (problem.retryAfter ?? 1) * 1000));
      return this.#make(cell, signal, triesLeft - 1);
    }
  }

  #play(cell) {
    for (const each of this.#cells) each.element.toggleAttribute("aria-current", each === cell);
    this.#tell("play", { take: cell.take, others: this.#cells.map(({ take }) => take) });
  }

  /** Blind rounds count when they are shown, others at every vote. */
  #voted() {
    if (this.part("reveal").hidden) this.#count();
    else this.part("reveal").disabled = !this.#cells.some((cell) => cell.score !== null || cell.isBest);
  }

  #count() {
    this.ballots.put({ id: this.#round, votes: this.#cells.map((cell) => cell.vote) });
  }

  #reveal() {
    for (const cell of this.#cells) {
      cell.take.isBlind = false;
      cell.show();
      cell.close();
      this.#tell("told", { take: cell.take });
    }
    this.part("reveal").hidden = true;
    this.#count();
    this.#say("The votes are counted.");
  }

  #key(event) {
    if (!this.isOpen || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]")) return;
    const cell = this.#cells[Number(event.key) - 1];
    if (cell && !cell.play.disabled) this.#play(cell);
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** In an order of chance (Fisher and Yates). */
function shuffled(list) {
  const mixed = [...list];
  for (let i = mixed.length - 1; i > 0; i -= 1) {
    const j = Math.floor(Math.random() * (i + 1));
    [mixed[i], mixed[j]] = [mixed[j], mixed[i]];
  }
  return mixed;
}

// The area that speaks one text in several ways at once, switches between them, and collects votes, blind if wanted.

import { partsOf } from "../lib/elements.js";
import { LookAgain } from "../lib/look-again.js";
import { Votes } from "./votes.js";
import { Candidates, unfit } from "./candidates.js";
import { isTold } from "../speak/dialogue.js";
import { CandidateCard } from "./candidate-card.js";
import { Refusal } from "../client/refusal.js";
import { generateTake } from "../takes/generate.js";
import { Take } from "../takes/take.js";
import { phrase } from "../lib/phrases.js";
import { keepByTab, keptByTab } from "../lib/by-tab.js";
import { offerUndo } from "../trash/undo-toast.js";

const AT_ONCE = 5; // a browser opens six connections to a host, and the page needs one for itself
const SEEDS = 2 ** 31;
const TEXT = "compare-text-1"; // as typed here, until the Studio's script takes its place

/**
 * Fires "play" {take, others} (if one of the others is playing: from the same position), "grown" and "made" {take} while
 * takes are generated, "told" {take} when a name is revealed, "row" {takes}: to be played one after the other, "use" {take}: its script and
 * settings for the Studio, and "keepVoice" {take}.
 */
export class Compare extends EventTarget {
  /** @type {CandidateCard[]} */
  #cards = [];
  /** @type {AbortController | null} */
  #making = null; // of the round being generated
  #round = 0;
  #isFirstHeard = () => false; // whether the first candidate plays automatically: only if no other track was requested since
  /** @type {Promise<void>} */
  #opening = Promise.resolve(); // resolves when the choices are loaded
  #again = new LookAgain();

  /** Parts of the page, and request(fields), which returns the API's request body. */
  constructor(root, { fields, health, nowPlaying, speaking, request }) {
    super();
    this.root = root;
    this.fields = fields;
    this.health = health;
    this.nowPlaying = nowPlaying;
    this.speaking = speaking;
    this.request = request;
    this.part = partsOf(root);
    this.candidates = new Candidates(root);
    this.candidates.addEventListener("change", () => this.#forgive());
    this.part("text").addEventListener("input", () => {
      keepByTab(TEXT, this.part("text").value);
      this.#forgive();
    });
    this.votes = new Votes(this.part("results"));
    this.part("speak").addEventListener("click", () => this.speak());
    this.part("stop").addEventListener("click", () => this.stop());
    this.part("row").addEventListener("click", () => this.#tell("row", { takes: this.#cards.map(({ take }) => take).filter(({ file }) => file) }));
    addEventListener("pagehide", () => this.#countBlind());
    nowPlaying.addEventListener("show", ({ detail }) => {
      for (const card of this.#cards) card.element.toggleAttribute("aria-current", card.take === detail.take);
    });
    this.part("reveal").addEventListener("click", () => this.#reveal());
    document.addEventListener("keydown", (event) => this.#key(event));
    fields.addEventListener("change", () => this.isOpen && this.open(), { once: true }); // if shown before the fields are
  }

  async open() {
    this.isOpen = true;
    if (this.fields.values.text === undefined) return;
    this.part("text").value ||= keptByTab(TEXT, "") || this.fields.values.text;
    this.#forgive();
    this.#opening = this.candidates.open(this.fields.values);
    try {
      await this.#opening;
    } catch (problem) {
      if (!(problem instanceof Refusal)) throw problem;
      this.#say(problem.why, true);
      this.#again.after(problem, () => this.isOpen && this.open());
    }
  }

  close() {
    this.isOpen = false;
  }

  /** Speak the Studio's script in several voices at once. */
  async speakScript() {
    await this.candidates.open(this.fields.values);
    const typed = keptByTab(TEXT, "");
    this.part("text").value = this.fields.values.text;
    keepByTab(TEXT, "");
    const undo = () => keepByTab(TEXT, (this.part("text").value = typed));
    if (typed.trim() && typed !== this.fields.values.text) offerUndo(phrase("speak.script.replaced"), undo, false);
    this.candidates.takeVoices();
    await this.speak();
  }

  async speak() {
    this.stop();
    const control = new AbortController();
    this.#mark(control);
    this.#isFirstHeard = this.nowPlaying.watch();
    try {
      await this.#opening; // without the list of voices, it is not known which are compared
      const requests = await this.#requests();
      control.signal.throwIfAborted();
      this.#begin(requests);
      if (this.health.isStarting) {
        this.#say(phrase("compare.warming"));
        await this.health.started(control.signal);
      }
      this.#say("");
      await this.#makeAll(control.signal);
    } catch (problem) {
      if (problem.name === "AbortError") return;
      if (!(problem instanceof Refusal)) throw problem;
      this.#say(`${problem.why} ${problem.advice}`, true);
    } finally {
      if (this.#making === control) this.#mark(null);
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

  /** Clear the error message once the input has changed. */
  #forgive() {
    if (this.part("said").classList.contains("grave")) this.#say("");
  }

  #say(words, isGrave = false) {
    this.part("said").textContent = words;
    this.part("said").classList.toggle("grave", isGrave);
  }

  /** The candidates with their requests. Those without their own seed share one, so that only the compared settings differ. */
  async #requests() {
    const listed = this.candidates.list(this.part("text").value);
    const shared = Math.floor(Math.random() * SEEDS);
    const requests = [];
    for (const { label, fields } of listed) {
      const request = await this.request(fields);
      if (request.cast && this.candidates.kind === "voices" && !isTold(request.input)) throw unfit(phrase("compare.allCast"), phrase("compare.allCast.advice"));
      requests.push({ label, fields, request: { seed: shared, ...request } });
    }
    return requests;
  }

  #begin(requests) {
    const isBlind = this.part("blind").checked;
    this.#countBlind();
    for (const card of this.#cards) card.take.drop();
    this.#round = Date.now();
    this.#cards = (isBlind ? shuffled(requests) : requests).map(({ label, fields, request }, i) => {
      const take = new Take({ number: "ABCDEFGH"[i], request, voiceName: label, settings: fields });
      take.isBlind = isBlind;
      return this.#card(new CandidateCard(take, label));
    });
    this.part("cells").replaceChildren(...this.#cards.map((card) => card.element));
    this.part("after").hidden = false;
    this.part("reveal").hidden = !isBlind;
    this.part("reveal").disabled = true;
  }

  #card(card) {
    card.addEventListener("play", () => this.#play(card));
    card.addEventListener("vote", () => this.#voted());
    card.addEventListener("best", () => {
      for (const other of this.#cards) other.setBest(other === card && !card.isBest);
      this.#voted();
    });
    for (const type of ["use", "keepVoice"]) card.addEventListener(type, () => this.#tell(type, { take: card.take }));
    return card;
  }

  async #makeAll(signal) {
    const line = [...this.#cards];
    const makeSome = async () => {
      for (let card = line.shift(); card; card = line.shift()) await this.#make(card, signal);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, makeSome));
    if (signal.aborted) return;
    const isAnyHeard = this.#cards.some(({ take }) => take.file);
    this.#say(phrase(isAnyHeard ? "compare.ready" : "compare.none"), !isAnyHeard);
  }

  async #make(card, signal) {
    if (signal.aborted) return card.say(phrase("compare.stopped"));
    try {
      await generateTake(card.take, signal, {
        begun: () => card.say(phrase("compare.speaking")),
        heard: () => {
          if (card.play.disabled && card === this.#cards[0] && this.#isFirstHeard() && !this.speaking.isUnderWay) this.#play(card);
          card.grow();
          this.#tell("grown", { take: card.take });
        },
        kept: () => {
          card.finish();
          this.#tell("made", { take: card.take });
        },
      });
      card.finish();
    } catch (problem) {
      if (problem.name === "AbortError") return card.take.file ? undefined : card.say(phrase("compare.stopped"));
      if (!(problem instanceof Refusal)) throw problem;
      card.say(problem.why, true);
    }
  }

  #play(card) {
    this.#tell("play", { take: card.take, others: this.#cards.map(({ take }) => take) });
  }

  /** Blind rounds are counted when revealed, others at every vote. */
  #voted() {
    if (this.part("reveal").hidden) this.#count();
    else this.part("reveal").disabled = !this.#cards.some((card) => card.score !== null || card.isBest);
  }

  #count() {
    this.votes.put({ id: this.#round, votes: this.#cards.map((card) => card.vote) });
  }

  /** Count a blind round that ends without being revealed. */
  #countBlind() {
    if (!this.part("reveal").hidden) this.#count();
  }

  #reveal() {
    for (const card of this.#cards) {
      card.take.isBlind = false;
      card.show();
      card.close();
      this.#tell("told", { take: card.take });
    }
    this.part("reveal").hidden = true;
    this.#count();
    this.#say(phrase("compare.counted"));
  }

  #key(event) {
    if (!this.isOpen || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input:not([type=radio], [type=checkbox]), textarea, select, [contenteditable]")) return;
    const card = this.#cards[Number(event.key) - 1];
    if (card && !card.play.disabled) this.#play(card);
  }

  #tell(type, detail) {
    this.dispatchEvent(new CustomEvent(type, { detail }));
  }
}

/** In random order (Fisher–Yates). */
function shuffled(list) {
  const mixed = [...list];
  for (let i = mixed.length - 1; i > 0; i -= 1) {
    const j = Math.floor(Math.random() * (i + 1));
    [mixed[i], mixed[j]] = [mixed[j], mixed[i]];
  }
  return mixed;
}
